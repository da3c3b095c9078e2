/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/xla_join.h"

#include <stdlib.h>

#include "base/memory.h"
#include "merge/read/xla_ranges.h"
#include "xtrace/log_format.h"

#define TRIALS_MAX 64 /* the log is untrusted: further stacks of trials are ignored */

/* Stacks of trials, each once, and how many frames other work shares with them. */
struct trials {
	const struct stack *stacks[TRIALS_MAX];
	size_t shared[TRIALS_MAX];
	size_t count;
};

/* Returns the stack if it is known and has no Python frames. */
static const struct stack *native_stack(const struct model *model, uint32_t stack)
{
	const struct stack *rows = model->stacks.rows;

	return model_has_stack(model, stack) && !rows[stack].python_count ? &rows[stack] : NULL;
}

static void add_trial(struct trials *trials, const struct stack *stack)
{
	for (size_t t = 0; t < trials->count; t++)
		if (trials->stacks[t] == stack)
			return;
	if (trials->count < TRIALS_MAX)
		trials->stacks[trials->count++] = stack;
}

/* Returns how many frames two complete stacks share, from the outermost on. */
static size_t shared_frames(const struct model *model, const struct stack *a, const struct stack *b)
{
	const uint64_t *end_a = model->frames + a->first_frame + a->frame_count;
	const uint64_t *end_b = model->frames + b->first_frame + b->frame_count;
	size_t count = 0;

	if ((a->flags | b->flags) & XT_STACK_TRUNCATED)
		return 0;
	while (count < a->frame_count && count < b->frame_count &&
	       end_a[-1 - (ptrdiff_t)count] == end_b[-1 - (ptrdiff_t)count])
		count++;
	return count;
}

/* Compares stacks of trials with the stack of other work. */
static void compare_other(const struct model *model, struct trials *trials,
			  const struct stack *other)
{
	for (size_t t = 0; t < trials->count; t++) {
		size_t shared = shared_frames(model, trials->stacks[t], other);

		if (shared > trials->shared[t])
			trials->shared[t] = shared;
	}
}

/* Whether a stack shares more frames with a trial than other work does. */
static bool is_in_tuner(const struct model *model, const struct trials *trials,
			const struct stack *stack)
{
	for (size_t t = 0; t < trials->count; t++)
		if (trials->shared[t] &&
		    shared_frames(model, stack, trials->stacks[t]) > trials->shared[t])
			return true;
	return false;
}

/* Marks the stacks that code of the tuner made. is_other: by stack, whether it is other work. */
static void mark_stacks(struct model *model, struct trials *trials, const uint8_t *is_other)
{
	struct xla_tuning *tuning = &model->tuning;

	tuning->in_tuner = xt_calloc(model->stacks.count + 1, 1);
	tuning->stack_count = model->stacks.count;
	for (size_t s = 0; s < tuning->stack_count; s++)
		if (is_other[s])
			compare_other(model, trials, &model->stacks.rows[s]);
	for (uint32_t s = 0; s < tuning->stack_count; s++)
		tuning->in_tuner[s] = native_stack(model, s) &&
				      is_in_tuner(model, trials, native_stack(model, s));
}

static enum tuning_kind tuning_kind(const struct model *model, uint32_t range)
{
	switch (xla_range_kind(model, range)) {
	case XLA_COMPILE:
		return TUNING_COMPILE;
	case XLA_TUNING:
		return TUNING_PASS;
	case XLA_TRIAL:
		/* A program that Python runs is no trial. */
		return native_stack(model, model->ranges.nodes[range].stack) ? TUNING_TRIAL
									     : TUNING_OTHER;
	default:
		return TUNING_OTHER;
	}
}

/* Sets the kinds of all nodes. Returns whether there are passes and trials. */
static bool sort_nodes(const struct model *model, uint8_t *kinds, uint8_t *in_trial)
{
	size_t counts[TUNING_KINDS] = {0};

	/* Parents come first. */
	for (uint32_t n = 1; n < model->ranges.node_count; n++) {
		kinds[n] = (uint8_t)tuning_kind(model, n);
		counts[kinds[n]]++;
		in_trial[n] = in_trial[model->ranges.nodes[n].parent] || kinds[n] == TUNING_TRIAL;
	}
	return counts[TUNING_PASS] && counts[TUNING_TRIAL];
}

/* Finds the stacks of the tuner. */
static void find_stacks(struct model *model, const uint8_t *kinds)
{
	const struct ranges *ranges = &model->ranges;
	uint8_t *is_other = xt_calloc(model->stacks.count + 1, 1);
	struct trials trials = {0};

	for (uint32_t n = 1; n < ranges->node_count; n++) {
		uint32_t stack = ranges->nodes[n].stack;

		if (kinds[n] == TUNING_TRIAL)
			add_trial(&trials, native_stack(model, stack));
		else if (!model->tuning.in_trial[n] && native_stack(model, stack))
			is_other[stack] = 1;
	}
	mark_stacks(model, &trials, is_other);
	free(is_other);
}

void xla_join(struct model *model)
{
	struct xla_tuning *tuning = &model->tuning;
	uint8_t *kinds = xt_calloc(model->ranges.node_count + 1, 1);

	tuning->in_trial = xt_calloc(model->ranges.node_count + 1, 1);
	if (sort_nodes(model, kinds, tuning->in_trial)) {
		tuning->node_count = model->ranges.node_count;
		find_stacks(model, kinds);
		xla_tuning_index(tuning, &model->ranges, kinds);
	}
	free(kinds);
}
