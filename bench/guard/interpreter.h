/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an interpreter that unwinding reads, in the layout of CPython 3.12. They allow
 * counting the cost of Python frames without an interpreter, with the same result on every machine.
 */
#ifndef GUARD_INTERPRETER_H
#define GUARD_INTERPRETER_H

#include <stdint.h>

#define INTERPRETER_FRAMES 10 /* Python frames in each chain */

/* Creates the interpreter and lets the tracer find it. Returns 0 or -ENOMEM. */
int interpreter_begin(void);

/*
 * Puts the thread into that path's frames. All paths share the outer frames. The inner ones have
 * their own code and lines. `loop` is memory for the interpreter loop's frame, in a function that
 * has not returned.
 */
#define INTERPRETER_LOOP_BYTES 128
void interpreter_enter(uint32_t path, void *loop);

#endif
