/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of host threads in a Chrome trace. Each thread has a separate track for them, because
 * calls and frames would not nest.
 */
#include "merge/export/chrome/chrome_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/export/chrome/chrome_text.h"
#include "merge/export/chrome/chrome_tracks.h"

static char *put_args(char *p, const struct sample_slice *slice)
{
	const char *state = cpu_state_name((enum xt_cpu_state)slice->state);

	if (slice->node != PATH_ROOT) {
		p = TEXT_LITERAL(p, ",\"sf\":");
		p = text_u64(p, slice->node);
	}
	p = TEXT_LITERAL(p, ",\"args\":{\"state\":\"");
	p = text_copy(p, state, strlen(state));
	*p++ = '"';
	if (slice->wait_tid) {
		p = TEXT_LITERAL(p, ",\"waits_for_pid\":");
		p = text_u64(p, slice->wait_pid);
		p = TEXT_LITERAL(p, ",\"waits_for_tid\":");
		p = text_u64(p, slice->wait_tid);
	}
	*p++ = '}';
	return p;
}

static int put_slice(void *context, const struct sample_slice *slice, uint64_t until_ns)
{
	struct sink *sink = context;
	struct chrome *c = sink->state;
	const struct text *name = chrome_name(c, c->sampled, slice->name);
	char *p;

	if (!name || (slice->is_innermost && chrome_use_frame(c, slice->node) < 0))
		return -ENOMEM;
	p = chrome_begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = TEXT_LITERAL(p, "{\"ph\":\"X\",\"cat\":\"cpu\",\"name\":\"");
	output_advance(&sink->out, p);
	output_text(&sink->out, name->data, name->length);
	p = output_room(&sink->out, EVENT_BYTES_MAX);
	*p++ = '"';
	p = chrome_put_track(c, p, c->pid, c->sample_track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(c->sampled, slice->from_ns));
	p = TEXT_LITERAL(p, ",\"dur\":");
	p = text_us(p, (int64_t)((until_ns - slice->from_ns) & INT64_MAX));
	if (slice->is_innermost)
		p = put_args(p, slice);
	*p++ = '}';
	output_advance(&sink->out, p);
	return 0;
}

/* Begins the track of the sample's thread: "worker 4321: CPU samples". */
static int begin_track(struct sink *sink, const struct process *process,
		       const struct cpu_sample *sample)
{
	struct chrome *c = sink->state;
	const struct model *model = process->model;
	const struct thread *row =
		&model->threads.rows[sample->thread < model->threads.count ? sample->thread : 0];
	const char *thread_name = names_text(&model->names, row->name, NULL);
	char *name;
	int error;

	if (asprintf(&name, "%s %u: CPU samples", thread_name[0] ? thread_name : "[no name]",
		     sample->tid) < 0)
		return -ENOMEM;
	c->sample_track = c->next_number++;
	error = chrome_name_track(sink, c->pid, c->sample_track, name);
	free(name);
	return error;
}

int chrome_put_sample(struct sink *sink, const struct process *process,
		      const struct cpu_sample *sample)
{
	struct chrome *c = sink->state;
	int error = 0;

	if (!c->sample_track || c->chart.tid != sample->tid) {
		error = chrome_end_samples(sink);
		if (!error)
			error = begin_track(sink, process, sample);
	}
	if (error)
		return error;
	c->sampled = process;
	c->chart.tid = sample->tid;
	c->chart.end = put_slice;
	c->chart.context = sink;
	return sample_chart_add(&c->chart, process, sample);
}

int chrome_end_samples(struct sink *sink)
{
	struct chrome *c = sink->state;
	int error = sample_chart_end(&c->chart);

	c->sample_track = 0;
	return error;
}
