/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/arrivals.h"

#include <math.h>
#include <stdlib.h>

#include "base/tables.h"
#include "log/base/compare.h"

#define SLOW_FACTOR 1.5	 /* a transfer is slow if it takes so much longer than comparable ones */
#define FAST_PART   0.05 /* comparable transfers: the fastest twentieth */

static double start_ns(const struct comm_member *member, const struct rank_collective *item,
		       const struct rank_clocks *clocks)
{
	return rank_clock_ns(&clocks->list[member->host], item->start_ns);
}

double arrivals_wait_ns(const struct communicator *communicator, size_t member, size_t number,
			const struct rank_clocks *clocks, double *exposed_ns_out)
{
	const struct arrivals *arrivals = &communicator->arrivals[number];
	const struct comm_member *one = &communicator->members[member];
	const struct rank_clock *clock = &clocks->list[one->host];
	const struct rank_collective *item = comm_item(one, number);
	double from_ns, until_ns;

	*exposed_ns_out = 0;
	if (!item || !arrivals->has_waits ||
	    (arrivals->waiting != SIZE_MAX && arrivals->waiting != member))
		return 0;
	from_ns = start_ns(one, item, clocks);
	until_ns = fmin(rank_clock_ns(clock, item->end_ns), arrivals->last_ns);
	*exposed_ns_out =
		fmax(until_ns - fmax(from_ns, rank_clock_ns(clock, item->alone_from_ns)), 0);
	return fmax(until_ns - from_ns, 0);
}

/* Finds who came last. Returns the sum of all arrivals, counted from *base_ns. */
static double find_last(struct arrivals *arrivals, const struct communicator *communicator,
			size_t number, const struct rank_clocks *clocks, double *base_ns,
			double *first_end_ns)
{
	double sum_ns = 0;

	*first_end_ns = HUGE_VAL;
	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];
		const struct rank_collective *item = comm_item(member, number);
		double came_ns;

		if (!item)
			continue;
		came_ns = start_ns(member, item, clocks);
		if (!arrivals->present_count) {
			*base_ns = came_ns;
			arrivals->operation = item->operation;
			arrivals->bytes = item->bytes;
		}
		arrivals->is_different |=
			item->operation != arrivals->operation || item->bytes != arrivals->bytes;
		if (!arrivals->present_count++ || came_ns > arrivals->last_ns) {
			arrivals->last_ns = came_ns;
			arrivals->late = m;
		}
		sum_ns += came_ns - *base_ns;
		*first_end_ns = fmin(*first_end_ns,
				     rank_clock_ns(&clocks->list[member->host], item->end_ns));
	}
	return sum_ns;
}

/* Returns the member with a rank, or SIZE_MAX if its log lacks the collective. */
static size_t member_of_rank(const struct communicator *communicator, uint32_t rank, size_t number)
{
	for (size_t m = 0; m < communicator->member_count; m++)
		if (communicator->members[m].rank == rank && rank != UINT32_MAX)
			return comm_item(&communicator->members[m], number) ? m : SIZE_MAX;
	return SIZE_MAX;
}

/* Decides who waits for whom. In a send, nobody knows. */
static bool find_direction(struct arrivals *arrivals, const struct communicator *communicator,
			   size_t number, const struct rank_clocks *clocks)
{
	const struct rank_collective *item =
		comm_item(&communicator->members[arrivals->late], number);
	size_t root = member_of_rank(communicator, item->root, number);

	if (collective_needs_all((enum collective_operation)arrivals->operation))
		return true;
	if (root == SIZE_MAX)
		return false;
	if (arrivals->operation == COLLECTIVE_REDUCE)
		arrivals->waiting = root;
	if (arrivals->operation == COLLECTIVE_BROADCAST) {
		arrivals->late = root;
		arrivals->last_ns =
			start_ns(&communicator->members[root],
				 comm_item(&communicator->members[root], number), clocks);
	}
	return arrivals->operation == COLLECTIVE_REDUCE ||
	       arrivals->operation == COLLECTIVE_BROADCAST;
}

/* Returns the mean time of the members in a transfer while nothing else ran on their GPU. */
static double exposed_transfer(const struct communicator *communicator, size_t number,
			       const struct rank_clocks *clocks, double last_ns)
{
	double sum_ns = 0;
	size_t count = 0;

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];
		const struct rank_clock *clock = &clocks->list[member->host];
		const struct rank_collective *item = comm_item(member, number);

		if (!item)
			continue;
		count++;
		sum_ns += fmax(rank_clock_ns(clock, item->end_ns) -
				       fmax(last_ns, rank_clock_ns(clock, item->alone_from_ns)),
			       0);
	}
	return count ? sum_ns / (double)count : 0;
}

