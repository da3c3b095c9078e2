/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step decides between the next native frame and the next Python frame by the place of the
 * latter.
 */
#include "merge/naming/merge_python_frames.h"

void mix_begin(struct mix *mix, const struct model *model, const struct stack *stack,
	       uint32_t first, uint32_t end, enum python_shown shown)
{
	bool has_python = stack->python_count && shown != PYTHON_OFF;

	*mix = (struct mix){
		.stack = stack,
		.python = has_python ? model->python + stack->first_python : NULL,
		.python_left = has_python ? stack->python_count : 0,
		.first = first,
		.native_left = end,
		.skips_native = has_python && shown == PYTHON_ONLY,
	};
	mix->is_truncated =
		stack->flags & (mix->skips_native ? XT_STACK_PYTHON_TRUNCATED : XT_STACK_TRUNCATED);
	if (has_python && stack->flags & XT_STACK_PYTHON_TRUNCATED)
		mix->is_truncated = true;
}

/* What is missing of Python's is beyond all of it; of native frames, beyond those that are there. */
static bool is_missing_here(const struct mix *mix, bool next_is_beyond)
{
	return mix->is_truncated &&
	       (!next_is_beyond || mix->stack->flags & XT_STACK_PYTHON_TRUNCATED);
}

static bool next(struct mix *mix, struct mixed_frame *out)
{
	uint32_t place = mix->python_left ? mix->python[mix->python_left - 1].place : 0;

	if (is_missing_here(mix, mix->python_left && place >= mix->stack->frame_count)) {
		mix->is_truncated = false;
		*out = (struct mixed_frame){MIXED_TRUNCATED, 0};
		return true;
	}
	if (mix->skips_native)
		mix->native_left = mix->first;
	if (mix->python_left && (place + 1 >= mix->native_left || mix->native_left <= mix->first)) {
		if (place + 1 == mix->native_left && mix->native_left > mix->first)
			mix->native_left--; /* the loop that runs it */
		*out = (struct mixed_frame){MIXED_PYTHON, mix->python[--mix->python_left].frame};
		return true;
	}
	if (mix->native_left <= mix->first)
		return false;
	*out = (struct mixed_frame){MIXED_NATIVE, --mix->native_left};
	return true;
}

bool mix_next(struct mix *mix, struct mixed_frame *out)
{
	bool is_there;

	do
		is_there = next(mix, out);
	while (is_there && mix->hidden && out->kind == MIXED_NATIVE &&
	       mix->hidden[mix->addresses[out->index]]);
	return is_there;
}
