/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of event costs by owner. Millions of events shrink to one entry per owner.
 */
#ifndef XT_MERGE_AGGREGATE_H
#define XT_MERGE_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/base/weights.h"

#define FRAME_BY_DEVICE "[device-launched]" /* launched by the GPU; the call is unknown */
#define FRAME_PAUSED	"[recording paused]"
#define FRAME_UNSAMPLED "[stack not sampled]"

/* The last frame of a call path. */
enum leaf {
	LEAF_CALL,   /* the call itself */
	LEAF_KERNEL, /* what: XT_SHAPE_ID */
	LEAF_COPY,   /* what: CUPTI's copy kind */
	LEAF_MEMSET,
	LEAF_MEMORY,   /* what: MEMORY_WHAT() */
	LEAF_IDLE,     /* what: IDLE_WHAT() */
	LEAF_CPU,      /* time of a host thread; what: enum xt_cpu_state */
	LEAF_NODE,     /* kernel of a graph recorded as a whole; what: XT_STRING_ID */
	LEAF_LEFT_OUT, /* excluded by the user's selection */
};

#define ROOT_UNKNOWN UINT32_MAX	      /* a device that is not in the log */
#define ROOT_HOST    (UINT32_MAX - 1) /* host work, which has no device or stream */

/* Flags that change how the path is built, or divide the sums of a path. */
enum owner_mark {
	OWNER_IN_GRAPH = 1u << 0, /* put a [graph] frame between the call and the node's creation */
	OWNER_BY_DEVICE = 1u << 1, /* launched by the GPU itself; the call is unknown */
	OWNER_PAUSED = 1u << 2,	   /* allocated while recording was paused */
	OWNER_UNSAMPLED = 1u << 3, /* LAUNCH_UNSAMPLED */
	/* Launched in an iteration after the warm-up. Does not change the path. */
	OWNER_STEADY = 1u << 4,
};

/*
 * The key of a sum. All fields have the same width so that the compiler can keep the struct in
 * registers while the join fills it in. Mixed widths go through memory, which is slower.
 */
struct owner {
	uint32_t stack;	   /* XT_STACK_ID of the call, 0: not attributed */
	uint32_t range;	   /* node of the NVTX range tree in which the call was made, 0: none */
	uint32_t creation; /* index in nodes.creations of the graph node's origin, or 0 */
	uint32_t root;	   /* stream, device or thread, if the user groups by one */
	uint32_t what;	   /* meaning depends on leaf */
	uint32_t stream;   /* XT_STREAM_ID of the work, 0: none; set only for USES_ORIGINS */
	uint32_t thread;   /* XT_THREAD_ID of the call; set only for USES_ORIGINS */
	uint32_t api;	   /* index in the model's apis */
	uint32_t leaf;	   /* enum leaf */
	uint32_t marks;	   /* enum owner_mark */
};

/* The frame that replaces a call that is unknown for a harmless reason, or NULL. */
static inline const char *owner_stand_in(const struct owner *owner)
{
	return owner->marks & OWNER_BY_DEVICE	? FRAME_BY_DEVICE
	       : owner->marks & OWNER_PAUSED	? FRAME_PAUSED
	       : owner->marks & OWNER_UNSAMPLED ? FRAME_UNSAMPLED
						: NULL;
}

/* True if a call with a known stack submitted the work directly, not through a graph. */
static inline bool owner_is_direct(const struct owner *owner)
{
	return owner->stack && !owner->creation && !(owner->marks & ~(uint32_t)OWNER_STEADY);
}

/*
 * True if the path begins with the call. Otherwise it begins with the creation of the graph node.
 */
static inline bool owner_has_call(const struct owner *owner)
{
	return owner->marks & OWNER_IN_GRAPH || !owner->creation;
}

struct total {
	struct owner owner;
	uint32_t next; /* entry requested after this one last time; predicts the next lookup */
	bool is_plain; /* a kernel outside graphs with a known stack, and no field for other cases */
	uint64_t weights[WEIGHTS];
	uint64_t alloc_count; /* of memory */
};

/* Array of totals with a hash table. Indexes stay valid. Zeros are an empty one. */
struct aggregate {
	struct total *entries;
	size_t capacity;
	uint32_t count;
	struct xt_hash_table table;
	uint32_t last; /* index of the previous lookup */
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

/* Like aggregate_index(), without the prediction. */
uint32_t aggregate_search(struct aggregate *aggregate, struct owner owner);

/*
 * Index of the owner's entry, which is added if needed. Inline, so that the owner can stay in
 * registers when the prediction is right.
 */
static inline uint32_t aggregate_index(struct aggregate *aggregate, const struct owner *owner)
{
	uint32_t next = aggregate->count ? aggregate->entries[aggregate->last].next : 0;

	if (next >= aggregate->count || !total_is_of(&aggregate->entries[next], owner))
		return aggregate_search(aggregate, *owner);
	aggregate->last = next;
	return next;
}

/* Makes entries of which only the array and the count are set findable. */
void aggregate_index_all(struct aggregate *aggregate);

void aggregate_free(struct aggregate *aggregate);

/* Adds without wrapping around. Damaged logs have times whose sums overflow. */
static inline void saturating_add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

#endif