static void compare(struct communicator *communicator, size_t number,
		    const struct rank_clocks *clocks)
{
	struct arrivals *arrivals = &communicator->arrivals[number];
	double base_ns = 0, first_end_ns;
	double sum_ns = find_last(arrivals, communicator, number, clocks, &base_ns, &first_end_ns);

	arrivals->waiting = SIZE_MAX;
	arrivals->has_waits = arrivals->present_count > 1 && !arrivals->is_different &&
			      find_direction(arrivals, communicator, number, clocks);
	if (!arrivals->has_waits)
		return;
	arrivals->mean_ns = base_ns + (sum_ns - (arrivals->last_ns - base_ns)) /
					      (double)(arrivals->present_count - 1);
	/* In a reduction, some ranks leave before the last one comes. */
	arrivals->has_transfer =
		collective_needs_all((enum collective_operation)arrivals->operation) &&
		first_end_ns > arrivals->last_ns;
	if (arrivals->has_transfer) {
		arrivals->transfer_ns = first_end_ns - arrivals->last_ns;
		arrivals->exposed_transfer_ns =
			exposed_transfer(communicator, number, clocks, arrivals->last_ns);
	}
	for (size_t m = 0; m < communicator->member_count; m++) {
		double exposed_ns;

		arrivals->wait_ns += arrivals_wait_ns(communicator, m, number, clocks, &exposed_ns);
		arrivals->exposed_ns += exposed_ns;
	}
}

void arrivals_compare(struct communicators *communicators, const struct rank_clocks *clocks)
{
	for (size_t c = 0; c < communicators->count; c++) {
		struct communicator *communicator = &communicators->list[c];

		communicator->arrivals = xt_calloc(communicator->instance_count + 1,
						   sizeof(*communicator->arrivals));
		for (size_t i = 0; i < communicator->instance_count; i++)
			compare(communicator, i, clocks);
	}
}

struct communicator_sums communicator_sums(const struct communicator *communicator)
{
	const struct comm_member *most = communicator->members;
	struct communicator_sums sums = {0};

	for (size_t m = 1; m < communicator->member_count; m++)
		if (communicator->members[m].count > most->count)
			most = &communicator->members[m];
	for (size_t i = 0; i < most->log->count; i++)
		if (&most->log->members[most->log->list[i].member] == most->member)
			sums.counts[most->log->list[i].operation]++;
	for (size_t i = 0; i < communicator->instance_count; i++)
		sums.wait_ns += (uint64_t)communicator->arrivals[i].wait_ns;
	return sums;
}

/*
 * Whether most ranks could not go on before the end of a collective. In the last rank it is short,
 * so other work may come after it by chance. In the others, within graphs, other work may have
 * ended before it.
 */
static bool holds_up(const struct communicator *communicator, size_t number)
{
	size_t overlapped = 0, present = 0, last = communicator->arrivals[number].late;
	const struct rank_collective *late = comm_item(&communicator->members[last], number);

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct rank_collective *item = comm_item(&communicator->members[m], number);

		present += item != NULL;
		overlapped += item && item->is_overlapped;
	}
	return overlapped * 2 < present && !(late && late->is_overlapped);
}

/*
 * Returns the time that a member lost in the collectives of a block: nothing else ran on its GPU,
 * and its CPU had launched what came next.
 */
static double lost_ns(const struct comm_member *member, const struct comm_block *block,
		      float *const *absorbed_ns)
{
	const float *absorbed = absorbed_ns[member->log->log];
	double sum_ns = 0;

	for (size_t i = block->from; i < block->until; i++) {
		const struct rank_collective *item = comm_item(member, i);
		int64_t from_ns = item ? item->start_ns : 0;

		if (item && item->alone_from_ns > from_ns)
			from_ns = item->alone_from_ns;
		if (item && item->end_ns > from_ns)
			sum_ns += (double)(item->end_ns - from_ns) -
				  (double)absorbed[item - member->log->list];
	}
	return sum_ns;
}

bool comm_block_compares(const struct comm_block *block, const struct communicator *communicator,
			 size_t m)
{
	const struct comm_member *member = &communicator->members[m];

	return !member->log->lacks_times && member->first <= block->from &&
	       member->first + member->count >= block->until;
}

/* How far apart the ranks come, over a block. */
static double apart_ns(const struct comm_block *block, const struct communicator *communicator)
{
	double sum_ns = 0;

	for (size_t i = block->from; i < block->until; i++)
		if (communicator->arrivals[i].has_waits)
			sum_ns += communicator->arrivals[i].last_ns -
				  communicator->arrivals[i].mean_ns;
	return sum_ns;
}

/*
 * Finds the member that the others waited for in a block: the one with the least lost time. The
 * others have more, as their work has ended: waits, and transfers that work would have hidden. If
 * all come together, nobody waits: some only leave later. How far apart the program begins is not
 * known to matter, so the first collective costs nothing.
 */
