/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/collective_groups.h"

#include <stdlib.h>

#include "base/tables.h"
#include "log/base/compare.h"

#define SLOW_FACTOR 1.5	 /* a transfer is slow if it takes so much longer than comparable ones */
#define FAST_PART   0.05 /* comparable transfers: the fastest twentieth */

static struct collective_group *group_of(struct collective_groups *groups, size_t communicator,
					 const struct arrivals *arrivals)
{
	uint32_t hash = xt_hash_u64(arrivals->bytes ^ (uint64_t)communicator << 40 ^
				    (uint64_t)arrivals->operation << 56);
	struct xt_hash_slot *slot;

	xt_hash_require(&groups->table, groups->count + 1);
	xt_grow(&groups->list, &groups->capacity, groups->count + 1, sizeof(*groups->list));
	for (slot = xt_hash_first(&groups->table, hash); slot->item;
	     slot = xt_hash_next(&groups->table, slot)) {
		struct collective_group *group = &groups->list[slot->item - 1];

		if (group->communicator == communicator && group->bytes == arrivals->bytes &&
		    group->operation == arrivals->operation)
			return group;
	}
	groups->list[groups->count++] = (struct collective_group){.communicator = communicator,
								  .operation = arrivals->operation,
								  .bytes = arrivals->bytes};
	*slot = (struct xt_hash_slot){hash, (uint32_t)groups->count};
	return &groups->list[groups->count - 1];
}

void collective_groups_add(struct collective_groups *groups, size_t communicator, size_t rank_count,
			   const struct arrivals *arrivals)
{
	struct collective_group *group = group_of(groups, communicator, arrivals);

	group->rank_count = rank_count;
	group->count++;
	group->wait_ns += (uint64_t)arrivals->wait_ns;
	if (!arrivals->has_transfer)
		return;
	xt_append(group->transfers, group->transfer_count, group->transfer_capacity,
		  (struct transfer_time){arrivals->transfer_ns, arrivals->exposed_transfer_ns});
}

COMPARE_BY(compare_transfers, struct transfer_time, UP(ns))

/* Orders groups whose transfers should take the same time next to each other. */
static int compare_kinds(const void *a, const void *b)
{
	const struct collective_group *x = *(struct collective_group *const *)a;
	const struct collective_group *y = *(struct collective_group *const *)b;

	if (x->operation != y->operation)
		return x->operation < y->operation ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->rank_count < y->rank_count ? -1 : x->rank_count > y->rank_count;
}

/* Sums up what is slow in comparable groups. Transfers of unknown sizes cannot be compared. */
static void find_slow(struct collective_group **like, size_t count)
{
	size_t all_count = 0, at = 0;
	double *all_ns, fast_ns;

	for (size_t g = 0; g < count; g++)
		all_count += like[g]->transfer_count;
	if (!all_count || !like[0]->bytes)
		return;
	all_ns = xt_malloc(all_count * sizeof(*all_ns));
	for (size_t g = 0; g < count; g++)
		for (size_t t = 0; t < like[g]->transfer_count; t++)
			all_ns[at++] = like[g]->transfers[t].ns;
	qsort(all_ns, all_count, sizeof(*all_ns), compare_doubles);
	fast_ns = all_ns[(size_t)(FAST_PART * (double)all_count)];
	free(all_ns);
	for (size_t g = 0; g < count; g++)
		for (size_t t = 0; t < like[g]->transfer_count; t++) {
			const struct transfer_time *transfer = &like[g]->transfers[t];
			double more_ns = transfer->ns - fast_ns;

			if (transfer->ns > SLOW_FACTOR * fast_ns)
				like[g]->slow_ns += (uint64_t)(more_ns < transfer->exposed_ns
								       ? more_ns
								       : transfer->exposed_ns);
		}
}

static void find_median(struct collective_group *group)
{
	size_t count = group->transfer_count;

	if (!count)
		return;
	qsort(group->transfers, count, sizeof(*group->transfers), compare_transfers);
	group->transfer_ns =
		(uint64_t)((group->transfers[(count - 1) / 2].ns + group->transfers[count / 2].ns) /
			   2);
}

void collective_groups_finish(struct collective_groups *groups)
{
	struct collective_group **sorted = xt_malloc((groups->count + 1) * sizeof(*sorted));

	for (size_t g = 0; g < groups->count; g++) {
		find_median(&groups->list[g]);
		sorted[g] = &groups->list[g];
	}
	if (groups->count)
		qsort(sorted, groups->count, sizeof(struct collective_group *), compare_kinds);
	for (size_t from = 0, until; from < groups->count; from = until) {
		for (until = from + 1;
		     until < groups->count && !compare_kinds(&sorted[from], &sorted[until]);
		     until++)
			;
		find_slow(sorted + from, until - from);
	}
	free(sorted);
}

void collective_groups_free(struct collective_groups *groups)
{
	for (size_t g = 0; g < groups->count; g++)
		free(groups->list[g].transfers);
	free(groups->list);
	xt_hash_free(&groups->table);
	*groups = (struct collective_groups){0};
}
