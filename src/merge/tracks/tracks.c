/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/tracks.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/tracks/track_labels.h"

#define STATE_BYTES 96

void *tracks_begin(struct sink *sink, const struct track_writer *writer, size_t state_bytes)
{
	struct tracks *t = xt_calloc(1, state_bytes);

	t->writer = writer;
	t->next_number = TRACK_NUMBERS_FIRST;
	if (names_init(&t->texts) < 0)
		xt_out_of_memory(0);
	sink->state = t;
	return t;
}

static void end_log(struct tracks *t)
{
	track_labels_end(t);
	track_ranges_free(t);
	tracks_end_log(t);
	t->samples = NULL;
}

void tracks_free(struct sink *sink)
{
	struct tracks *t = sink->state;

	if (!t)
		return;
	end_log(t);
	tracks_free_all(t);
	sample_chart_free(&t->chart);
	names_free(&t->texts);
	free(t);
	sink->state = NULL;
}

int tracks_process(struct sink *sink, const struct process *process)
{
	struct tracks *t = sink->state;

	end_log(t);
	t->sink = sink;
	tracks_begin_log(t, process);
	track_labels_begin(t);
	return 0;
}

/* Returns the number of the flow from a call to its work; 0 if no work is expected. */
static uint64_t flow_of(const struct process *process, const struct launch *call)
{
	if (!(call->flags & LAUNCH_EXPECTED) || call->flags & LAUNCH_MEMORY)
		return 0;
	return (process->index + 1) << 48 ^ call->correlation;
}

int tracks_call(struct sink *sink, const struct process *process, const struct launch *call,
		uint64_t duration_ns, uint64_t result)
{
	struct tracks *t = sink->state;
	struct track_arg args[2];
	struct track_span span = {
		.track = tracks_thread(t, call->thread),
		.start_ns = call->enter_ns,
		.duration_ns = duration_ns,
		.args = args,
		.flow = flow_of(process, call),
		.name = frames_api_name(process->frames, call->stack, call->api),
		.stack = call->stack,
		.category = CATEGORY_API,
	};

	if (!t->writer->is_compact)
		args[span.arg_count++] = (struct track_arg){
			.key = ARG_CORRELATION, .type = ARG_NUMBER, .number = call->correlation};
	if (result)
		args[span.arg_count++] =
			(struct track_arg){.key = ARG_ERROR, .type = ARG_NUMBER, .number = result};
	t->writer->span(t, &span);
	return 0;
}

static uint8_t work_args(const struct tracks *t, const struct work *work, struct track_arg args[4])
{
	bool is_full = !t->writer->is_compact;
	uint8_t count = 0;

	if (is_full)
		args[count++] = (struct track_arg){
			.key = ARG_CORRELATION, .type = ARG_NUMBER, .number = work->correlation};
	if (is_full && work->graph_node)
		args[count++] = (struct track_arg){
			.key = ARG_GRAPH_NODE, .type = ARG_NUMBER, .number = work->graph_node};
	if (work->kind == WORK_KERNEL)
		return count;
	args[count++] =
		(struct track_arg){.key = ARG_BYTES, .type = ARG_NUMBER, .number = work->bytes};
	/* Bytes per nanosecond are gigabytes per second. */
	if (is_full && work->duration_ns)
		args[count++] =
			(struct track_arg){.key = ARG_BANDWIDTH,
					   .type = ARG_THOUSANDTHS,
					   .number = (uint64_t)((unsigned __int128)work->bytes *
								1000 / work->duration_ns)};
	return count;
}

/* One flow visits all kernels of a graph in turn. Otherwise it ends at the first kernel. */
int tracks_work(struct sink *sink, const struct process *process, const struct work *work,
		const struct launch *launch)
{
	static const uint8_t categories[WORK_KINDS] = {[WORK_KERNEL] = CATEGORY_KERNEL,
						       [WORK_COPY] = CATEGORY_COPY,
						       [WORK_MEMSET] = CATEGORY_MEMSET};
	struct tracks *t = sink->state;
	struct track_arg args[4];
	struct track_span span = {
		.label = track_label(t, work),
		.track = tracks_lane(t, work),
		.start_ns = work->start_ns,
		.duration_ns = work->duration_ns,
		.args = args,
		.launch = launch,
		.flow = launch ? flow_of(process, launch) : 0,
		.stack = launch ? launch->stack : 0,
		.category = categories[work->kind],
		.ends_flow = !work->graph_node,
	};

	span.name = span.label->name;
	span.arg_count = work_args(t, work, args);
	t->writer->span(t, &span);
	return 0;
}

