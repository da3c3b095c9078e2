/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is added up by who asked for what: what remains of millions of events.
 */
#ifndef XT_MERGE_AGGREGATE_H
#define XT_MERGE_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"

#define FRAME_BY_DEVICE "[device-launched]" /* by a call that is not known */
#define FRAME_PAUSED	"[recording paused]"
#define FRAME_UNSAMPLED "[stack not sampled]" /* and none of its kind has one */

/* What stands at the end of a call path. */
enum leaf {
	LEAF_CALL,   /* the call itself */
	LEAF_KERNEL, /* what: XT_SHAPE_ID */
	LEAF_COPY,   /* what: CUPTI's copy kind */
	LEAF_MEMSET,
	LEAF_MEMORY,   /* what: MEMORY_WHAT() */
	LEAF_IDLE,     /* what: enum idle_class */
	LEAF_LEFT_OUT, /* nobody wants to know of it */
};

/* What else is to be said in a path. */
enum owner_mark {
	OWNER_IN_GRAPH = 1u << 0,  /* a [graph] stands between the call and the creation */
	OWNER_BY_DEVICE = 1u << 1, /* the GPU itself launched it, and the call is not known */
	OWNER_PAUSED = 1u << 2,	   /* allocated while recording was paused */
	OWNER_UNSAMPLED = 1u << 3, /* chance did not choose the call for a stack */
	/* By how many chance chose from: one in 1 << this; 0 where all were. */
	OWNER_RATE_BIT = 4,
	OWNER_RATE_MASK = 7u << OWNER_RATE_BIT,
};

/* Who asked for what. (All of one width, and none narrower: joining has them in registers then, where
 * bytes would be written and read again as words, which is slow.) */
struct owner {
	uint32_t stack;	   /* XT_STACK_ID of the call, 0: not attributed */
	uint32_t range;	   /* the call's place among the NVTX ranges, 0: in none */
	uint32_t creation; /* of the graph node, 0: none or not known */
	uint32_t root;	   /* stream, device or thread, as the user wants it */
	uint32_t what;	   /* by leaf */
	uint32_t stream; /* XT_STREAM_ID of the work, 0: none; filled for USES_ORIGINS alone … */
	uint32_t thread; /* … and XT_THREAD_ID of the call */
	uint32_t api;	 /* place in the model's apis */
	uint32_t leaf;	 /* enum leaf */
	uint32_t marks;	 /* enum owner_mark */
};

/* What stands in place of a call that is not known, and no fault; NULL: nothing does. */
static inline const char *owner_stand_in(const struct owner *owner)
{
	return owner->marks & OWNER_BY_DEVICE	? FRAME_BY_DEVICE
	       : owner->marks & OWNER_PAUSED	? FRAME_PAUSED
	       : owner->marks & OWNER_UNSAMPLED ? FRAME_UNSAMPLED
						: NULL;
}

/* Asked for by a call whose stack is known, and no part of a graph? */
static inline bool owner_is_direct(const struct owner *owner)
{
	return owner->stack && !owner->creation && !(owner->marks & ~OWNER_RATE_MASK);
}

/* Does its path begin with the call? Else with who made the graph's node. */
static inline bool owner_has_call(const struct owner *owner)
{
	return owner->marks & OWNER_IN_GRAPH || !owner->creation;
}

struct total {
	struct owner owner;
	uint32_t next; /* which one was asked for after it: programs repeat themselves */
	uint64_t weights[WEIGHTS];
	uint64_t estimated[WEIGHTS]; /* what is to be added of those that chance left out */
};

/* A hash table over entries that stay where they are; all zeros is an empty one. */
struct aggregate {
	struct total *entries;
	size_t capacity;
	uint32_t count;
	uint32_t *slots; /* entry + 1; 0 is free */
	uint32_t slot_count;
	uint32_t last; /* asked for */
};

#define TOTAL_FAILED UINT32_MAX

static inline bool total_is_of(const struct total *total, const struct owner *owner)
{
	const struct owner *a = &total->owner;

	return a->stack == owner->stack && a->what == owner->what && a->api == owner->api &&
	       a->leaf == owner->leaf && a->marks == owner->marks && a->range == owner->range &&
	       a->creation == owner->creation && a->root == owner->root &&
	       a->stream == owner->stream && a->thread == owner->thread;
}

/* As aggregate_index(), by the hash table. */
uint32_t aggregate_search(struct aggregate *aggregate, struct owner owner);

/* The place in entries of that owner, made if need be; TOTAL_FAILED if memory ran out. Inline, for
 * callers whose owner then mostly stays in their registers. */
static inline uint32_t aggregate_index(struct aggregate *aggregate, const struct owner *owner)
{
	uint32_t next = aggregate->count ? aggregate->entries[aggregate->last].next : 0;

	if (next >= aggregate->count || !total_is_of(&aggregate->entries[next], owner))
		return aggregate_search(aggregate, *owner);
	aggregate->last = next;
	return next;
}

void aggregate_free(struct aggregate *aggregate);

#endif