static void find_cost(struct comm_block *block, const struct communicator *communicator,
		      float *const *absorbed_ns)
{
	double sum_ns = 0, least_ns = 0;
	size_t count = 0;

	for (size_t m = 0; m < communicator->member_count; m++) {
		double own_ns = lost_ns(&communicator->members[m], block, absorbed_ns);

		if (!comm_block_compares(block, communicator, m))
			continue;
		sum_ns += own_ns;
		if (count++ && own_ns >= least_ns)
			continue;
		least_ns = own_ns;
		block->late = m;
	}
	if (count > 1 && block->from)
		block->late_ns = (sum_ns - least_ns) / (double)(count - 1) - least_ns;
	block->apart_ns = apart_ns(block, communicator);
	if (block->late_ns > block->apart_ns)
		block->late_ns = block->apart_ns;
}

/*
 * Finds how long the others waited beside other work. Where launches decide the speed, waits after
 * all other work cost only a part of their time. The same part of the hidden waits counts.
 */
static void find_hidden(struct comm_block *block, const struct communicator *communicator,
			const struct rank_clocks *clocks, float *const *absorbed_ns)
{
	double hidden_ns = 0, all_ns = 0, lost_ns = 0;
	size_t count = 0;

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];

		if (m == block->late || !comm_block_compares(block, communicator, m))
			continue;
		count++;
		for (size_t i = block->from; i < block->until; i++) {
			const struct rank_collective *item = comm_item(member, i);
			double exposed_ns;
			double wait_ns = arrivals_wait_ns(communicator, m, i, clocks, &exposed_ns);

			hidden_ns += wait_ns - exposed_ns;
			all_ns += exposed_ns;
			lost_ns += item ? exposed_ns - (double)absorbed_ns[member->log->log]
									  [item - member->log->list]
					: 0;
		}
	}
	if (count && all_ns > 0 && lost_ns > 0)
		block->hidden_ns = hidden_ns / (double)count * fmin(lost_ns / all_ns, 1);
}

COMPARE_BY(compare_blocks, struct comm_block, UP(end_ns) UP(communicator) UP(from))

static void add_block(struct comm_blocks *blocks, const struct communicator *communicator,
		      const struct comm_block *block, const struct rank_clocks *clocks,
		      float *const *absorbed_ns)
{
	struct comm_block *added;

	added = xt_new(blocks->list, blocks->count, blocks->capacity);
	*added = *block;
	added->end_ns = communicator->arrivals[block->until - 1].last_ns;
	find_cost(added, communicator, absorbed_ns);
	if (added->late_ns > 0)
		find_hidden(added, communicator, clocks, absorbed_ns);
}

void comm_blocks_find(struct comm_blocks *blocks, const struct communicators *communicators,
		      const struct rank_clocks *clocks, float *const *absorbed_ns)
{
	for (uint32_t c = 0; c < communicators->count; c++) {
		const struct communicator *communicator = &communicators->list[c];
		struct comm_block block = {.communicator = c};

		for (size_t i = 0; i < communicator->instance_count; i++) {
			if (i + 1 < communicator->instance_count && !holds_up(communicator, i))
				continue;
			block.until = i + 1;
			add_block(blocks, communicator, &block, clocks, absorbed_ns);
			block.from = i + 1;
		}
	}
	if (blocks->count)
		qsort(blocks->list, blocks->count, sizeof(*blocks->list), compare_blocks);
}

void comm_blocks_free(struct comm_blocks *blocks)
{
	free(blocks->list);
	*blocks = (struct comm_blocks){0};
}

/* Returns the group of a collective, which is added if needed. */
static struct collective_group *group_of(struct collective_groups *groups, size_t communicator,
					 const struct arrivals *arrivals)
{
	const uint64_t key[] = {communicator, arrivals->bytes, arrivals->operation};
	bool is_new;
	uint32_t id = xt_intern(&groups->ids, key, sizeof(key), &is_new);

	if (is_new)
		xt_append(groups->list, groups->count, groups->capacity,
			  (struct collective_group){.communicator = communicator,
						    .operation = arrivals->operation,
						    .bytes = arrivals->bytes});
	return &groups->list[id - 1];
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

	return ORDER(x->operation, y->operation) ?: ORDER(x->bytes, y->bytes)
		       ?: ORDER(x->rank_count, y->rank_count);
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

			if (transfer->ns > SLOW_FACTOR * fast_ns)
				like[g]->slow_ns += (uint64_t)fmin(transfer->ns - fast_ns,
								   transfer->exposed_ns);
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
	interner_free(&groups->ids);
	*groups = (struct collective_groups){0};
}
