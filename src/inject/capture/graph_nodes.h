/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records how CUDA graphs come about: who creates and changes their nodes, the names of their
 * kernels, and which executable graphs have conditional nodes. Callbacks of CUPTI in the program's
 * threads; far from the hot path.
 */
#ifndef XT_INJECT_GRAPH_NODES_H
#define XT_INJECT_GRAPH_NODES_H

#include <stdint.h>

#include "inject/capture/thread_buffer.h"
#include "inject/cupti/cupti.h"

/* Set in the slot_epoch of an open call in which a node was created. */
#define CALL_MADE_NODE (UINT32_C(1) << 27)

/*
 * This thread created or cloned a graph node. The stack is that of the call: a launch under stream
 * capture, or one that adds a node.
 */
void graph_node(struct thread_buffer *tb, uint32_t cbid, const struct cupti_resource_data *data,
		const struct caller_regs *regs);

/* A launch whose kernel became a node returns. Records the kernel's name. */
void graph_node_captured(struct thread_buffer *tb, const struct cupti_callback_data *data);

/* A call that adds a node returns. Records the kernel's name. */
void graph_node_added(struct thread_buffer *tb, uint32_t use,
		      const struct cupti_callback_data *data);

/*
 * A call that changes what nodes do has returned. The changed nodes are attributed to this call:
 * - a node of one executable graph,
 * - a node of a graph, also in later instances of the graph, or
 * - all nodes of an executable graph that was updated from another graph.
 */
void graph_node_set(struct thread_buffer *tb, uint32_t use, const struct cupti_callback_data *data,
		    const struct caller_regs *regs);

/* ENTER and EXIT of a call that instantiates a graph. */
void graph_instantiation(struct thread_buffer *tb, const struct cupti_callback_data *data);

/* The creation of a node starts. tb may be NULL: also called while nothing is recorded. */
void graph_node_starts(struct thread_buffer *tb, const struct cupti_resource_data *data);

#endif
