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

enum entry_kind {
	ENTRY_CALL,
	ENTRY_LAUNCH,
	ENTRY_KERNEL,
	ENTRY_COLLECTIVE,
	ENTRY_COPY,
	ENTRY_SET,
	ENTRY_GRAPH,
	ENTRY_ALLOCATION,
	ENTRY_UPDATE,
	ENTRY_NODE,
	ENTRY_CHANGE,
	ENTRY_MAKER,
	ENTRY_BY_DEVICE,
	ENTRY_VIOLATION,
	ENTRY_KINDS
};

struct entry {
	enum entry_kind kind;
	uint32_t call_number;
	int tid;
	uint32_t correlation_id;
	const char *name; /* of the API or the kernel */
	union {
		struct {
			int result;
			uint64_t times_ns[4];
		} call;
		struct sim_kernel_run kernel;
		struct {
			struct sim_place place;
			struct sim_span span;
			uint64_t communicator;
			uint64_t index;
			uint64_t bytes;
			uint64_t awaited_ns;
			uint32_t rank;
			uint32_t rank_count;
			uint32_t awaited_rank;
			const char *absent; /* NULL: it has an end */
		} collective;
		struct sim_memory_run transfer;
		struct sim_graph_run graph;
		struct sim_allocation allocation;
		struct sim_node_made node;
		struct {
			uint64_t node_id;
			uint32_t graph_exec_id;
		} change;
		struct {
			uint32_t graph_exec_id;
			uint32_t graph_id;
		} update;
		struct {
			uint64_t node_id;
			struct sim_maker by;
		} maker;
		struct {
			uint64_t node_id;
			uint64_t start_ns;
		} by_device;
	};
};

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
	note(&(struct entry){
		.kind = ENTRY_CALL,
		.correlation_id = call->correlation_id,
		.name = call->api->name,
		.call = {call->result,
			 {call->entered_ns, call->began_ns, call->ended_ns, sim_now_ns()}},
	});
}

void sim_truth_launch(const struct sim_call *call)
{
	note(&(struct entry){
		.kind = ENTRY_LAUNCH,
		.correlation_id = sim_correlation_id(),
		.name = call->api->name,
	});
}

void sim_truth_kernel(const struct sim_kernel_run *run)
{
	note(&(struct entry){
		.kind = ENTRY_KERNEL,
		.correlation_id = run->correlation_id,
		.name = run->name,
		.kernel = *run,
	});
}

void sim_truth_collective(const struct sim_kernel_run *run, const struct sim_collective *collective,
			  const char *absent)
{
	note(&(struct entry){
		.kind = ENTRY_COLLECTIVE,
		.correlation_id = run->correlation_id,
		.name = run->name,
		.collective =
			{
				.place = run->place,
				.span = run->span,
				.communicator = collective->communicator_id,
				.index = collective->index,
				.bytes = collective->bytes,
				.awaited_ns = collective->awaited_ns,
				.rank = collective->rank,
				.rank_count = collective->rank_count,
				.awaited_rank = collective->awaited_rank,
				.absent = absent,
			},
	});
}

static void note_transfer(enum entry_kind kind, const struct sim_memory_run *run)
{
	note(&(struct entry){
		.kind = kind,
		.correlation_id = run->correlation_id,
		.transfer = *run,
	});
}

void sim_truth_copy(const struct sim_memory_run *run)
{
	note_transfer(ENTRY_COPY, run);
}

void sim_truth_set(const struct sim_memory_run *run)
{
	note_transfer(ENTRY_SET, run);
}

static void sim_truth_graph(const struct sim_graph_run *run)
{
	note(&(struct entry){
		.kind = ENTRY_GRAPH,
		.correlation_id = run->correlation_id,
		.graph = *run,
	});
}

void sim_truth_allocation(const struct sim_allocation *allocation)
{
	note(&(struct entry){
		.kind = ENTRY_ALLOCATION,
		.correlation_id = allocation->correlation_id,
		.allocation = *allocation,
	});
}

void sim_truth_node(const struct sim_node_made *node)
{
	note(&(struct entry){.kind = ENTRY_NODE, .node = *node});
}

void sim_truth_node_set(uint64_t node_id, uint32_t graph_exec_id)
{
	note(&(struct entry){.kind = ENTRY_CHANGE, .change = {node_id, graph_exec_id}});
}

