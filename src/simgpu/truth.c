/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ground truth, which tests compare a trace with. Written to XTRACE_SIMGPU_TRUTH when the
 * process exits. Each line is one event with fields separated by a space. Times are ns of
 * CLOCK_MONOTONIC. <place> is "<device> <context> <stream>". Kinds of memory and of copies have
 * CUPTI's numbers.
 *
 *	call <tid> <number> <correlation id> <api name> <result> <4 times>
 *		a call that returned, unless it was made within another one; <number> counts the
 *		thread's calls from 0; times: entry, end of the ENTER callback, start of the EXIT
 *		callback, return
 *	launch <tid> <correlation id> <api name>	a launch, successful or not
 *	kernel <correlation id> <place> <start> <end> <graph node id> <name>
 *	collective <correlation id> <place> <start> <end> <communicator> <index> <rank> <ranks>
 *		<awaited rank> <its start> <bytes> <name>
 *		a kernel, which has a kernel line too, that waits for other processes; <index>
 *		counts the communicator's collectives from 0; <awaited rank> started last of the
 *		ranks whose start this one needs, its own included
 *	unfinished_collective <same fields>
 *		one that had not ended when the process exited, or that never could: then the end is
 *		0, the start is 0 if the work before it had not ended, and the awaited rank is a
 *		list of those that had not started, separated by commas, or "-"
 *	copy <correlation id> <place> <start> <end> <graph node id> <bytes> <kind> <from memory>
 *		<to memory> <1: asynchronous> <from device + 1> <to device + 1>
 *		both devices are 0 unless the copy is between devices
 *	set <correlation id> <place> <start> <end> <graph node id> <bytes> <memory>
 *	unfinished, unfinished_copy, unfinished_set, unfinished_graph <same fields>
 *		work that was still running when the process exited; the end is 0 if a collective
 *		before it could never end, or if the device failed
 *	graph <correlation id> <place> <start> <end> <id of the executable graph>
 *		<kernels that ran> <1: recorded as a whole>
 *		the launch of a graph; its kernels have lines of their own
 *	alloc, free <tid> <call number> <correlation id> <place> <time> <address> <bytes> <memory>
 *	node <tid> <call number> <node id> <id of the node it is a clone of, or 0> <type>
 *		as announced
 *	change <tid> <call number> <node id> <id of the executable graph, or 0>
 *		the call changed the node and is its maker from now on
 *	update <tid> <call number> <id of the executable graph> <id of the graph>
 *		nodes of the executable graph now have the makers of the graph's nodes
 *	maker <correlation id> <node id> <tid> <call number> <1: or 0>
 *		once in each replay: the call that made the node, or the node it was cloned from.
 *		Includes nodes of child graphs, which are never announced. 1: an update of an
 *		enclosing graph set the maker
 *	device <correlation id> <node id> <start>
 *		this replay ran that node's work without a correlation id
 *	violation <tid> <api name>			a driver call within a callback
 *	end <number of kernel lines>
 *
 * Each thread appends to its own chunks, which are linked into one list. A release store of the
 * count publishes an entry. A child forked after cuInit() writes no file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/sim.h"

#define CHUNK_ENTRIES 1024
#define NUMBERS_MAX   13
#define END_NUMBER    4 /* among the numbers of work: its end */

/*
 * How an entry is written: X(kind, first word, that of work that is not over, fields). Fields: t:
 * thread; n: number of its call; c: correlation id; s: name; a: two numbers, or the absent ranks
 * and 0; a digit: so many numbers.
 */
#define ENTRIES(X)                                                                                 \
	X(CALL, "call", NULL, "tncs5")                                                             \
	X(LAUNCH, "launch", NULL, "tcs")                                                           \
	X(KERNEL, "kernel", "unfinished", "c6s")                                                   \
	X(COLLECTIVE, "collective", "unfinished_collective", "c9a1s")                              \
	X(COPY, "copy", "unfinished_copy", "c67")                                                  \
	X(SET, "set", "unfinished_set", "c62")                                                     \
	X(GRAPH, "graph", "unfinished_graph", "c62")                                               \
	X(ALLOC, "alloc", NULL, "tnc7")                                                            \
	X(FREE, "free", NULL, "tnc7")                                                              \
	X(UPDATE, "update", NULL, "tn2")                                                           \
	X(NODE, "node", NULL, "tn3")                                                               \
	X(CHANGE, "change", NULL, "tn2")                                                           \
	X(MAKER, "maker", NULL, "c4")                                                              \
	X(BY_DEVICE, "device", NULL, "c2")                                                         \
	X(VIOLATION, "violation", NULL, "ts")

