/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack as it is shown: native frames and Python's in one order. A frame of the interpreter's loop
 * is replaced by the Python frames that it runs.
 */
#ifndef XT_MERGE_MERGE_PYTHON_FRAMES_H
#define XT_MERGE_MERGE_PYTHON_FRAMES_H

#include <stdbool.h>

#include "merge/read/model.h"

enum python_shown {
	PYTHON_MIXED, /* among the native frames, but for the interpreter's own */
	PYTHON_ONLY,  /* of stacks that have Python frames, these alone */
	PYTHON_OFF,
	PYTHON_FULL, /* among all native frames */
};

enum merged_kind {
	MERGED_NATIVE,	  /* index: of the stack's frames */
	MERGED_PYTHON,	  /* index: XT_PYTHON_FRAME_ID */
	MERGED_TRUNCATED, /* here frames are missing */
};

struct merged_frame {
	enum merged_kind kind;
	uint32_t index;
};

/* Goes over one stack, from the outermost frame to the innermost. */
struct frame_merge {
	const struct stack *stack;
	const struct python_place *python;
	uint32_t python_left;
	uint32_t first, native_left; /* native frames [first, native_left) are left */
	bool skips_native;
	bool is_truncated; /* and this was not said yet */
	/* The addresses of the native frames and, by address, those that are not shown; NULL: all are. */
	const uint32_t *addresses;
	const uint8_t *hidden;
};

/* Of its native frames, those at [first, end) are shown. */
void frame_merge_begin(struct frame_merge *frame_merge, const struct model *model,
		       const struct stack *stack, uint32_t first, uint32_t end,
		       enum python_shown shown);

/* The next frame; false if there is none. */
bool frame_merge_next(struct frame_merge *frame_merge, struct merged_frame *out);

#endif