int tracks_memory(struct sink *sink, const struct process *process, uint32_t pool, uint64_t time_ns,
		  uint64_t live_bytes)
{
	static const struct track_counter allocated = {"allocated memory", "memory", "bytes"};
	struct tracks *t = sink->state;
	struct track **track = &t->memory[pool];

	(void)process;
	if (!*track)
		*track = tracks_add(t, &(struct track){.kind = TRACK_COUNTER,
						       .parent = pool == MEMORY_POOL_HOST
									 ? t->root
									 : tracks_device(t, pool),
						       .name = allocated.name,
						       .number = pool,
						       .counter = &allocated});
	t->writer->counter(t, *track, time_ns, live_bytes);
	return 0;
}

static uint8_t sample_args(struct tracks *t, const struct sample_slice *slice,
			   struct track_arg args[3])
{
	const char *state = cpu_state_name((enum xt_cpu_state)slice->state);
	char text[STATE_BYTES];

	args[0] = (struct track_arg){.key = ARG_STATE, .type = ARG_TEXT, .text = state};
	if (t->writer->is_compact) {
		if (slice->wait_tid)
			snprintf(text, sizeof(text), "%s, waits for thread %u of process %u", state,
				 slice->wait_tid, slice->wait_pid);
		else
			snprintf(text, sizeof(text), "%s", state);
		args[0].type = ARG_INTERNED;
		args[0].name = tracks_need(names_intern(&t->texts, text, strlen(text)));
		return 1;
	}
	args[1] = (struct track_arg){
		.key = ARG_WAIT_PID, .type = ARG_NUMBER, .number = slice->wait_pid};
	args[2] = (struct track_arg){
		.key = ARG_WAIT_TID, .type = ARG_NUMBER, .number = slice->wait_tid};
	return slice->wait_tid ? 3 : 1;
}

static void put_slice(struct tracks *t, const struct sample_slice *slice, bool ends,
		      uint64_t until_ns)
{
	struct track_arg args[3];
	struct track_span span = {
		.track = t->samples,
		.start_ns = slice->from_ns,
		.name = slice->name,
		.category = CATEGORY_CPU,
	};

	if (slice->is_innermost) {
		span.args = args;
		span.arg_count = sample_args(t, slice, args);
		span.node = slice->node;
	}
	if (ends)
		t->writer->end(t, &span, until_ns);
	else
		t->writer->begin(t, &span);
}

static int begin_slice(void *context, const struct sample_slice *slice)
{
	put_slice(context, slice, false, 0);
	return 0;
}

static int end_slice(void *context, const struct sample_slice *slice, uint64_t until_ns)
{
	put_slice(context, slice, true, until_ns);
	return 0;
}

static void end_samples(struct tracks *t)
{
	sample_chart_end(&t->chart);
	t->samples = NULL;
}

int tracks_sample(struct sink *sink, const struct process *process, const struct cpu_sample *sample)
{
	struct tracks *t = sink->state;

	if (t->samples && t->chart.tid != sample->tid)
		end_samples(t);
	if (!t->samples)
		t->samples = tracks_add_to_thread(t, sample->thread, TRACK_SAMPLES, "CPU samples");
	t->chart.tid = sample->tid;
	t->chart.begin = t->writer->begin ? begin_slice : NULL;
	t->chart.end = end_slice;
	t->chart.context = t;
	return sample_chart_add(&t->chart, process, sample);
}

int tracks_process_end(struct sink *sink, const struct process *process)
{
	struct tracks *t = sink->state;

	if (process->cpu)
		end_samples(t);
	else
		track_ranges_end(t);
	return 0;
}
