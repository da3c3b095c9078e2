/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the native and Python frames of a stack into one order. Python frames replace the frame of
 * the interpreter loop that runs them.
 */
#ifndef XT_MERGE_MERGE_PYTHON_FRAMES_H
#define XT_MERGE_MERGE_PYTHON_FRAMES_H

#include <stdbool.h>

#include "merge/read/model.h"

enum python_shown {
	PYTHON_MIXED, /* among the native frames, without those of the interpreter */
	PYTHON_ONLY,  /* without native frames, if the stack has Python frames */
	PYTHON_OFF,
	PYTHON_FULL, /* among all native frames */
};

enum merged_kind {
	MERGED_NATIVE,	  /* index: of the stack's frames */
	MERGED_PYTHON,	  /* index: XT_PYTHON_FRAME_ID */
	MERGED_TRUNCATED, /* frames are missing here */
	MERGED_LABEL,	  /* only in joined paths */
};

struct merged_frame {
	enum merged_kind kind;
	uint32_t index;
};

/* Iterator over one stack, outermost frame first. */
struct frame_merge {
	const struct stack *stack;
	const struct python_place *python;
	uint32_t python_left;
	uint32_t first, native_left; /* remaining native frames: [first, native_left) */
	bool skips_native;
	bool is_truncated; /* and MERGED_TRUNCATED was not returned yet */
	/* Addresses of the native frames, and by address whether it is hidden. NULL: none is. */
	const uint32_t *addresses;
	const uint8_t *hidden;
};

/* Starts an iteration. [first, end) are the shown native frames. */
void frame_merge_begin(struct frame_merge *merge, const struct model *model,
		       const struct stack *stack, uint32_t first, uint32_t end,
		       enum python_shown shown);

/* Sets *out to the next frame. Returns false at the end. */
bool frame_merge_next(struct frame_merge *merge, struct merged_frame *out);

#endif
