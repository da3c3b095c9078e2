/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of an interpreter as a walk of its frames reads, laid out as CPython 3.12 does, so that what
 * Python frames cost can be counted without one: the same in each run, on each machine.
 */
#ifndef GUARD_INTERPRETER_H
#define GUARD_INTERPRETER_H

#include <stdint.h>

#define INTERPRETER_FRAMES 10 /* of Python, in each chain */

/* Makes it, and has the tracer find it. 0 or -ENOMEM. */
int interpreter_begin(void);

/*
 * From now on the thread is in that path's frames: the outer ones are the same in all paths, the inner
 * ones are of code and at lines of the path's own. loop is where the frame of the interpreter's loop
 * keeps the one that ends a run: something in a function that has not returned.
 */
#define INTERPRETER_LOOP_BYTES 128
void interpreter_enter(uint32_t path, void *loop);

#endif