#define ENTRY_KIND(kind, ...) ENTRY_##kind,
enum entry_kind { ENTRIES(ENTRY_KIND) };

#define ENTRY_LINE(kind, ...) [ENTRY_##kind] = {__VA_ARGS__},
static const struct {
	const char *word, *unfinished, *fields;
} lines[] = {ENTRIES(ENTRY_LINE)};

struct entry {
	enum entry_kind kind;
	uint32_t call_number;
	int tid;
	uint32_t correlation_id;
	const char *name;   /* of the API or the kernel */
	const char *absent; /* ranks of a collective; NULL: it has an end */
	uint64_t numbers[NUMBERS_MAX];
};

/* The first numbers of work. */
#define PLACE(place) (place).device_id, (place).context_id, (place).stream_id
#define WORK(run)    PLACE((run)->place), (run)->span.start_ns, (run)->span.end_ns

struct sim_truth_chunk {
	_Atomic uint32_t count;
	struct sim_truth_chunk *next;
	struct entry entries[CHUNK_ENTRIES];
};

static struct sim_truth_chunk *_Atomic chunks;
static _Atomic uint64_t lost_count;

bool sim_truth_is_on(void)
{
	return sim_config()->truth_path != NULL;
}

static struct sim_truth_chunk *chunk_with_room(struct sim_thread *thread)
{
	struct sim_truth_chunk *chunk = thread->truth;

	if (chunk && atomic_load_explicit(&chunk->count, memory_order_relaxed) < CHUNK_ENTRIES)
		return chunk;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	thread->truth = chunk;
	chunk->next = atomic_load(&chunks);
	while (!atomic_compare_exchange_weak(&chunks, &chunk->next, chunk))
		;
	return chunk;
}

/* Adds the fields common to all kinds: the calling thread and its call. */
static void note(const struct entry *entry)
{
	struct sim_thread *thread = sim_thread();
	struct sim_truth_chunk *chunk = chunk_with_room(thread);
	struct entry *place;
	uint32_t count;

	if (!chunk) {
		atomic_fetch_add(&lost_count, 1);
		return;
	}
	count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
	place = &chunk->entries[count];
	*place = *entry;
	place->tid = thread->tid;
	place->call_number = thread->call ? thread->call->number : 0;
	atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
}

/* For a call that is about to return. */
void sim_truth_call(const struct sim_call *call)
{
	note(&(struct entry){.kind = ENTRY_CALL,
			     .correlation_id = call->correlation_id,
			     .name = call->api->name,
			     .numbers = {call->result, call->entered_ns, call->began_ns,
					 call->ended_ns, sim_now_ns()}});
}

void sim_truth_launch(const struct sim_call *call)
{
	note(&(struct entry){.kind = ENTRY_LAUNCH,
			     .correlation_id = sim_correlation_id(),
			     .name = call->api->name});
}

void sim_truth_kernel(const struct sim_kernel_run *run)
{
	note(&(struct entry){.kind = ENTRY_KERNEL,
			     .correlation_id = run->correlation_id,
			     .name = run->name,
			     .numbers = {WORK(run), run->graph_node_id}});
}

void sim_truth_collective(const struct sim_kernel_run *run, const struct sim_collective *collective,
			  const char *absent)
{
	note(&(struct entry){
		.kind = ENTRY_COLLECTIVE,
		.correlation_id = run->correlation_id,
		.name = run->name,
		.absent = absent,
		.numbers = {WORK(run), collective->communicator_id, collective->index,
			    collective->rank, collective->rank_count, collective->awaited_rank,
			    collective->awaited_ns, collective->bytes},
	});
}

