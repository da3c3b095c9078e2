/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recent calls by correlation id, and launches whose work is not in the log yet. Memory is bounded:
 * later calls replace earlier ones. Belongs to one thread.
 */
#ifndef XT_LIVE_CALLS_H
#define XT_LIVE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_CALLS	  (1u << 17) /* half a second of launches at full speed */
#define LIVE_NODES_MAX	  65536
#define LIVE_CALL_LOST_NS UINT64_C(60000000000) /* later work is taken to be lost */

struct live_call {
	uint64_t enter_ns, exit_ns;
	uint32_t correlation, thread;
	bool is_launch; /* work is to come */
	bool is_known;
};

/* The creation of a graph node. Such a launch has no work. */
struct live_node {
	uint64_t time_ns;
	uint32_t thread;
};

/* Zeros are no calls. */
struct live_calls {
	struct live_call *rows;	 /* by correlation id; NULL: none yet */
	uint32_t oldest, newest; /* correlation ids: launches before the oldest have their work */
	struct live_node *nodes; /* whose calls were not looked for yet */
	size_t node_count, node_capacity;
	uint32_t node_place; /* correlation id near the call of the last node */
};

/* Returns 0 or -ENOMEM. */
int live_calls_add(struct live_calls *calls, const struct live_call *call);

/* Further nodes are ignored. Returns 0 or -ENOMEM. */
int live_calls_add_node(struct live_calls *calls, const struct live_node *node);

/* Finds the call of work, and notes that its work has come. NULL if it is not known. */
const struct live_call *live_calls_take(struct live_calls *calls, uint64_t correlation);

/* The start of the oldest launch whose work may still come; UINT64_MAX: there is none. */
uint64_t live_calls_waiting_since_ns(struct live_calls *calls, uint64_t now_ns);

void live_calls_free(struct live_calls *calls);

#endif
