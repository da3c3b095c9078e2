/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins work that the GPU itself launched in a graph to the replay of that graph.
 *
 * The work of a conditional body has no correlation id, but has ids of nodes of the executable
 * graph. Replays of one executable graph never overlap, so work between two pieces of work of one
 * replay belongs to that replay. Work between two replays belongs to one of them:
 * - to the earlier one, if the later one was not called yet when the work began
 * - to their owner, if both calls have the same owner and the same code created the node for both
 * - otherwise its call is unknown, also if a launch may be missing because recording was paused
 *
 * Only graphs with conditional nodes are considered. The GPU may launch other graphs as a whole,
 * which are part of no replay. Work is sorted in a window of fixed size (reorder_buffer.h). Up to
 * REPLAYS_WAITING_MAX pieces then wait for the next work with an id.
 */
#ifndef XT_MERGE_REPLAYS_H
#define XT_MERGE_REPLAYS_H

#include "merge/read/correlate.h"
#include "merge/read/nodes.h"
#include "merge/read/pauses.h"

#define REPLAYS_WAITING_MAX (1u << 20)

struct replays;

/*
 * nodes know which graphs have conditional nodes, and who created them. nodes and pauses must
 * outlive the result. The receiver gets each piece of work passed to replays_join() exactly once.
 */
void replays_new(struct replays **replays_out, struct nodes *nodes, const struct pauses *pauses,
		 struct work_receiver receiver);
void replays_free(struct replays *replays);

/* Adds work of a graph that was joined by its id. launch NULL: its call is unknown. */
void replays_pass(struct replays *replays, const struct work *work, const struct launch *launch);

/*
 * Adds work for which work_is_by_device() is true. If its call is found, the work gets that call's
 * correlation id.
 */
void replays_join(struct replays *replays, const struct work *work);

/* Call it after the last work. */
void replays_finish(struct replays *replays);

#endif
