/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges native and Python frames. Each Python frame stores the index of the native frame that runs
 * it.
 */
#include "merge/naming/merge_python_frames.h"

void frame_merge_begin(struct frame_merge *merge, const struct model *model,
		       const struct stack *stack, uint32_t first, uint32_t end,
		       enum python_shown shown)
{
	bool has_python = stack->python_count && shown != PYTHON_OFF;

	*merge = (struct frame_merge){
		.stack = stack,
		.python = has_python ? model->python + stack->first_python : NULL,
		.python_left = has_python ? stack->python_count : 0,
		.first = first,
		.native_left = end,
		.skips_native = has_python && shown == PYTHON_ONLY,
	};
	merge->is_truncated = stack->flags & (merge->skips_native ? XT_STACK_PYTHON_TRUNCATED
								  : XT_STACK_TRUNCATED);
	if (has_python && stack->flags & XT_STACK_PYTHON_TRUNCATED)
		merge->is_truncated = true;
}

/*
 * Truncated Python frames are missing at the outer end. Truncated native frames are missing after
 * the last recorded native frame.
 */
static bool is_missing_here(const struct frame_merge *merge, bool next_is_beyond)
{
	return merge->is_truncated &&
	       (!next_is_beyond || merge->stack->flags & XT_STACK_PYTHON_TRUNCATED);
}

static bool next(struct frame_merge *merge, struct merged_frame *out)
{
	uint32_t place = merge->python_left ? merge->python[merge->python_left - 1].place : 0;

	if (is_missing_here(merge, merge->python_left && place >= merge->stack->frame_count)) {
		merge->is_truncated = false;
		*out = (struct merged_frame){MERGED_TRUNCATED, 0};
		return true;
	}
	if (merge->skips_native)
		merge->native_left = merge->first;
	if (merge->python_left &&
	    (place + 1 >= merge->native_left || merge->native_left <= merge->first)) {
		if (place + 1 == merge->native_left && merge->native_left > merge->first)
			merge->native_left--; /* skip the interpreter loop that runs it */
		*out = (struct merged_frame){MERGED_PYTHON,
					     merge->python[--merge->python_left].frame};
		return true;
	}
	if (merge->native_left <= merge->first)
		return false;
	*out = (struct merged_frame){MERGED_NATIVE, --merge->native_left};
	return true;
}

bool frame_merge_next(struct frame_merge *merge, struct merged_frame *out)
{
	bool is_there;

	do
		is_there = next(merge, out);
	while (is_there && merge->hidden && out->kind == MERGED_NATIVE &&
	       merge->hidden[merge->addresses[out->index]]);
	return is_there;
}
