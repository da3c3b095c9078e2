/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/arrivals.h"

#include <math.h>

static double start_ns(const struct comm_member *member, const struct rank_collective *item,
		       const struct rank_clocks *clocks)
{
	return rank_clock_ns(&clocks->list[member->host], item->start_ns);
}

double arrivals_wait_ns(const struct arrivals *arrivals, const struct comm_member *member,
			size_t number, const struct rank_clocks *clocks)
{
	const struct rank_collective *item = comm_item(member, number);
	double until_ns;

	if (!item || !arrivals->has_waits)
		return 0;
	until_ns = rank_clock_ns(&clocks->list[member->host], item->end_ns);
	return fmax(fmin(until_ns, arrivals->last_ns) - start_ns(member, item, clocks), 0);
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
		arrivals->is_different |= item->operation != arrivals->operation ||
					  item->bytes != arrivals->bytes;
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

struct arrivals arrivals_of(const struct communicator *communicator, size_t number,
			    const struct rank_clocks *clocks)
{
	struct arrivals arrivals = {0};
	double base_ns = 0, first_end_ns;
	double sum_ns =
		find_last(&arrivals, communicator, number, clocks, &base_ns, &first_end_ns);

	arrivals.has_waits = arrivals.present_count > 1 && !arrivals.is_different &&
			     collective_needs_all((enum collective_operation)arrivals.operation);
	if (!arrivals.has_waits)
		return arrivals;
	arrivals.mean_ns = base_ns + (sum_ns - (arrivals.last_ns - base_ns)) /
					     (double)(arrivals.present_count - 1);
	arrivals.transfer_ns = fmax(first_end_ns - arrivals.last_ns, 0);
	for (size_t m = 0; m < communicator->member_count; m++)
		arrivals.wait_ns += arrivals_wait_ns(&arrivals, &communicator->members[m], number,
						     clocks);
	return arrivals;
}
