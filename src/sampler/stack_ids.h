/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the native and Python frames of a thread and gives them an XT_STACK_ID. Sampler thread
 * only.
 */
#ifndef XT_SAMPLER_STACK_IDS_H
#define XT_SAMPLER_STACK_IDS_H

#include "sampler/sampling.h"

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
	uint32_t stack; /* XT_STACK_ID; 0: none */
	uint8_t flags;	/* enum xt_cpu_flag */
	enum python_read python_read;
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

/* The role that the frames in sampling->python show. */
enum loader_role stack_ids_role(const struct sampled_process *process,
				const struct python_stack *python);

#endif
