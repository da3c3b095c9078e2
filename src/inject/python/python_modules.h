/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of PyTorch's modules (layers.3.self_attn.q_proj) among the Python frames of a walk.
 *
 * The frames of Module._wrapped_call_impl() and Module._call_impl() have their module as the first
 * local variable. It is part of the stack cache's key. A walk names it by searching the `_modules`
 * of the module outside it. All memory that the name was read from becomes an input. So the stack
 * is walked again if a model changes or its memory is reused for another one.
 *
 * Another thread may change or free these objects meanwhile. So a walk copies them by system calls,
 * checks their types, bounds every loop, and compares all of it once more at the end.
 */
#ifndef XT_INJECT_PYTHON_MODULES_H
#define XT_INJECT_PYTHON_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/python/python_walk.h"

#define PYTHON_MODULE_CODES_MAX 4

/* Code objects that call a module, which is their first local variable. 0: none. */
extern _Atomic(uintptr_t) python_module_codes[PYTHON_MODULE_CODES_MAX];

/* Whether this code, as a frame refers to it, is in the list. Hot path. */
static inline bool python_modules_are_called_by(uint64_t code)
{
	for (uint32_t i = 0; i < PYTHON_MODULE_CODES_MAX; i++)
		if (atomic_load_explicit(&python_module_codes[i], memory_order_relaxed) ==
		    (code & ~UINT64_C(3)))
			return true;
	return false;
}

/* Adds the module that a frame calls to the key of the frames inside it. */
static inline uint64_t python_module_key(uint64_t key, uintptr_t module)
{
	return python_path_key(key, module, 2);
}

/* Whether the function is one of PyTorch's that call a module, and modules are wanted. */
bool python_modules_is_call(const struct python_walk *walk, const struct xt_python_code *code);

/* Adds the module of such a frame, the walk's next one, to the walk. */
void python_modules_note(struct python_walk *walk, uintptr_t frame, uintptr_t code);

/*
 * Adds the time of a walk with modules. Stops reading modules if it was too much: a model with more
 * of them than the stack cache keeps, or with new ones in each step, would be walked each time.
 */
void python_modules_spend(uint64_t now_ns, uint64_t ns);

/* True once after modules are no longer read. Writer. */
bool python_modules_gave_up(void);

/*
 * Adds a frame with the path of each module to a walk of the calling thread, outside the frame that
 * calls it. Its code has the name "[module] PATH", no file and no line. Cold path: many system
 * calls.
 */
void python_modules_add(struct python_walk *walk);

#endif
