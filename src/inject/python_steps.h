/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames that a walk went along, and whether it is the same again.
 *
 * The chain is followed anew, by the interpreter's own pointers, and held against what the walk met:
 * where each frame's code and instruction are equal, the frames are those of the walk, wherever they
 * lie now (those of generators lie elsewhere each time). What tells the place of a frame among the
 * native ones is its address, so these are held against each other, too. As soon as something differs
 * nothing more is read, so nothing is read that a walk would not read.
 *
 * Others' states may be freed while they are looked at, if the thread was interrupted between asking
 * whether the interpreter shuts down and looking: so it is asked again every few steps.
 */
#ifndef XT_INJECT_PYTHON_STEPS_H
#define XT_INJECT_PYTHON_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/python_runtime.h"

#define PYTHON_STEPS_UNASKED 8 /* a power of two */

struct python_step {
	uint64_t code;	      /* as the frame has it; 0: this is a shim */
	uint64_t instruction; /* likewise */
	uintptr_t anchor;     /* what lies in the frame of the loop, if its run ends here; else 0 */
};

static inline bool python_step_is_equal(const struct python_layout *layout, uintptr_t frame,
					uintptr_t *cframe, const struct python_step *step)
{
	bool is_entry = false;

	if (layout->division == PYTHON_BY_SHIM &&
	    python_load(frame + layout->frame_owner, 1) >= PYTHON_OWNER_SHIM)
		return !step->code && step->anchor == frame;
	if (python_load(frame + layout->frame_code, 8) != step->code ||
	    python_load(frame + layout->frame_instruction, layout->instruction_bytes ? 4 : 8) !=
		    step->instruction)
		return false;
	if (layout->division == PYTHON_BY_FLAG)
		is_entry = python_load(frame + layout->frame_is_entry, 1) != 0;
	if (!is_entry)
		return !step->anchor;
	if (step->anchor != *cframe)
		return false;
	*cframe = python_load(*cframe + layout->cframe_previous, 8);
	return true;
}

/* The innermost frame of a thread that was entered, 0 if it has none. */
static inline uintptr_t python_first_frame(const struct python_layout *layout,
					   const struct python_thread *thread, uintptr_t *cframe)
{
	*cframe = thread->innermost;
	return layout->state_cframe ? python_load(*cframe + layout->cframe_frame, 8) : *cframe;
}

/* Is the chain of that thread the one that these steps are of, to its end? */
static inline bool python_steps_are_equal(const struct python_runtime *python,
					  const struct python_thread *thread,
					  const struct python_step *steps, uint32_t step_count)
{
	const struct python_layout *layout = &python->layout;
	uintptr_t cframe, frame = python_first_frame(layout, thread, &cframe);

	for (uint32_t i = 0; i < step_count; i++) {
		if (i % PYTHON_STEPS_UNASKED == PYTHON_STEPS_UNASKED - 1 &&
		    python_is_finalizing(python, thread->state))
			return false;
		if (!frame || !python_step_is_equal(layout, frame, &cframe, &steps[i]))
			return false;
		frame = python_load(frame + layout->frame_previous, 8);
	}
	return !frame;
}

/* What a frame's code and instruction come to, after those of the frames further in. */
static inline uint64_t python_path_key(uint64_t key, uint64_t code, uint64_t instruction)
{
	key = (key ^ code) * UINT64_C(0x9e3779b97f4a7c15);
	key = ((key ^ key >> 32) ^ instruction) * UINT64_C(0xd6e8feb86659fd93);
	return key ^ key >> 29;
}

/* The same of a frame that stands there now; 0: there is none. */
static inline uint64_t python_frame_key(const struct python_layout *layout, uint64_t key,
					uintptr_t frame)
{
	if (!frame)
		return python_path_key(key, 0, 1);
	if (layout->division == PYTHON_BY_SHIM &&
	    python_load(frame + layout->frame_owner, 1) >= PYTHON_OWNER_SHIM)
		return python_path_key(key, 0, 0);
	return python_path_key(
		key, python_load(frame + layout->frame_code, 8),
		python_load(frame + layout->frame_instruction, layout->instruction_bytes ? 4 : 8));
}

#endif
