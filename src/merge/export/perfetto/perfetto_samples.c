/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of host threads in a Perfetto trace. Each thread has a track for them below its own,
 * because calls and frames would not nest.
 */
#include "merge/export/perfetto/perfetto_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/export/perfetto/perfetto_events.h"
#include "merge/export/perfetto/perfetto_tracks.h"

#define STATE_BYTES 96

/* Returns the annotation of a slice, as a value. NAME_FAILED if out of memory. */
static uint32_t state_value(struct perfetto *p, const struct sample_slice *slice)
{
	const char *state = cpu_state_name((enum xt_cpu_state)slice->state);
	char text[STATE_BYTES];

	if (slice->wait_tid)
		snprintf(text, sizeof(text), "%s, waits for thread %u of process %u", state,
			 slice->wait_tid, slice->wait_pid);
	else
		snprintf(text, sizeof(text), "%s", state);
	return names_intern(&p->values, text, strlen(text));
}

static int begin_slice(void *context, const struct sample_slice *slice)
{
	struct sink *sink = context;
	struct perfetto *p = sink->state;
	const struct paths *paths = p->sampled->paths;
	uint32_t value = slice->is_innermost ? state_value(p, slice) : 0;
	struct perfetto_event event = {
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN,
		.time_ns = perfetto_time(p->sampled, slice->from_ns),
		.name = slice->name + 1,
		.stack = slice->is_innermost ? slice->node : 0,
		.text = value,
		.text_is = ANNOTATION_STATE,
	};

	if (value == NAME_FAILED ||
	    perfetto_intern_name(sink, &p->samples, &paths->names, slice->name) < 0 ||
	    (value && perfetto_intern_value(sink, &p->samples, value) < 0) ||
	    perfetto_intern_path(sink, &p->samples, paths, event.stack) < 0)
		return -ENOMEM;
	perfetto_put_event(sink, &p->samples, &event);
	return 0;
}

static int end_slice(void *context, const struct sample_slice *slice, uint64_t until_ns)
{
	struct sink *sink = context;
	struct perfetto *p = sink->state;
	const struct perfetto_event event = {
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END,
		.time_ns = perfetto_time(p->sampled, until_ns),
	};

	(void)slice;
	perfetto_put_event(sink, &p->samples, &event);
	return 0;
}

static int begin_track(struct sink *sink, const struct process *process,
		       const struct cpu_sample *sample)
{
	struct perfetto *p = sink->state;
	uint64_t parent = p->process_track, track;

	if (sample->tid)
		parent = perfetto_thread_track(sink, process, sample->thread);
	track = parent ? perfetto_add_track(sink, parent, "CPU samples") : 0;
	return track ? perfetto_begin_sequence(sink, &p->samples, track) : -ENOMEM;
}

int perfetto_put_sample(struct sink *sink, const struct process *process,
			const struct cpu_sample *sample)
{
	struct perfetto *p = sink->state;
	int error = 0;

	if (!p->samples.id || p->chart.tid != sample->tid) {
		error = perfetto_end_samples(sink);
		if (!error)
			error = begin_track(sink, process, sample);
	}
	if (error)
		return error;
	p->sampled = process;
	p->chart.tid = sample->tid;
	p->chart.begin = begin_slice;
	p->chart.end = end_slice;
	p->chart.context = sink;
	return sample_chart_add(&p->chart, process, sample);
}

int perfetto_end_samples(struct sink *sink)
{
	struct perfetto *p = sink->state;
	int error = sample_chart_end(&p->chart);

	perfetto_forget_sequence(&p->samples);
	return error;
}