void sim_truth_transfer(const struct sim_memory_run *run, bool is_set)
{
	bool is_between_devices = run->copy_kind == XT_CUPTI_COPY_PTOP;
	struct entry entry = {
		.kind = ENTRY_SET,
		.correlation_id = run->correlation_id,
		.numbers = {WORK(run), run->graph_node_id, run->bytes, run->destination_kind}};

	if (!is_set)
		entry = (struct entry){
			.kind = ENTRY_COPY,
			.correlation_id = run->correlation_id,
			.numbers = {WORK(run), run->graph_node_id, run->bytes, run->copy_kind,
				    run->source_kind, run->destination_kind, run->is_async,
				    is_between_devices ? run->source.device_id + 1 : 0,
				    is_between_devices ? run->destination.device_id + 1 : 0},
		};
	note(&entry);
}

static void sim_truth_graph(const struct sim_graph_run *run)
{
	note(&(struct entry){
		.kind = ENTRY_GRAPH,
		.correlation_id = run->correlation_id,
		.numbers = {WORK(run), run->graph_exec_id, run->kernel_count, run->is_recorded}});
}

void sim_truth_allocation(const struct sim_allocation *allocation)
{
	note(&(struct entry){.kind = allocation->is_release ? ENTRY_FREE : ENTRY_ALLOC,
			     .correlation_id = allocation->correlation_id,
			     .numbers = {PLACE(allocation->place), allocation->when_ns,
					 allocation->address, allocation->bytes,
					 allocation->memory_kind}});
}

void sim_truth_node(uint64_t id, uint64_t origin, uint32_t type)
{
	note(&(struct entry){.kind = ENTRY_NODE, .numbers = {id, origin, type}});
}

void sim_truth_node_set(uint64_t node_id, uint32_t graph_exec_id)
{
	note(&(struct entry){.kind = ENTRY_CHANGE, .numbers = {node_id, graph_exec_id}});
}

void sim_truth_update(uint32_t graph_exec_id, uint32_t graph_id)
{
	note(&(struct entry){.kind = ENTRY_UPDATE, .numbers = {graph_exec_id, graph_id}});
}

void sim_truth_maker(uint64_t node_id, struct sim_maker maker)
{
	note(&(struct entry){
		.kind = ENTRY_MAKER,
		.correlation_id = sim_correlation_id(),
		.numbers = {node_id, (uint64_t)maker.tid, maker.call_number, maker.is_of_child}});
}

void sim_truth_by_device(uint64_t node_id, uint64_t start_ns)
{
	note(&(struct entry){.kind = ENTRY_BY_DEVICE,
			     .correlation_id = sim_correlation_id(),
			     .numbers = {node_id, start_ns}});
}

void sim_truth_violation(const struct sim_call *call)
{
	fprintf(stderr, "xtrace simulated GPU: %s was called within a callback\n", call->api->name);
	if (sim_truth_is_on())
		note(&(struct entry){.kind = ENTRY_VIOLATION, .name = call->api->name});
}

/* Work that never ends has the end 0. Returns whether the entry is of work that is over. */
static bool write_entry(FILE *file, const struct entry *entry, uint64_t now_ns)
{
	uint64_t end_ns = entry->numbers[END_NUMBER];
	bool is_work = lines[entry->kind].unfinished, is_over = end_ns && end_ns <= now_ns;
	const uint64_t *number = entry->numbers;

	fputs(is_work && !is_over ? lines[entry->kind].unfinished : lines[entry->kind].word, file);
	for (const char *field = lines[entry->kind].fields; *field; field++) {
		int count = *field - '0';

		if (*field == 't') {
			fprintf(file, " %d", entry->tid);
		} else if (*field == 'n') {
			fprintf(file, " %" PRIu32, entry->call_number);
		} else if (*field == 'c') {
			fprintf(file, " %" PRIu32, entry->correlation_id);
		} else if (*field == 's') {
			fprintf(file, " %s", entry->name);
		} else if (*field == 'a' && entry->absent) {
			fprintf(file, " %s 0", entry->absent);
			number += 2;
		} else {
			for (count = *field == 'a' ? 2 : count; count; count--)
				fprintf(file, " %" PRIu64, *number++);
		}
	}
	fputc('\n', file);
	return is_work && is_over;
}

