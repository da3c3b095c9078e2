/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the native and Python frames of a thread and gives them an XT_STACK_ID. Sampler thread
 * only.
 */
#ifndef XT_SAMPLER_STACK_IDS_H
#define XT_SAMPLER_STACK_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python_process.h"
#include "sampler/remote_unwind.h"
#include "sampler/sampling.h"

struct pair_input {
	const struct native_stack *native; /* NULL: unknown */
	const struct python_stack *python; /* valid if read is PYTHON_READ_OK or _CHANGED */
	enum python_read read;
	bool is_still; /* the thread did not run from the first read to the last */
	const struct thread_registers *registers;
	const struct stack_copy *copy;
	bool (*is_loop)(const void *context, uint64_t address); /* of the interpreter */
	const void *context;
};

struct paired_stacks {
	bool has_native, has_python;
	bool python_changed;		       /* the Python frames at the inner end are unknown */
	uint8_t flags;			       /* enum xt_cpu_flag */
	uint32_t places[XT_PYTHON_FRAMES_MAX]; /* XT_STACK_PLACES, if has_python */
};

/*
 * Decides whether native and Python frames of a thread belong together, and where. Pure. The frames
 * of a running thread are read some microseconds after the kernel copied its stack. A path that
 * never was must not be recorded, so frames that contradict each other are left out.
 */
void pair_stacks(const struct pair_input *in, struct paired_stacks *out);

/* The part of a path in PyTorch's DataLoader. */
enum loader_role {
	LOADER_NONE,
	LOADER_WAITS,  /* for its workers */
	LOADER_WORKER, /* is one */
};

struct stack_request {
	pid_t tid;	 /* in the sampler's PID namespace */
	bool is_running; /* Python frames may change while they are read */
	/* To walk the native frames. NULL: unknown. */
	const struct thread_registers *registers;
	const struct stack_copy *copy;
};

struct stack_found {
	uint32_t stack;	    /* XT_STACK_ID; 0: none */
	uint8_t flags;	    /* enum xt_cpu_flag */
	uint64_t python_ns; /* when the Python frames were read; 0: it has none */
	enum loader_role role;
};

/* Reads the Python frames into sampling->python. */
enum python_read stack_ids_read_python(struct sampling *sampling, struct sampled_process *process,
				       const struct stack_request *request);

/* Walks the native stack into sampling->native, if the request has registers. */
void stack_ids_walk(struct sampling *sampling, struct sampled_process *process,
		    const struct stack_request *request);

/* Joins the native stack that was walked last with the Python frames that were read last. */
void stack_ids_make(struct sampling *sampling, struct sampled_process *process,
		    const struct stack_request *request, enum python_read python_read,
		    struct stack_found *out);

#endif