void sim_truth_update(uint32_t graph_exec_id, uint32_t graph_id)
{
	note(&(struct entry){.kind = ENTRY_UPDATE, .update = {graph_exec_id, graph_id}});
}

void sim_truth_maker(uint64_t node_id, struct sim_maker maker)
{
	note(&(struct entry){
		.kind = ENTRY_MAKER,
		.correlation_id = sim_correlation_id(),
		.maker = {node_id, maker},
	});
}

void sim_truth_by_device(uint64_t node_id, uint64_t start_ns)
{
	note(&(struct entry){
		.kind = ENTRY_BY_DEVICE,
		.correlation_id = sim_correlation_id(),
		.by_device = {node_id, start_ns},
	});
}

void sim_truth_violation(const struct sim_call *call)
{
	fprintf(stderr, "xtrace simulated GPU: %s was called within a callback\n", call->api->name);
	if (sim_truth_is_on())
		note(&(struct entry){.kind = ENTRY_VIOLATION, .name = call->api->name});
}

/* State while the process exits. */
struct ending {
	FILE *file;
	uint64_t now_ns;
	uint64_t kernel_count; /* finished kernels */
};

static void write_call(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file,
		"call %d %" PRIu32 " %" PRIu32 " %s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		"\n",
		entry->tid, entry->call_number, entry->correlation_id, entry->name,
		entry->call.result, entry->call.times_ns[0], entry->call.times_ns[1],
		entry->call.times_ns[2], entry->call.times_ns[3]);
}

static void write_launch(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "launch %d %" PRIu32 " %s\n", entry->tid, entry->correlation_id,
		entry->name);
}

/* Writes the fields common to all device work, followed by a space. */
static void write_work(struct ending *ending, const char *kind, uint32_t correlation_id,
		       struct sim_place place, struct sim_span span, uint64_t node_id)
{
	fprintf(ending->file,
		"%s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " ",
		kind, correlation_id, place.device_id, place.context_id, place.stream_id,
		span.start_ns, span.end_ns, node_id);
}

/* Work that never ends has the end 0. */
static bool is_over(const struct ending *ending, struct sim_span span)
{
	return span.end_ns && span.end_ns <= ending->now_ns;
}

static void write_collective(struct ending *ending, const struct entry *entry)
{
	struct sim_span span = entry->collective.span;
	struct sim_place place = entry->collective.place;

	fprintf(ending->file,
		"%s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " ",
		is_over(ending, span) ? "collective" : "unfinished_collective",
		entry->correlation_id, place.device_id, place.context_id, place.stream_id,
		span.start_ns, span.end_ns, entry->collective.communicator, entry->collective.index,
		entry->collective.rank, entry->collective.rank_count);
	if (entry->collective.absent)
		fprintf(ending->file, "%s 0", entry->collective.absent);
	else
		fprintf(ending->file, "%" PRIu32 " %" PRIu64, entry->collective.awaited_rank,
			entry->collective.awaited_ns);
	fprintf(ending->file, " %" PRIu64 " %s\n", entry->collective.bytes, entry->name);
}

static void write_kernel(struct ending *ending, const struct entry *entry)
{
	const struct sim_kernel_run *run = &entry->kernel;
	bool is_finished = is_over(ending, run->span);

	write_work(ending, is_finished ? "kernel" : "unfinished", run->correlation_id, run->place,
		   run->span, run->graph_node_id);
	fprintf(ending->file, "%s\n", run->name);
	ending->kernel_count += is_finished;
}

static void write_copy(struct ending *ending, const struct entry *entry)
{
	const struct sim_memory_run *run = &entry->transfer;
	bool is_between_devices = run->copy_kind == XT_CUPTI_COPY_PTOP;

	write_work(ending, is_over(ending, run->span) ? "copy" : "unfinished_copy",
		   run->correlation_id, run->place, run->span, run->graph_node_id);
	fprintf(ending->file, "%" PRIu64 " %u %u %u %d %" PRIu32 " %" PRIu32 "\n", run->bytes,
		run->copy_kind, run->source_kind, run->destination_kind, run->is_async,
		is_between_devices ? run->source.device_id + 1 : 0,
		is_between_devices ? run->destination.device_id + 1 : 0);
}

