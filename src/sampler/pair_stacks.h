/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether native and Python frames of a thread belong together, and where. Pure.
 *
 * The frames of a running thread are read some microseconds after the kernel copied its stack. A
 * path that never was must not be recorded, so frames that contradict each other are left out.
 */
#ifndef XT_SAMPLER_PAIR_STACKS_H
#define XT_SAMPLER_PAIR_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python_process.h"
#include "sampler/remote_unwind.h"

struct pair_input {
	const struct native_stack *native; /* NULL: unknown */
	const struct python_stack *python; /* valid if read is PYTHON_READ_OK */
	enum python_read read;
	bool is_still; /* the thread did not run from the first read to the last */
	const struct thread_registers *registers;
	const struct stack_copy *copy;
	bool (*is_loop)(const void *context, uint64_t address); /* of the interpreter */
	const void *context;
};

struct paired_stacks {
	bool has_native, has_python;
	uint8_t flags;			       /* enum xt_cpu_flag */
	uint32_t places[XT_PYTHON_FRAMES_MAX]; /* XT_STACK_PLACES, if has_python */
};

void pair_stacks(const struct pair_input *in, struct paired_stacks *out);

#endif
