/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds PyTorch's library in this process, and the functions that tell the state of autograd in the
 * calling thread. docs/internals/AUTOGRAD.md explains what the state is for.
 */
#ifndef XT_INJECT_TORCH_RUNTIME_H
#define XT_INJECT_TORCH_RUNTIME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/runtime/hot_state.h"

/* A std::shared_ptr<Node>. */
struct torch_shared_node {
	uintptr_t node;
	uintptr_t control; /* its reference counts */
};

/* Each function reads thread-local variables and nothing else. */
struct torch_runtime {
	uint64_t (*sequence)(void); /* at::sequence_number::peek() */
	/* torch::autograd::get_current_node(); the result has a reference that must be released */
	void (*current_node)(struct torch_shared_node *result);
	int (*graph_task_id)(void); /* torch::autograd::get_current_graph_task_id(), or NULL */
	uint64_t (*thread_id)(
		void);	   /* at::RecordFunction::currentThreadId(); numbers new threads */
	size_t tls_module; /* the library's number in the C library's tables of TLS */
};

/* NULL until a library with these functions is found. */
HOT_EXTERN const struct torch_runtime *torch_runtime;

/* Whether to read the state. Set before torch_find(), which does nothing if false. */
extern bool torch_wanted;

/* Result of the search, for the log. Texts are empty if unknown. */
struct torch_info {
	char path[PATH_MAX]; /* of the library */
	char version[64];    /* of PyTorch */
	char why_not[128];   /* why the state cannot be read; empty if it can */
};

/*
 * Searches the loaded modules, once. True if it just found PyTorch, readable or not. At start-up,
 * then on the writer thread after modules changed. Takes the loader's list lock briefly.
 */
bool torch_find(void);
const struct torch_info *torch_info(void);

/* Stops reading the state. Any thread. `why` is a constant. */
void torch_give_up(const char *why);

/* Whether torch_give_up() was called since the last time this returned true. Writer thread. */
bool torch_has_given_up(void);

/*
 * Whether the library's thread-local variables exist in the calling thread. If they do not, reading
 * them would allocate memory, and the thread has not used autograd. One or two loads.
 */
bool torch_has_thread_state(const struct torch_runtime *torch);

/* Whether the module is one of PyTorch's libraries. */
bool torch_is_module(const char *path);

static inline const struct torch_runtime *torch_now(void)
{
	/* Pairs with the release in torch_find(). */
	return __atomic_load_n(&torch_runtime, __ATOMIC_ACQUIRE);
}

#endif