static void write_set(struct ending *ending, const struct entry *entry)
{
	const struct sim_memory_run *run = &entry->transfer;

	write_work(ending, is_over(ending, run->span) ? "set" : "unfinished_set",
		   run->correlation_id, run->place, run->span, run->graph_node_id);
	fprintf(ending->file, "%" PRIu64 " %u\n", run->bytes, run->destination_kind);
}

static void write_graph(struct ending *ending, const struct entry *entry)
{
	const struct sim_graph_run *run = &entry->graph;

	write_work(ending, is_over(ending, run->span) ? "graph" : "unfinished_graph",
		   run->correlation_id, run->place, run->span, run->graph_exec_id);
	fprintf(ending->file, "%" PRIu64 " %d\n", run->kernel_count, run->is_recorded);
}

static void write_allocation(struct ending *ending, const struct entry *entry)
{
	const struct sim_allocation *allocation = &entry->allocation;
	const struct sim_place *place = &allocation->place;

	fprintf(ending->file,
		"%s %d %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %u\n",
		allocation->is_release ? "free" : "alloc", entry->tid, entry->call_number,
		entry->correlation_id, place->device_id, place->context_id, place->stream_id,
		allocation->when_ns, allocation->address, allocation->bytes,
		allocation->memory_kind);
}

static void write_node(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "node %d %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 "\n",
		entry->tid, entry->call_number, entry->node.id, entry->node.origin,
		entry->node.type);
}

static void write_change(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "change %d %" PRIu32 " %" PRIu64 " %" PRIu32 "\n", entry->tid,
		entry->call_number, entry->change.node_id, entry->change.graph_exec_id);
}

static void write_update(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "update %d %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", entry->tid,
		entry->call_number, entry->update.graph_exec_id, entry->update.graph_id);
}

static void write_maker(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "maker %" PRIu32 " %" PRIu64 " %d %" PRIu32 " %d\n",
		entry->correlation_id, entry->maker.node_id, entry->maker.by.tid,
		entry->maker.by.call_number, entry->maker.by.is_of_child);
}

static void write_by_device(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "device %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", entry->correlation_id,
		entry->by_device.node_id, entry->by_device.start_ns);
}

static void write_violation(struct ending *ending, const struct entry *entry)
{
	fprintf(ending->file, "violation %d %s\n", entry->tid, entry->name);
}

static void (*const writers[ENTRY_KINDS])(struct ending *, const struct entry *) = {
	[ENTRY_CALL] = write_call,	     [ENTRY_LAUNCH] = write_launch,
	[ENTRY_KERNEL] = write_kernel,	     [ENTRY_COLLECTIVE] = write_collective,
	[ENTRY_COPY] = write_copy,	     [ENTRY_SET] = write_set,
	[ENTRY_GRAPH] = write_graph,	     [ENTRY_ALLOCATION] = write_allocation,
	[ENTRY_NODE] = write_node,	     [ENTRY_CHANGE] = write_change,
	[ENTRY_MAKER] = write_maker,	     [ENTRY_BY_DEVICE] = write_by_device,
	[ENTRY_VIOLATION] = write_violation, [ENTRY_UPDATE] = write_update,
};

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
	struct ending ending = {.now_ns = sim_now_ns()};
	char *name;

	if (!sim_truth_is_on() || !sim_is_ready())
		return;
	name = truth_file_name();
	ending.file = name ? fopen(name, "we") : NULL;
	if (!ending.file) {
		perror("xtrace simulated GPU: the ground truth cannot be written");
		free(name);
		return;
	}
	for (const struct sim_truth_chunk *chunk = atomic_load(&chunks); chunk;
	     chunk = chunk->next) {
		uint32_t count = atomic_load_explicit(&chunk->count, memory_order_acquire);

		for (uint32_t i = 0; i < count; i++)
			writers[chunk->entries[i].kind](&ending, &chunk->entries[i]);
	}
	if (atomic_load(&lost_count))
		fprintf(ending.file, "lost %" PRIu64 "\n", atomic_load(&lost_count));
	else
		fprintf(ending.file, "end %" PRIu64 "\n", ending.kernel_count);
	if (fclose(ending.file))
		perror("xtrace simulated GPU: the ground truth cannot be written");
	free(name);
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
		(is_set ? sim_truth_set : sim_truth_copy)(run);
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
