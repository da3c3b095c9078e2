/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the frames of a stack are to it, and which of them are the program's.
 *
 * A stack, innermost first, is: the tracer, CUPTI and the driver; perhaps the CUDA runtime, a
 * library or part of the program; perhaps glue that nvcc made; the program; what started the
 * thread.
 */
#ifndef XT_MERGE_FRAME_ROLES_H
#define XT_MERGE_FRAME_ROLES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/read/model.h"

enum role {
	ROLE_PROGRAM,
	ROLE_DRIVER,	  /* the driver, CUPTI, the tracer */
	ROLE_RUNTIME,	  /* inside the CUDA runtime */
	ROLE_RUNTIME_API, /* a function that the runtime offers */
	ROLE_GLUE,	  /* between the program's code and the runtime, made by nvcc */
	ROLE_UNNAMED,	  /* in a module, in no known function */
	ROLE_PLT,
	ROLE_THREAD_START, /* from the start of the thread to the program's first function */
};

/* By address: enum role. Frames are given as places in the addresses. */
struct frame_roles {
	const struct model *model;
	const struct addresses *addresses;
	uint8_t *roles;
};

/* 0 or -ENOMEM; frame_roles_free() in any case. */
int frame_roles_find(struct frame_roles *roles, const struct model *model,
		     const struct addresses *addresses);
void frame_roles_free(struct frame_roles *roles);

/* What a mangled name alone says: ROLE_PROGRAM if nothing. */
enum role frame_role_of_name(const char *name);

/*
 * A Python interpreter's program or library: "python3.12", "libpython3.12.so.1.0"; an extension module of its
 * standard library; libffi, which its ctypes calls others by. A program of another name that has an interpreter in it
 * has functions of its own, which count.
 */
bool frame_is_interpreter(const struct model *model, uint32_t module);

/* Likewise what lies in one, or in code that it makes for each function with -X perf: "py::f:/a.py". */
bool frame_is_of_interpreter(const struct model *model, const struct address *address);

/*
 * The module, if any, that runs Python by functions of an interpreter of which the log knows nothing: one that does
 * not export its symbols, in a program of another name. Its place in the model's modules, 0 if there is none.
 */
uint32_t frame_hidden_interpreter(const struct model *model, const struct addresses *addresses);

/*
 * The program's frames of a stack: [*first_out, *end_out) of frames. *api_out is the frame of the runtime's
 * function that the program called, or the stack's frame count. has_python: Python frames are shown, so those of
 * the interpreter that start it are not.
 */
void frame_roles_trim(const struct frame_roles *roles, const struct stack *stack,
		      const uint32_t *frames, bool has_python, uint32_t *first_out,
		      uint32_t *end_out, uint32_t *api_out);

#endif
