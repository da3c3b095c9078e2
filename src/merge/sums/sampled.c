/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributes the sums of unsampled calls.
 */
#include "merge/sums/sampled.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/sums/reading.h"
#include "merge/sums/sums.h"

/* How similar a sampled call must be to represent others; each level requires less. */
enum level { LEVEL_SAME_WORK, LEVEL_SAME_CALL, LEVELS };

struct kind_order {
	const struct total *entries;
	enum level level;
};

struct distribution {
	struct reading *reading;
	struct aggregate *aggregate;
	uint32_t *places; /* indexes of totals from calls under sampling */
	size_t count;
	uint32_t *group; /* those of the current kind that have a stack */
	size_t group_count;
};

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Order owners by kind. Returns 0 if both are of one kind. */
static int compare_kinds(const struct owner *a, const struct owner *b, enum level level)
{
	const uint32_t both[][2] = {
		{a->marks & OWNER_RATE_MASK, b->marks & OWNER_RATE_MASK},
		{a->thread, b->thread},
		{a->api, b->api},
		{a->leaf, b->leaf},
		/* Compared only at LEVEL_SAME_WORK: */
		{a->what, b->what},
		{a->creation, b->creation},
		{a->range, b->range},
		{a->stream, b->stream},
		{a->root, b->root},
		{a->marks & ~OWNER_UNSAMPLED, b->marks & ~OWNER_UNSAMPLED},
	};
	size_t count = level == LEVEL_SAME_WORK ? sizeof(both) / sizeof(both[0]) : 4;
	int order = 0;

	for (size_t i = 0; i < count && !order; i++)
		order = compare_u32(both[i][0], both[i][1]);
	return order;
}

/* Order by kind. Within a kind, unsampled totals come last. */
static int compare_places(const void *a, const void *b, void *context)
{
	const struct kind_order *order = context;
	const struct owner *x = &order->entries[*(const uint32_t *)a].owner;
	const struct owner *y = &order->entries[*(const uint32_t *)b].owner;
	int by_kind = compare_kinds(x, y, order->level);

	if (by_kind)
		return by_kind;
	by_kind = compare_u32(x->marks & OWNER_UNSAMPLED, y->marks & OWNER_UNSAMPLED);
	return by_kind ? by_kind : compare_u32(x->stack, y->stack);
}

static uint64_t group_sum(const struct distribution *s, enum weight weight)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->group_count; i++)
		sum += s->aggregate->entries[s->group[i]].weights[weight];
	return sum;
}

/* The weight that defines the shares: the weight itself, if the sampled totals have any of it. */
static enum weight choose_measure(const struct distribution *s, enum weight weight,
				  enum level level)
{
	static const enum weight others[] = {WEIGHT_COUNT, WEIGHT_GPU_TIME, WEIGHT_GPU_EXCLUSIVE,
					     WEIGHT_GPU_IDLE};

	/* Durations of other work say nothing about this work. */
	if (level == LEVEL_SAME_WORK && group_sum(s, weight))
		return weight;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (group_sum(s, others[i]))
			return others[i];
	return WEIGHTS;
}

/* The total that gets a share: the unsampled owner with the stack of a sampled one. */
static uint32_t place_for(struct distribution *s, uint32_t sampled, const struct owner *unsampled,
			  enum level level)
{
	struct owner owner = *unsampled;

	if (level == LEVEL_SAME_WORK)
		return sampled;
	owner.stack = s->aggregate->entries[sampled].owner.stack;
	owner.marks &= ~(uint32_t)OWNER_UNSAMPLED;
	return aggregate_search(s->aggregate, owner);
}

/* Divides each weight into integer shares that add up exactly. */
static void distribute(struct distribution *s, uint32_t from, enum level level)
{
	struct total unsampled = s->aggregate->entries[from];

	for (unsigned w = 0; w < WEIGHTS; w++) {
		uint64_t whole = unsampled.weights[w], given = 0, seen = 0, sum;
		enum weight measure = choose_measure(s, w, level);

		if (!whole)
			continue;
		sum = measure == WEIGHTS ? s->group_count : group_sum(s, measure);
		for (size_t i = 0; i < s->group_count; i++) {
			uint32_t to = place_for(s, s->group[i], &unsampled.owner, level);
			uint64_t upto;

			seen += measure == WEIGHTS
					? 1
					: s->aggregate->entries[s->group[i]].weights[measure];
			upto = (uint64_t)((unsigned __int128)whole * seen / sum);
			/*
			 * Kept apart from weights, so that a share given here does not change later
			 * shares.
			 */
			s->aggregate->entries[to].estimated[w] += upto - given;
			given = upto;
		}
	}
	memset(s->aggregate->entries[from].weights, 0, sizeof(unsampled.weights));
	s->reading->run->sums->events.work.attributed_gpu_ns += unsampled.weights[WEIGHT_GPU_TIME];
	s->reading->run->sums->sampling.estimated_gpu_ns += unsampled.weights[WEIGHT_GPU_TIME];
}

static bool is_empty(const struct total *total)
{
	for (unsigned w = 0; w < WEIGHTS; w++)
		if (total->weights[w])
			return false;
	return true;
}

static void distribute_level(struct distribution *s, enum level level)
{
	struct kind_order order = {s->aggregate->entries, level};

	qsort_r(s->places, s->count, sizeof(*s->places), compare_places, &order);
	for (size_t i = 0, first = 0; i < s->count; i++) {
		const struct total *entries = s->aggregate->entries;
		uint32_t place = s->places[i];

		if (compare_kinds(&entries[place].owner, &entries[s->places[first]].owner, level)) {
			first = i;
			s->group_count = 0;
		}
		if (i == first)
			s->group_count = 0;
		if (!(entries[place].owner.marks & OWNER_UNSAMPLED))
			s->group[s->group_count++] = place;
		else if (s->group_count && !is_empty(&entries[place]))
			distribute(s, place, level);
	}
}

static bool is_sampled(const struct total *total)
{
	return total->owner.marks & OWNER_RATE_MASK && total->owner.leaf != LEAF_LEFT_OUT;
}

void distribute_unsampled(struct reading *reading)
{
	struct aggregate *aggregate = &reading->aggregate;
	struct distribution s = {.reading = reading, .aggregate = aggregate};
	size_t sampled_count = 0;

	/*
	 * Check the calls themselves: a killed process may not have written the row with its
	 * sampling rate.
	 */
	for (uint32_t t = 0; t < aggregate->count; t++)
		sampled_count += is_sampled(&aggregate->entries[t]);
	if (!sampled_count)
		return;
	s.places = xt_malloc(sampled_count * sizeof(*s.places));
	s.group = xt_malloc(sampled_count * sizeof(*s.group));
	for (uint32_t t = 0; t < aggregate->count; t++)
		if (is_sampled(&aggregate->entries[t]))
			s.places[s.count++] = t;
	for (enum level level = 0; level < LEVELS; level++)
		distribute_level(&s, level);
	for (uint32_t t = 0; t < aggregate->count; t++) {
		struct total *total = &aggregate->entries[t];

		for (unsigned w = 0; w < WEIGHTS; w++)
			total->weights[w] += total->estimated[w];
		/* No lookups follow, so changing the key is safe. */
		if (total->owner.marks & OWNER_UNSAMPLED && is_empty(total))
			total->owner.leaf = LEAF_LEFT_OUT;
	}
	free(s.places);
	free(s.group);
}
