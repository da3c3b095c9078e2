/* SPDX-License-Identifier: Apache-2.0 */
#include "live/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/grow.h"

#define NODE_STEPS_MAX (4 * LIVE_CALLS)

static struct live_call *row_of(const struct live_calls *calls, uint32_t correlation)
{
	return &calls->rows[correlation % LIVE_CALLS];
}

int live_calls_add(struct live_calls *calls, const struct live_call *call)
{
	if (!calls->rows) {
		calls->rows = calloc(LIVE_CALLS, sizeof(*calls->rows));
		calls->oldest = calls->newest = call->correlation;
	}
	if (!calls->rows)
		return -ENOMEM;
	*row_of(calls, call->correlation) = *call;
	row_of(calls, call->correlation)->is_known = true;
	/* Ids may wrap around. */
	if ((int32_t)(call->correlation - calls->newest) > 0)
		calls->newest = call->correlation;
	if ((int32_t)(call->correlation - calls->oldest) < 0)
		calls->oldest = call->correlation;
	if (calls->newest - calls->oldest >= LIVE_CALLS)
		calls->oldest = calls->newest - LIVE_CALLS + 1;
	return 0;
}

int live_calls_add_node(struct live_calls *calls, const struct live_node *node)
{
	if (calls->node_count == LIVE_NODES_MAX)
		return 0;
	if (grow(&calls->nodes, &calls->node_capacity, calls->node_count + 1,
		 sizeof(*calls->nodes)))
		return -ENOMEM;
	calls->nodes[calls->node_count++] = *node;
	return 0;
}

static struct live_call *find(const struct live_calls *calls, uint32_t correlation)
{
	struct live_call *call = calls->rows ? row_of(calls, correlation) : NULL;

	return call && call->is_known && call->correlation == correlation ? call : NULL;
}

const struct live_call *live_calls_take(struct live_calls *calls, uint64_t correlation)
{
	struct live_call *call = find(calls, (uint32_t)correlation);

	if (call)
		call->is_launch = false;
	return call;
}

/*
 * Launches that were captured into graphs have no work. Calls and nodes of a thread are in the same
 * order, so the search continues where it last ended. steps: its remaining length.
 */
static void mark_captured(struct live_calls *calls, const struct live_node *node, uint32_t *steps)
{
	if ((int32_t)(calls->node_place - calls->oldest) < 0)
		calls->node_place = calls->oldest;
	for (uint32_t id = calls->node_place; (int32_t)(calls->newest - id) >= 0 && *steps; id++) {
		struct live_call *call = find(calls, id);

		--*steps;
		if (!call || call->thread != node->thread || call->exit_ns < node->time_ns)
			continue;
		calls->node_place = id;
		if (call->enter_ns <= node->time_ns)
			call->is_launch = false;
		return;
	}
}

uint64_t live_calls_waiting_since_ns(struct live_calls *calls, uint64_t now_ns)
{
	uint32_t steps = NODE_STEPS_MAX;

	for (size_t n = 0; n < calls->node_count && calls->rows; n++)
		mark_captured(calls, &calls->nodes[n], &steps);
	calls->node_count = 0;
	while (calls->rows && (int32_t)(calls->newest - calls->oldest) >= 0) {
		struct live_call *call = find(calls, calls->oldest);

		if (call && call->is_launch &&
		    (call->enter_ns > now_ns || now_ns - call->enter_ns < LIVE_CALL_LOST_NS))
			return call->enter_ns;
		calls->oldest++;
	}
	return UINT64_MAX;
}

void live_calls_free(struct live_calls *calls)
{
	free(calls->rows);
	free(calls->nodes);
	*calls = (struct live_calls){0};
}
