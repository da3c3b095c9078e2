/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/arrivals.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

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
