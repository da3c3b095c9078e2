/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/comm_blocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"

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
