/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of Python frames that a walk followed, and its comparison with the current chain.
 *
 * The comparison follows the interpreter's own pointers again. If each frame has the same code and
 * instruction, the chain is the same, even if frames moved (generators do). Frame addresses that
 * determine the place among native frames are compared too. The comparison stops at the first
 * difference, so it reads nothing that a walk would not read.
 *
 * A thread interrupted between checking for shutdown and reading may see states being freed. So
 * shutdown is checked again every few steps.
 */
#ifndef XT_INJECT_PYTHON_STEPS_H
#define XT_INJECT_PYTHON_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/python/python_runtime.h"

#define PYTHON_STEPS_UNASKED 8 /* a power of two */

struct python_step {
	uint64_t code; /* raw, as in the frame; a shim has these fields too */
	uint64_t instruction;
	union {
		uintptr_t frame;  /* its address at the last comparison; required for a shim */
		uintptr_t anchor; /* PYTHON_BY_FLAG: _PyCFrame of the activation that ends here */
	};
	uint32_t version; /* of the code, if any */
	uint32_t owner;
};
_Static_assert(sizeof(struct python_step) == 32, "addresses of steps tell when to ask");

/*
 * The module that a frame of Module.__call__() runs. The code and the instruction do not tell: a
 * loop calls many modules from one line. A variant of the stack cache stores these before its
 * inputs, in elements of the same size.
 */
struct python_called {
	uintptr_t object;
	uint32_t step; /* of the frame */
	uint16_t left; /* number of elements from this one on */
	bool is_in_cell;
	uint64_t unused;
};

#define PYTHON_CELL_CONTENTS 16

/* The code object without tag bits of the frame's pointer. */
static inline uintptr_t python_code_of(const struct python_step *step)
{
	return step->code & ~UINT64_C(3);
}

static inline bool python_is_shim(const struct python_layout *layout, uintptr_t frame)
{
	return layout->division == PYTHON_BY_SHIM &&
	       python_load(frame + layout->frame_owner, 1) >= PYTHON_OWNER_SHIM;
}

/* Up to 3.11. */
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

/*
 * From 3.12 on. Most frames are where they were. After confirming that, this reads the frame at the
 * old address instead of through the pointer. The processor then predicts the branch and need not
 * wait for one frame to load the next. A frame at another address is still the same, except a shim.
 *
 * A frame keeps its code object alive, so the object is read as soon as the frame has it.
 */
static inline __attribute__((always_inline)) bool
python_steps_with_shims_are_equal(const struct python_runtime *python,
				  const struct python_thread *thread, struct python_step *step,
				  const struct python_step *end, bool has_versions)
{
	/* Loaded once; the compiler would reload them each time. */
	const uintptr_t owner_at = python->layout.frame_owner, code_at = python->layout.frame_code,
			instruction_at = python->layout.frame_instruction,
			previous_at = python->layout.frame_previous,
			version_at = python->layout.code_version;
	uintptr_t frame, pointer = thread->innermost;
	uint32_t owner;

	for (; step != end; step++) {
		frame = step->frame;
		__asm__("" : "+r"(frame)); /* keeps the compiler from using the loaded pointer */
		if (__builtin_expect(pointer != step->frame, 0)) {
			if (!pointer || step->owner >= PYTHON_OWNER_SHIM)
				return false;
			step->frame = frame = pointer;
		}
		if (!((uintptr_t)step % (PYTHON_STEPS_UNASKED * sizeof(*step))) &&
		    python_is_finalizing(python, thread->state))
			return false;
		owner = (uint32_t)python_load(frame + owner_at, 1);
		if (python_load(frame + code_at, 8) != step->code ||
		    python_load(frame + instruction_at, 8) != step->instruction ||
		    owner != step->owner)
			return false;
		if (has_versions && owner < PYTHON_OWNER_SHIM && /* a shim has no code object */
		    (uint32_t)python_load(python_code_of(step) + version_at, 4) != step->version)
			return false;
		pointer = python_load(frame + previous_at, 8);
	}
	return !pointer;
}

/*
 * Whether the thread's whole chain matches these steps, with the same code objects if they have
 * versions.
 */
static inline bool python_steps_are_equal(const struct python_runtime *python,
					  const struct python_thread *thread,
					  struct python_step *steps, uint32_t step_count)
{
	const struct python_layout *layout = &python->layout;
	uintptr_t cframe = thread->cframe, frame = thread->innermost;

	if (__builtin_expect(layout->division == PYTHON_BY_SHIM, 1)) {
		const struct python_step *end = steps + step_count;

		return layout->code_version
			       ? python_steps_with_shims_are_equal(python, thread, steps, end, true)
			       : python_steps_with_shims_are_equal(python, thread, steps, end,
								   false);
	}
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

/* The first local variable of a frame, without tag bits. */
static inline uintptr_t python_first_local(const struct python_layout *layout, uintptr_t frame)
{
	return python_load(frame + layout->frame_locals, 8) & ~UINT64_C(3);
}

/*
 * Whether the frames of an equal chain, from the innermost one on, run these modules. Only the
 * thread's own frames and their cells are read, which stay while the thread is inside its call.
 */
static inline bool python_modules_are_equal(const struct python_layout *layout, uintptr_t innermost,
					    const struct python_step *steps,
					    const struct python_called *self)
{
	uintptr_t frame = innermost, object;
	uint32_t at = 0;

	for (;; self++) {
		if (layout->division == PYTHON_BY_SHIM)
			frame = steps[self->step].frame;
		else
			for (; at < self->step; at++)
				frame = python_load(frame + layout->frame_previous, 8);
		object = python_first_local(layout, frame);
		if (self->is_in_cell && object)
			object = python_load(object + PYTHON_CELL_CONTENTS, 8);
		if (object != self->object)
			return false;
		if (self->left == 1)
			return true;
	}
}

/* Adds a frame's code and instruction to the key of the frames inside it. */
static inline uint64_t python_path_key(uint64_t key, uint64_t code, uint64_t instruction)
{
	key = (key ^ code) * UINT64_C(0x9e3779b97f4a7c15);
	key = ((key ^ key >> 32) ^ instruction) * UINT64_C(0xd6e8feb86659fd93);
	return key ^ key >> 29;
}

/* Adds the frame that is at this address now; 0: none. */
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
