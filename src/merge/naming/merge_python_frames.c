/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step decides between the next native frame and the next Python frame by the place of the
 * latter.
 */
#include "merge/naming/merge_python_frames.h"

void frame_merge_begin(struct frame_merge *frame_merge, const struct model *model,
		       const struct stack *stack, uint32_t first, uint32_t end,
		       enum python_shown shown)
{
	bool has_python = stack->python_count && shown != PYTHON_OFF;

	*frame_merge = (struct frame_merge){
		.stack = stack,
		.python = has_python ? model->python + stack->first_python : NULL,
		.python_left = has_python ? stack->python_count : 0,
		.first = first,
		.native_left = end,
		.skips_native = has_python && shown == PYTHON_ONLY,
	};
	frame_merge->is_truncated =
		stack->flags &
		(frame_merge->skips_native ? XT_STACK_PYTHON_TRUNCATED : XT_STACK_TRUNCATED);
	if (has_python && stack->flags & XT_STACK_PYTHON_TRUNCATED)
		frame_merge->is_truncated = true;
}

/* What is missing of Python's is beyond all of it; of native frames, beyond those that are there. */
static bool is_missing_here(const struct frame_merge *frame_merge, bool next_is_beyond)
{
	return frame_merge->is_truncated &&
	       (!next_is_beyond || frame_merge->stack->flags & XT_STACK_PYTHON_TRUNCATED);
}

static bool next(struct frame_merge *frame_merge, struct merged_frame *out)
{
	uint32_t place = frame_merge->python_left
				 ? frame_merge->python[frame_merge->python_left - 1].place
				 : 0;

	if (is_missing_here(frame_merge,
			    frame_merge->python_left && place >= frame_merge->stack->frame_count)) {
		frame_merge->is_truncated = false;
		*out = (struct merged_frame){MERGED_TRUNCATED, 0};
		return true;
	}
	if (frame_merge->skips_native)
		frame_merge->native_left = frame_merge->first;
	if (frame_merge->python_left && (place + 1 >= frame_merge->native_left ||
					 frame_merge->native_left <= frame_merge->first)) {
		if (place + 1 == frame_merge->native_left &&
		    frame_merge->native_left > frame_merge->first)
			frame_merge->native_left--; /* the loop that runs it */
		*out = (struct merged_frame){MERGED_PYTHON,
					     frame_merge->python[--frame_merge->python_left].frame};
		return true;
	}
	if (frame_merge->native_left <= frame_merge->first)
		return false;
	*out = (struct merged_frame){MERGED_NATIVE, --frame_merge->native_left};
	return true;
}

bool frame_merge_next(struct frame_merge *frame_merge, struct merged_frame *out)
{
	bool is_there;

	do
		is_there = next(frame_merge, out);
	while (is_there && frame_merge->hidden && out->kind == MERGED_NATIVE &&
	       frame_merge->hidden[frame_merge->addresses[out->index]]);
	return is_there;
}
