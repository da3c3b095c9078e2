/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of an event: the stack, range, stream and thread that its costs are added to.
 */
#ifndef XT_MERGE_OWNER_H
#define XT_MERGE_OWNER_H

#include "merge/sums/reading.h"

/* Finds the stacks that the log defines. Call it before the others. */
void reading_find_stacks(struct reading *reading);

static inline bool reading_has_stack(const struct reading *reading, uint32_t stack)
{
	stack = model_own_stack(reading->model, stack);
	return stack < reading->model->stacks.count && reading->join.has_stack[stack];
}

/* owner: of a LEAF_KERNEL or LEAF_NODE. Returns a name of the model. */
static inline uint32_t owner_kernel_name(const struct model *model, const struct owner *owner)
{
	return owner->leaf == LEAF_KERNEL ? model_kernel_name(model, owner->what)
					  : model_string(model, owner->what);
}

static inline void owner_add_call(struct reading *reading, const struct launch *launch,
				  struct owner *owner)
{
	uint32_t shift = launch->flags >> LAUNCH_RATE_BIT;

	owner->range = launch->range;
	if (shift) {
		owner->marks |= shift << OWNER_RATE_BIT | (launch->stack ? 0 : OWNER_UNSAMPLED);
		owner->thread = launch->thread;
		owner->api = launch->api;
	}
	if (!reading_has_stack(reading, launch->stack))
		return;
	owner->stack = launch->stack;
	owner->api = launch->api;
}

/* Graph work belongs to the launch of the graph and to the creation of the node. */
static inline void owner_add_node(struct reading *reading, uint64_t node_id, uint64_t launched_ns,
				  struct owner *owner, bool *is_unmade)
{
	struct nodes *nodes = &reading->model->nodes;
	enum graph_stacks wanted = reading->run->settings->graph_stacks;
	uint32_t creation = nodes_creation(nodes, node_id, launched_ns);

	if (creation && !reading_has_stack(reading, nodes->creations[creation].stack))
		creation = CREATION_UNKNOWN;
	/* A log without any nodes comes from a tracer that did not record them. */
	*is_unmade = !creation && nodes->count;
	if (wanted == GRAPH_STACKS_REPLAY)
		return;
	owner->marks |= OWNER_IN_GRAPH;
	owner->creation = creation;
	if (wanted != GRAPH_STACKS_CAPTURE || !creation)
		return;
	owner->marks = 0;
	owner->stack = 0;
	owner->api = 0;
}

/* Returns the root frame for the paths of work, as the settings choose it. */
uint32_t owner_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread);

/* Fills in the owner of the call itself. */
void owner_of_call(struct reading *reading, const struct launch *call, struct owner *owner);

#endif
