/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ground truth: what really ran, written to XTRACE_SIMGPU_TRUTH when the process exits, for
 * tests to hold a trace against. One line each, fields separated by a space:
 *
 *	launch <tid> <correlation id> <api name>	a launch-class call, successful or not
 *	kernel <correlation id> <device> <context> <stream> <start ns> <end ns> <graph node id> <name>
 *	unfinished <same fields>			was not over when the process exited
 *	violation <tid> <api name>			a driver call from within a callback
 *	end <number of kernel lines>
 *
 * Each thread notes in chunks of its own, linked into one list; a count stored with release makes
 * an entry visible to whoever writes the file. A child forked after cuInit() is not ready, and so
 * writes nothing of its parent's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/sim.h"

#define CHUNK_ENTRIES 1024

enum entry_kind { ENTRY_LAUNCH, ENTRY_KERNEL, ENTRY_VIOLATION };

struct entry {
	enum entry_kind kind;
	uint32_t correlation_id;
	int tid;
	struct sim_place place;
	struct sim_span span;
	uint64_t graph_node_id;
	const char *name;
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

static void note(const struct entry *entry)
{
	struct sim_truth_chunk *chunk = chunk_with_room(sim_thread());
	uint32_t count;

	if (!chunk) {
		atomic_fetch_add(&lost_count, 1);
		return;
	}
	count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
	chunk->entries[count] = *entry;
	atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
}

void sim_truth_launch(const struct sim_call *call)
{
	note(&(struct entry){
		.kind = ENTRY_LAUNCH,
		.correlation_id = sim_correlation_id(),
		.tid = sim_thread()->tid,
		.name = call->api->name,
	});
}

void sim_truth_kernel(const struct sim_kernel_run *run)
{
	note(&(struct entry){
		.kind = ENTRY_KERNEL,
		.correlation_id = run->correlation_id,
		.place = run->place,
		.span = run->span,
		.graph_node_id = run->graph_node_id,
		.name = run->name,
	});
}

void sim_truth_violation(const struct sim_call *call)
{
	fprintf(stderr, "xtrace simulated GPU: %s was called within a callback\n", call->api->name);
	if (sim_truth_is_on())
		note(&(struct entry){
			.kind = ENTRY_VIOLATION,
			.tid = sim_thread()->tid,
			.name = call->api->name,
		});
}

/* Returns 1 for a kernel that ran to its end. */
static int write_entry(FILE *file, const struct entry *entry, uint64_t now_ns)
{
	bool is_finished = entry->span.end_ns <= now_ns;

	switch (entry->kind) {
	case ENTRY_LAUNCH:
		fprintf(file, "launch %d %u %s\n", entry->tid, entry->correlation_id, entry->name);
		return 0;
	case ENTRY_VIOLATION:
		fprintf(file, "violation %d %s\n", entry->tid, entry->name);
		return 0;
	case ENTRY_KERNEL:
		break;
	}
	fprintf(file, "%s %u %u %u %u %llu %llu %llu %s\n", is_finished ? "kernel" : "unfinished",
		entry->correlation_id, entry->place.device_id, entry->place.context_id,
		entry->place.stream_id, (unsigned long long)entry->span.start_ns,
		(unsigned long long)entry->span.end_ns, (unsigned long long)entry->graph_node_id,
		entry->name);
	return is_finished;
}

/* The file's name with %p replaced by the process id; to be freed. NULL: no memory. */
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

__attribute__((destructor)) static void write_truth(void)
{
	uint64_t now_ns = sim_now_ns();
	uint64_t kernel_count = 0;
	char *name;
	FILE *file;

	if (!sim_truth_is_on() || !sim_is_ready())
		return;
	name = truth_file_name();
	file = name ? fopen(name, "we") : NULL;
	if (!file) {
		perror("xtrace simulated GPU: the ground truth cannot be written");
		free(name);
		return;
	}
	for (const struct sim_truth_chunk *chunk = atomic_load(&chunks); chunk;
	     chunk = chunk->next) {
		uint32_t count = atomic_load_explicit(&chunk->count, memory_order_acquire);

		for (uint32_t i = 0; i < count; i++)
			kernel_count += write_entry(file, &chunk->entries[i], now_ns);
	}
	if (atomic_load(&lost_count))
		fprintf(file, "lost %llu\n", (unsigned long long)atomic_load(&lost_count));
	else
		fprintf(file, "end %llu\n", (unsigned long long)kernel_count);
	if (fclose(file))
		perror("xtrace simulated GPU: the ground truth cannot be written");
	free(name);
}
