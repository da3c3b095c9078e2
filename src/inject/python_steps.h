/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of frames that a walk went along, and whether it is the same again.
 *
 * The chain is followed anew, by the interpreter's own pointers, and held against what the walk met:
 * where each frame's code and instruction are equal, the frames are those of the walk, wherever they
 * lie now (those of generators lie elsewhere each time). What tells the place of a frame among the
 * native ones is its address, so these are held against each other, too. As soon as something differs
 * nothing more is read, so nothing is read that a walk would not read.
 */
#ifndef XT_INJECT_PYTHON_STEPS_H
#define XT_INJECT_PYTHON_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/python_layout.h"

struct python_step {
	uint64_t code;	      /* as the frame has it; 0: this is a shim */
	uint64_t instruction; /* likewise */
	uintptr_t anchor;     /* what lies in the frame of the loop, if its run ends here; else 0 */
};

/* 1, 2, 4 or 8 bytes of the interpreter's, as they are at this moment. */
static inline uint64_t python_load(uintptr_t address, unsigned bytes)
{
	switch (bytes) {
	case 1:
		return __atomic_load_n((const uint8_t *)address, __ATOMIC_RELAXED);
	case 4:
		return __atomic_load_n((const uint32_t *)address, __ATOMIC_RELAXED);
	default:
		return __atomic_load_n((const uint64_t *)address, __ATOMIC_RELAXED);
	}
}

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

/* Is the chain of that state the one that these steps are of, to its end? */
static inline bool python_steps_are_equal(const struct python_layout *layout, uintptr_t state,
					  const struct python_step *steps, uint32_t step_count)
{
	uintptr_t cframe = 0, frame, at = state + layout->state_frame;

	if (layout->state_cframe) {
		cframe = python_load(state + layout->state_cframe, 8);
		at = cframe + layout->cframe_frame;
	}
	frame = python_load(at, 8);
	for (uint32_t i = 0; i < step_count; i++) {
		if (!frame || !python_step_is_equal(layout, frame, &cframe, &steps[i]))
			return false;
		frame = python_load(frame + layout->frame_previous, 8);
	}
	return !frame;
}

#endif
