/* SPDX-License-Identifier: Apache-2.0 */
/* The Python frames of a stack, as rows of the log. Writer thread only. */
#ifndef XT_INJECT_RECORD_PYTHON_H
#define XT_INJECT_RECORD_PYTHON_H

#include "inject/writer/recorder.h"

/* The Python frames of a stack. */
struct recorded_python {
	uint32_t count;
	uint64_t ids[XT_PYTHON_FRAMES_MAX];    /* XT_PYTHON_FRAME_ID, innermost first */
	uint64_t places[XT_PYTHON_FRAMES_MAX]; /* XT_STACK_PLACES */
};
/* False if out of memory for a row. */
bool record_python_frames(struct recorder *rec, const struct xt_record_stack *record,
			  struct recorded_python *out);

#endif
