/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tracks/sample_chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/naming/joined_paths.h"

static int add_name(struct sample_chart *chart, uint32_t name)
{
	if (name == NAME_FAILED || grow(&chart->next, &chart->next_capacity, chart->next_depth + 1,
					sizeof(*chart->next)) < 0)
		return -ENOMEM;
	chart->next[chart->next_depth++] = (struct sample_slice){.name = name};
	return 0;
}

static int add_text(struct sample_chart *chart, struct names *names, const char *text)
{
	return add_name(chart, names_intern(names, text, strlen(text)));
}

/* Lists the frames of a stack. Returns 0 or -ENOMEM. */
static int list_frames(struct sample_chart *chart, const struct process *process, uint32_t node)
{
	int depth = paths_chain(process->paths, node, &chart->chain, &chart->chain_capacity);
	int error = depth < 0 ? depth : 0;

	for (int d = 0; d < depth && !error; d++)
		error = add_name(chart, process->paths->nodes[chart->chain[d]].name);
	return error;
}

/* Lists the slices of a sample, outermost first. Returns 0 or -ENOMEM. */
static int list_next(struct sample_chart *chart, const struct process *process,
		     const struct cpu_sample *sample)
{
	const struct frames *frames = process->frames;
	uint32_t stack = frames_has_stack(frames, sample->stack) ? sample->stack : 0;
	uint32_t node = stack ? joined_paths_node(frames, stack) : PATH_ROOT;
	struct sample_slice *last;
	const char *label;
	int error = node == PATH_FAILED ? -ENOMEM : 0;

	chart->next_depth = 0;
	if (!error && stack)
		error = list_frames(chart, process, node);
	if (!error && frames_knows_api(frames, stack, MODEL_API_UNKNOWN))
		error = add_name(chart, frames_api_name(frames, stack, MODEL_API_UNKNOWN));
	label = cpu_sample_label((enum xt_cpu_state)sample->state, chart->next_depth);
	if (!error && label)
		error = add_text(chart, process->names->shown, label);
	if (error)
		return error;
	last = &chart->next[chart->next_depth - 1];
	last->is_innermost = true;
	last->state = sample->state;
	last->node = node;
	last->wait_pid = sample->wait_tid ? sample->wait_pid : 0;
	last->wait_tid = sample->wait_tid;
	return 0;
}

static bool is_same(const struct sample_slice *a, const struct sample_slice *b)
{
	return a->name == b->name && a->is_innermost == b->is_innermost && a->state == b->state &&
	       a->node == b->node && a->wait_pid == b->wait_pid && a->wait_tid == b->wait_tid;
}

/* Ends the open slices from this depth on. */
static int close_to(struct sample_chart *chart, size_t depth)
{
	int error = 0;

	while (chart->depth > depth && !error)
		error = chart->end(chart->context, &chart->open[--chart->depth], chart->until_ns);
	return error;
}

static int open_next(struct sample_chart *chart, uint64_t from_ns)
{
	int error = grow(&chart->open, &chart->capacity, chart->next_depth, sizeof(*chart->open));

	while (chart->depth < chart->next_depth && !error) {
		struct sample_slice *slice = &chart->open[chart->depth];

		*slice = chart->next[chart->depth++];
		slice->from_ns = from_ns;
		error = chart->begin ? chart->begin(chart->context, slice) : 0;
	}
	return error;
}

int sample_chart_add(struct sample_chart *chart, const struct process *process,
		     const struct cpu_sample *sample)
{
	struct cpu_cover cover = sample->cover;
	size_t shared = 0;
	int error;

	/* Damaged logs have samples that overlap. */
	if (chart->depth && chart->tid == sample->tid && cover.from_ns < chart->until_ns)
		cover.from_ns = chart->until_ns;
	if (cover.until_ns <= cover.from_ns)
		return 0;
	error = list_next(chart, process, sample);
	if (error)
		return error;
	if (chart->tid == sample->tid && cover.from_ns == chart->until_ns)
		while (shared < chart->depth && shared < chart->next_depth &&
		       is_same(&chart->open[shared], &chart->next[shared]))
			shared++;
	error = close_to(chart, shared);
	if (!error)
		error = open_next(chart, cover.from_ns);
	chart->tid = sample->tid;
	chart->until_ns = cover.until_ns;
	return error;
}

int sample_chart_end(struct sample_chart *chart)
{
	return close_to(chart, 0);
}

void sample_chart_free(struct sample_chart *chart)
{
	free(chart->open);
	free(chart->next);
	free(chart->chain);
	*chart = (struct sample_chart){0};
}
