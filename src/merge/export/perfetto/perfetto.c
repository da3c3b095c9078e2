/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's native format: API calls on thread tracks, GPU work on stream tracks with flows
 * from the calls, NVTX ranges and samples below their threads, and counters of allocated memory.
 *
 * Rare packets (tracks, interned strings) go through protobuf-c. Events are encoded by hand for
 * speed (perfetto_events.c).
 */
#include "merge/export/perfetto/perfetto_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"

#include "merge/export/perfetto/perfetto_events.h"
#include "merge/export/perfetto/perfetto_packets.h"
#include "merge/export/perfetto/perfetto_ranges.h"
#include "merge/export/perfetto/perfetto_samples.h"
#include "merge/export/perfetto/perfetto_tracks.h"
#include "merge/export/perfetto/perfetto_work.h"

#define PIDS_FIRST (1u << 24) /* first synthetic pid: above any real pid */

static int begin(struct sink *sink)
{
	struct perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	sink->state = p;
	p->next_track = 1;
	p->next_sequence = 1;
	p->next_pid = PIDS_FIRST;
	return names_init(&p->values);
}

/* Returns the flow id from a call to its work, unique in the trace. 0 if no work is expected. */
static uint64_t flow_of(const struct process *process, const struct launch *call)
{
	if (!(call->flags & LAUNCH_EXPECTED) || call->flags & LAUNCH_MEMORY)
		return 0;
	return (process->index + 1) << 48 ^ call->correlation;
}

static int put_call(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result)
{
	struct sequence *sequence = perfetto_thread(sink, process, call->thread);
	uint32_t name = frames_api_name(process->frames, call->stack, call->api), node;
	struct perfetto_event event;

	if (!sequence || perfetto_intern_name(sink, sequence, &process->paths->names, name) < 0 ||
	    perfetto_intern_stack(sink, sequence, process, call->stack, &node) < 0)
		return -ENOMEM;
	event = (struct perfetto_event){
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN,
		.time_ns = perfetto_time(process, call->enter_ns),
		.name = name + 1,
		.stack = node,
		.flow = flow_of(process, call),
		.number = result,
		.number_is = ANNOTATION_ERROR,
	};
	perfetto_put_event(sink, sequence, &event);
	event = (struct perfetto_event){
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END,
		.time_ns = event.time_ns + duration_ns,
	};
	perfetto_put_event(sink, sequence, &event);
	return 0;
}

/* One flow visits all kernels of a graph in turn. Otherwise the flow ends at the first kernel. */
static int put_work(struct sink *sink, const struct process *process, const struct work *work,
		    const struct launch *launch)
{
	return perfetto_put_work(sink, process, work, launch,
				 launch ? flow_of(process, launch) : 0);
}

static int put_memory(struct sink *sink, const struct process *process, uint32_t pool,
		      uint64_t time_ns, uint64_t live_bytes)
{
	struct perfetto *p = sink->state;
	struct sequence *sequence = &p->pools[pool];
	struct perfetto_event event = {
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER,
		.time_ns = perfetto_time(process, time_ns),
		.counter = (int64_t)(live_bytes & INT64_MAX),
	};
	uint64_t parent, track;

	if (!sequence->id) {
		parent = pool == MEMORY_POOL_HOST ? p->process_track
						  : perfetto_device(sink, process, pool);
		track = parent ? perfetto_add_counter(sink, parent, "allocated memory") : 0;
		if (!track || perfetto_begin_sequence(sink, sequence, track) < 0)
			return -ENOMEM;
	}
	perfetto_put_event(sink, sequence, &event);
	return 0;
}

static int end_process(struct sink *sink, const struct process *process)
{
	return process->cpu ? perfetto_end_samples(sink) : 0;
}

static int end(struct sink *sink, const struct run *run)
{
	(void)sink;
	(void)run;
	return 0;
}

static void free_state(struct sink *sink)
{
	struct perfetto *p = sink->state;

	if (!p)
		return;
	perfetto_forget_process(p);
	names_free(&p->values);
	free(p->packed);
	sample_chart_free(&p->chart);
	free(p->processes);
	free(p->known_threads);
	free(p->chain);
	free(p);
	sink->state = NULL;
}

const struct exporter exporter_perfetto = {
	.name = "perfetto",
	.what = "Write a timeline in Perfetto's native format, smaller and faster than --chrome",
	.uses = USES_TIMELINE | USES_CPU_LOGS,
	.begin = begin,
	.process = perfetto_begin_process,
	.call = put_call,
	.work = put_work,
	.memory = put_memory,
	.range = perfetto_put_range,
	.cpu_sample = perfetto_put_sample,
	.process_end = end_process,
	.end = end,
	.free = free_state,
};
