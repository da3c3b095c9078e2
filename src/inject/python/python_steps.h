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

#include "inject/python/python_runtime.h"

#define PYTHON_STEPS_UNASKED 8 /* a power of two */

struct python_step {
	uint64_t code; /* as the frame has it, and so on; a shim has them, too */
	uint64_t instruction;
	union {
		uintptr_t
			behind; /* where the next frame was, the last time; of a shim: where it has to be */
		uintptr_t
			anchor; /* PYTHON_BY_FLAG: what lies in the frame of the loop, if its run ends here */
	};
	uint32_t version; /* of the code, if it has one */
	uint32_t owner;
};

/* The object, without the tags that a frame may have in its pointer. */
static inline uintptr_t python_code_of(const struct python_step *step)
{
	return step->code & ~UINT64_C(3);
}

static inline bool python_is_shim(const struct python_layout *layout, uintptr_t frame)
{
	return layout->division == PYTHON_BY_SHIM &&
	       python_load(frame + layout->frame_owner, 1) >= PYTHON_OWNER_SHIM;
}

/* To 3.11. */
static inline bool python_step_is_equal(const struct python_layout *layout, uintptr_t frame,
					uintptr_t *cframe, const struct python_step *step)
{
	if (python_load(frame + layout->frame_code, 8) != step->code ||
	    python_load(frame + layout->frame_instruction, layout->instruction_bytes ? 4 : 8) !=
		    step->instruction)
		return false;
	if (layout->division != PYTHON_BY_FLAG)
		return true;
	if (!python_load(frame + layout->frame_is_entry, 1))
		return !step->anchor;
	if (step->anchor != *cframe)
		return false;
	*cframe = python_load(*cframe + layout->cframe_previous, 8);
	return true;
}

/* A frame that is not where it was the last time is still the same, unless it is a shim or there was none. */
static inline bool python_may_be_elsewhere(uintptr_t frame, const struct python_step *step,
					   const struct python_step *end)
{
	return frame && step < end && step->owner < PYTHON_OWNER_SHIM;
}

/*
 * From 3.12 on. A frame most often is where it was the last time. Once that is known it is looked at there,
 * rather than where the pointer leads to, which is the same: so a processor, which guesses that it will be right, need
 * not wait for one frame to look at the next.
 */
static inline bool python_steps_with_shims_are_equal(const struct python_runtime *python,
						     const struct python_thread *thread,
						     uintptr_t *first_frame,
						     struct python_step *step,
						     const struct python_step *end)
{
	/* (Fetched once: the compiler would do so each time.) */
	const uintptr_t owner_at = python->layout.frame_owner, code_at = python->layout.frame_code,
			instruction_at = python->layout.frame_instruction,
			previous_at = python->layout.frame_previous;
	uintptr_t frame, *last_time = first_frame, pointer = thread->innermost;

	for (uint32_t unasked = 0;; step++) {
		frame = *last_time;
		__asm__("" : "+r"(frame)); /* or the compiler would use the pointer */
		if (__builtin_expect(pointer != *last_time, 0)) {
			if (!python_may_be_elsewhere(pointer, step, end))
				return false;
			*last_time = frame = pointer;
		}
		if (step == end)
			return !frame;
		if (++unasked % PYTHON_STEPS_UNASKED == 0 &&
		    python_is_finalizing(python, thread->state))
			return false;
		if ((python_load(frame + code_at, 8) ^ step->code) |
		    (python_load(frame + instruction_at, 8) ^ step->instruction) |
		    (python_load(frame + owner_at, 1) ^ step->owner))
			return false;
		pointer = python_load(frame + previous_at, 8);
		last_time = &step->behind;
	}
}

/* Is the chain of that thread the one that these steps are of, to its end? It began at *first_frame the last time. */
static inline bool python_steps_are_equal(const struct python_runtime *python,
					  const struct python_thread *thread,
					  uintptr_t *first_frame, struct python_step *steps,
					  uint32_t step_count)
{
	const struct python_layout *layout = &python->layout;
	uintptr_t cframe = thread->cframe, frame = thread->innermost;

	if (__builtin_expect(layout->division == PYTHON_BY_SHIM, 1))
		return python_steps_with_shims_are_equal(python, thread, first_frame, steps,
							 steps + step_count);
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

/* Where the chain leads through the same code objects, these are there to be looked at: is each the one that it was? */
static inline bool python_versions_are_equal(const struct python_layout *layout,
					     const struct python_step *steps, uint32_t step_count)
{
	const uintptr_t version_at = layout->code_version;
	uint32_t difference = 0;

	for (uint32_t i = 0; i < step_count && version_at; i++) {
		uintptr_t at = python_code_of(&steps[i]) + version_at;

		/* (Of a shim the same with itself.) */
		at = steps[i].owner < PYTHON_OWNER_SHIM ? at : (uintptr_t)&steps[i].version;
		difference |= steps[i].version ^ (uint32_t)python_load(at, 4);
	}
	return !difference;
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
	if (python_is_shim(layout, frame))
		return python_path_key(key, 0, 0);
	return python_path_key(
		key, python_load(frame + layout->frame_code, 8),
		python_load(frame + layout->frame_instruction, layout->instruction_bytes ? 4 : 8));
}

#endif
