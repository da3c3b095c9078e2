/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins what the GPU itself launched in a graph to the replay of that graph.
 *
 * What a conditional node's body runs has no correlation id, but ids of nodes of the executable graph.
 * An executable graph never runs beside itself. So what ran between two pieces of work of one replay
 * is of that replay; and what ran between those of two replays is of one of these, if nothing was
 * launched in between that the log does not have, because recording was paused. It is the former
 * one's if the latter was not called yet; if both calls are of one owner, and the node was
 * made by the same code for both, it is that owner's; else
 * nobody can tell.
 *
 * Only graphs with conditional nodes are looked at: others may be launched from the GPU as a whole, and
 * then are part of no replay. Work is put in order in a window of fixed size (order.h); as much as
 * REPLAYS_WAITING_MAX then waits for the next work that has an id.
 */
#ifndef XT_MERGE_REPLAYS_H
#define XT_MERGE_REPLAYS_H

#include "merge/read/correlate.h"
#include "merge/read/nodes.h"
#include "merge/read/pauses.h"

#define REPLAYS_WAITING_MAX (1u << 20)

struct replays;

/*
 * nodes say which graphs have conditional nodes, and who made them; they and pauses must outlive it.
 * The listener is told of what is handed to replays_join(), each exactly once. 0 or -ENOMEM.
 */
int replays_new(struct replays **replays_out, struct nodes *nodes, const struct pauses *pauses,
		struct correlate_listener listener);
void replays_free(struct replays *replays);

/* Work of a graph that was joined by its id; launch NULL: there is no such call. */
void replays_pass(struct replays *replays, const struct work *work, const struct launch *launch);

/* Work for which work_is_by_device(). Where a call is found, it gets that one's correlation id. */
void replays_join(struct replays *replays, const struct work *work);

/* No more will come. 0, or -ENOMEM if memory has run out meanwhile. */
int replays_finish(struct replays *replays);

#endif
