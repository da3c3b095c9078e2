/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds PyTorch's library in this process, and the functions that tell the state of autograd in the
 * calling thread: the node that it runs. docs/internals/AUTOGRAD.md explains what the state is for.
 */
#ifndef XT_INJECT_TORCH_RUNTIME_H
#define XT_INJECT_TORCH_RUNTIME_H

#include <limits.h>
#include <pthread.h>
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

/*
 * The autograd node that the calling thread runs.
 *
 * PyTorch has no C interface for it, so it is read as memory. Source of the layout:
 * torch/csrc/autograd/function.h, class Node; the members below are the same since PyTorch 1.8.
 * Each node with a new type, thread or caller is checked before its values are used.
 */
#define TORCH_NODE_WEAK_THIS   8  /* std::enable_shared_from_this: the node and its counts */
#define TORCH_NODE_SEQUENCE    24 /* uint64_t */
#define TORCH_NODE_TOPOLOGICAL 32 /* uint64_t: length of the longest path to a leaf */
#define TORCH_NODE_HAS_PARENT  40 /* bool */
#define TORCH_NODE_THREAD      48 /* uint64_t */
/* std::vector<Edge>, behind a std::mutex: at 96 on x86-64, at 104 on aarch64 */
#define TORCH_NODE_NEXT_EDGES (56 + sizeof(pthread_mutex_t))
#define TORCH_EDGE_BYTES      24
#define TORCH_NO_SEQUENCE     UINT64_MAX /* AccumulateGrad */

#define TORCH_NAME_BYTES 512

/* Identifies the state of a thread, apart from sequence numbers. All 0: no node runs. */
struct torch_node_key {
	uintptr_t type;	       /* vtable */
	uintptr_t python_type; /* of a Python function's node: its PyTypeObject; else 0 */
	uint64_t thread;       /* PyTorch's number; 0: the node has no sequence number */
	uint32_t task; /* the call of backward(), numbered by the caller; see torch_capture.c */
};

/*
 * Whether the memory looks like a node. Cold path: copies it with system calls. After a few wrong
 * ones and no right one, gives up: torch_give_up().
 */
bool torch_node_check(const struct torch_shared_node *shared);

/* Counts a node that passed the check, and turned out to be right or wrong. */
void torch_node_accept(void);
void torch_node_reject(void);

/* Whether a node turned out to be right, so that the layout is the known one. */
static inline bool torch_node_is_known(void)
{
	extern uint64_t torch_nodes_accepted;

	return __atomic_load_n(&torch_nodes_accepted, __ATOMIC_RELAXED);
}

/* Texts of a node: its mangled C++ type, and the Python class of a Python function's node. */
struct torch_node_names {
	char type[TORCH_NAME_BYTES];
	char class_name[TORCH_NAME_BYTES];
};

/* False if the type has no readable name. Cold path. Learns where such nodes have their object. */
bool torch_node_name(uintptr_t node, struct torch_node_names *out);

/*
 * The vtable of nodes of Python functions, and the offset of their object; 0: not seen yet. Stored
 * by learn_python_node() after the offset of the type.
 */
extern uintptr_t torch_python_node_type;
extern uint32_t torch_python_node_object;
extern uint32_t torch_python_object_type; /* offset of the type in a PyObject */

/* Reads the key, except the task, and the sequence number of a checked type of node. Hot path. */
static inline uint64_t torch_node_read(uintptr_t node, struct torch_node_key *key)
{
	uint64_t sequence = *(const uint64_t *)(node + TORCH_NODE_SEQUENCE);

	key->type = *(const uintptr_t *)node;
	key->thread =
		sequence == TORCH_NO_SEQUENCE ? 0 : *(const uint64_t *)(node + TORCH_NODE_THREAD);
	key->python_type = 0;
	if (__builtin_expect(
		    key->type == __atomic_load_n(&torch_python_node_type, __ATOMIC_RELAXED), 0)) {
		/* Pairs with find_python_object(). */
		uint32_t at = __atomic_load_n(&torch_python_node_object, __ATOMIC_ACQUIRE);
		uintptr_t object = at ? *(const uintptr_t *)(node + at) : 0;

		if (object)
			key->python_type =
				*(const uintptr_t *)(object +
						     __atomic_load_n(&torch_python_object_type,
								     __ATOMIC_RELAXED));
	}
	return sequence;
}

/*
 * Releases the reference that get_current_node() added. The engine has another, so this is never
 * the last. If it were, keep it: destroying a node here would run the program's code.
 */
static inline void torch_node_release(const struct torch_shared_node *shared)
{
	/* libstdc++'s counts: a vtable, then the number of shared references */
	int32_t *count = (int32_t *)(shared->control + 8);

	if (shared->control && !__atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

#endif