/* Returns the file's name with %p replaced by the process id, or NULL. The caller frees it. */
static char *truth_file_name(void)
{
	const char *path = sim_config()->truth_path;
	const char *mark = strstr(path, "%p");
	char *name;

	if (!mark)
		return strdup(path);
	if (asprintf(&name, "%.*s%d%s", (int)(mark - path), path, getpid(), mark + 2) < 0)
		return NULL;
	return name;
}

/* Runs after the destructor of deferred.c, which has none of these priorities. */
__attribute__((destructor(200))) static void write_truth(void)
{
	uint64_t now_ns = sim_now_ns(), kernel_count = 0;
	char *name;
	FILE *file;

	if (!sim_truth_is_on() || !sim_is_ready())
		return;
	name = truth_file_name();
	file = name ? fopen(name, "we") : NULL;
	if (!file)
		perror("xtrace simulated GPU: the ground truth cannot be written");
	free(name);
	if (!file)
		return;
	for (const struct sim_truth_chunk *chunk = atomic_load(&chunks); chunk;
	     chunk = chunk->next) {
		uint32_t count = atomic_load_explicit(&chunk->count, memory_order_acquire);

		for (uint32_t i = 0; i < count; i++)
			kernel_count += write_entry(file, &chunk->entries[i], now_ns) &&
					chunk->entries[i].kind == ENTRY_KERNEL;
	}
	if (atomic_load(&lost_count))
		fprintf(file, "lost %" PRIu64 "\n", atomic_load(&lost_count));
	else
		fprintf(file, "end %" PRIu64 "\n", kernel_count);
	if (fclose(file))
		perror("xtrace simulated GPU: the ground truth cannot be written");
}

/*
 * Below, work whose place on the timeline is known is reported to the ground truth and the tracer,
 * by the thread that found the place.
 */
bool sim_activity_is_on(enum sim_switch activity)
{
	return atomic_load_explicit(&sim_switches.activity_enabled[activity], memory_order_acquire);
}

static const struct sim_tracer *tracer(void)
{
	return atomic_load_explicit(&sim_switches.tracer, memory_order_acquire);
}

void sim_kernel_deliver(const struct sim_kernel_run *run)
{
	if (sim_truth_is_on())
		sim_truth_kernel(run);
	if (!run->is_unrecorded && sim_activity_is_on(SIM_SWITCH_KERNEL))
		tracer()->kernel(run);
}

void sim_graph_deliver(const struct sim_graph_run *run)
{
	if (sim_truth_is_on())
		sim_truth_graph(run);
	if (run->is_recorded)
		tracer()->graph(run);
}

static void deliver(const struct sim_memory_run *run, bool is_set)
{
	if (sim_truth_is_on())
		sim_truth_transfer(run, is_set);
	if (!run->is_unrecorded && sim_activity_is_on(is_set ? SIM_SWITCH_SET : SIM_SWITCH_COPY))
		(is_set ? tracer()->set : tracer()->copy)(run);
}

/* One half after the other: out of the source, and into the destination. */
static void deliver_halves(const struct sim_memory_run *run)
{
	uint64_t middle_ns = run->span.start_ns + (run->span.end_ns - run->span.start_ns) / 2;
	struct sim_memory_run half = *run;

	half.copy_kind = XT_CUPTI_COPY_DTOH;
	half.place = run->source;
	half.span.end_ns = middle_ns;
	deliver(&half, false);
	half.copy_kind = XT_CUPTI_COPY_HTOD;
	half.place = run->destination;
	half.span = (struct sim_span){middle_ns, run->span.end_ns};
	deliver(&half, false);
}

void sim_transfer_deliver(const struct sim_memory_run *run, bool is_set)
{
	if (run->is_staged)
		deliver_halves(run);
	else
		deliver(run, is_set);
}
