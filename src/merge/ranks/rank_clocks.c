/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the line of the difference of two clocks.
 *
 * Let a collective end in host A at e and begin there at s, and in host B at E and S, each on its
 * own clock. B's clock needs the correction x with s <= E + x and S + x <= e. So s - E <= x <= e -
 * S. For a given drift, the offset is between the largest lower and the smallest upper bound. The
 * room between them is a concave function of the drift, so a search by sections finds its maximum.
 */
#include "merge/ranks/rank_clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/inputs.h"

#define DRIFT_MAX    1e-3 /* clocks of computers stay far below */
#define SEARCH_STEPS 60
#define EXTREMES     9 /* drifts at which the possible lines are compared */

struct bound {
	double at_ns; /* on the clock of the host, since first_ns */
	double low_ns, high_ns;
	double ends_ns; /* difference of the ends */
};

struct bounds {
	struct bound *list;
	size_t count, capacity;
	double first_ns; /* end of the first one */
	double span_ns;
	size_t by_order_count;
};

void rank_clocks_init(struct rank_clocks *clocks, const struct inputs *inputs)
{
	clocks->list = xt_calloc(inputs->count + 1, sizeof(*clocks->list));
	clocks->hosts = xt_calloc(inputs->count + 1, sizeof(*clocks->hosts));
	for (size_t i = 0; i < inputs->count; i++) {
		const struct input *log = &inputs->logs[i];
		size_t h = 0;

		/* inputs.c gives the logs of one host and one boot the same shift. */
		while (h < clocks->count && (strcmp(clocks->list[h].log->host, log->host) ||
					     clocks->list[h].log->shift_ns != log->shift_ns))
			h++;
		if (h == clocks->count)
			clocks->list[clocks->count++].log = log;
		clocks->hosts[i] = (uint32_t)h;
	}
	if (clocks->count)
		clocks->list[0].is_aligned = true;
}

/* The last start and the first end of a collective on one side. */
struct side {
	double start_ns, end_ns;
	size_t count;
};

static void add_item(struct side *side, double start_ns, double end_ns)
{
	if (!side->count || start_ns > side->start_ns)
		side->start_ns = start_ns;
	if (!side->count || end_ns < side->end_ns)
		side->end_ns = end_ns;
	side->count++;
}

static void add_bound(struct bounds *bounds, const struct side *own, const struct side *others)
{
	xt_grow(&bounds->list, &bounds->capacity, bounds->count + 1, sizeof(*bounds->list));
	if (!bounds->count)
		bounds->first_ns = own->end_ns;
	bounds->list[bounds->count++] =
		(struct bound){own->end_ns - bounds->first_ns, others->start_ns - own->end_ns,
			       others->end_ns - own->start_ns, others->end_ns - own->end_ns};
	bounds->span_ns = fmax(bounds->span_ns, own->end_ns - bounds->first_ns);
}

/* Whether a collective has the operation and the size of the first one, which it may be. */
static bool is_same(const struct rank_collective *item, const struct rank_collective **first)
{
	*first = *first ? *first : item;
	return item->operation == (*first)->operation && item->bytes == (*first)->bytes;
}

/*
 * Adds a bound for each host that is not aligned yet and takes part in a collective with those that
 * are. sides: by host, zeros.
 */
static void add_bounds(struct bounds *bounds, const struct rank_clocks *clocks,
		       const struct communicator *communicator, size_t number, struct side *sides)
{
	const struct rank_collective *first = NULL;
	struct side aligned = {0};

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];
		const struct rank_clock *clock = &clocks->list[member->host];
		const struct rank_collective *item = comm_item(member, number);

		if (item && !is_same(item, &first)) {
			memset(sides, 0, clocks->count * sizeof(*sides));
			return;
		}
		if (item && collective_needs_all(item->operation))
			add_item(clock->is_aligned ? &aligned : &sides[member->host],
				 rank_clock_ns(clock, item->start_ns),
				 rank_clock_ns(clock, item->end_ns));
	}
	for (size_t m = 0; m < communicator->member_count; m++) {
		uint32_t host = communicator->members[m].host;

		if (sides[host].count && aligned.count)
			add_bound(&bounds[host], &sides[host], &aligned);
		bounds[host].by_order_count +=
			sides[host].count && aligned.count && communicator->is_by_order;
		sides[host] = (struct side){0};
	}
}

/* The possible offsets for a drift. If low is above high, there is none. */
static void offsets(const struct bounds *bounds, double drift, double *low_ns, double *high_ns)
{
	*low_ns = -HUGE_VAL;
	*high_ns = HUGE_VAL;
	for (size_t b = 0; b < bounds->count; b++) {
		const struct bound *bound = &bounds->list[b];
		double drifted_ns = drift * bound->at_ns;

		if (bound->low_ns - drifted_ns > *low_ns)
			*low_ns = bound->low_ns - drifted_ns;
		if (bound->high_ns - drifted_ns < *high_ns)
			*high_ns = bound->high_ns - drifted_ns;
	}
}

static double room_ns(const struct bounds *bounds, double drift)
{
	double low_ns, high_ns;

	offsets(bounds, drift, &low_ns, &high_ns);
	return high_ns - low_ns;
}

/* If the room grows up to the limit, the run is too short to tell a drift from none. */
static double roomiest_drift(const struct bounds *bounds)
{
	double low = -DRIFT_MAX, high = DRIFT_MAX;

	for (int step = 0; step < SEARCH_STEPS; step++) {
		double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if (room_ns(bounds, a) < room_ns(bounds, b))
			low = a;
		else
			high = b;
	}
	if (fabs(low + high) / 2 > 0.99 * DRIFT_MAX && room_ns(bounds, 0) >= 0)
		return 0;
	return (low + high) / 2;
}

/*
 * Returns the last drift between two that leaves room, from the one that does to the one at
 * `until`.
 */
static double last_possible(const struct bounds *bounds, double possible, double until)
{
	if (room_ns(bounds, until) >= 0)
		return until;
	for (int step = 0; step < SEARCH_STEPS; step++) {
		double middle = (possible + until) / 2;

		if (room_ns(bounds, middle) >= 0)
			possible = middle;
		else
			until = middle;
	}
	return possible;
}

static double later_of(double a, double b)
{
	return fmax(fabs(a), fabs(b));
}

/* Returns how far any possible line is from this one, within the span of the bounds. */
static double error_of(const struct bounds *bounds, const struct rank_clock *clock)
{
	double from = last_possible(bounds, clock->drift, -DRIFT_MAX);
	double until = last_possible(bounds, clock->drift, DRIFT_MAX);
	double error_ns = 0;

	for (int e = 0; e < EXTREMES; e++) {
		double drift = from + (until - from) * e / (EXTREMES - 1), low_ns, high_ns;
		double turn_ns = (drift - clock->drift) * bounds->span_ns;

		offsets(bounds, drift, &low_ns, &high_ns);
		low_ns -= clock->offset_ns;
		high_ns -= clock->offset_ns;
		error_ns = fmax(error_ns, later_of(low_ns, high_ns));
		error_ns = fmax(error_ns, later_of(low_ns + turn_ns, high_ns + turn_ns));
	}
	return error_ns;
}

/* Returns the offset for a drift with which most collectives end at the same time in both hosts. */
static double middle_offset(const struct bounds *bounds, double drift, double *room)
{
	for (size_t b = 0; b < bounds->count; b++)
		room[b] = bounds->list[b].ends_ns - drift * bounds->list[b].at_ns;
	qsort(room, bounds->count, sizeof(*room), compare_doubles);
	return room[bounds->count / 2];
}

static void align(struct rank_clock *clock, const struct bounds *bounds)
{
	double *room = xt_malloc(bounds->count * sizeof(*room));
	double low_ns, high_ns;

	clock->at_ns = bounds->first_ns;
	clock->drift = roomiest_drift(bounds);
	offsets(bounds, clock->drift, &low_ns, &high_ns);
	clock->offset_ns = (low_ns + high_ns) / 2;
	if (high_ns >= low_ns)
		clock->offset_ns =
			fmin(fmax(middle_offset(bounds, clock->drift, room), low_ns), high_ns);
	free(room);
	clock->bound_count = bounds->count;
	clock->by_order_count = bounds->by_order_count;
	clock->is_aligned = true;
	if (high_ns >= low_ns) {
		clock->error_ns = error_of(bounds, clock);
		return;
	}
	/* No line fits, because a clock was corrected meanwhile or a collective was mistaken. */
	for (size_t b = 0; b < bounds->count; b++) {
		const struct bound *bound = &bounds->list[b];
		double line_ns = clock->offset_ns + clock->drift * bound->at_ns;

		clock->broken_count += line_ns < bound->low_ns || line_ns > bound->high_ns;
		clock->error_ns = fmax(clock->error_ns,
				       later_of(line_ns - bound->low_ns, bound->high_ns - line_ns));
	}
}

/* Aligns the hosts that share collectives with aligned ones. Returns their number or -ENOMEM. */
static int align_next(struct rank_clocks *clocks, const struct communicators *communicators,
		      struct bounds *bounds, struct side *sides)
{
	int aligned = 0;

	for (size_t c = 0; c < communicators->count; c++)
		for (size_t i = 0; i < communicators->list[c].instance_count; i++)
			add_bounds(bounds, clocks, &communicators->list[c], i, sides);
	for (size_t h = 0; h < clocks->count; h++) {
		if (bounds[h].count) {
			align(&clocks->list[h], &bounds[h]);
			clocks->list[h].reference = clocks->reference;
			aligned++;
		}
		free(bounds[h].list);
		bounds[h] = (struct bounds){0};
	}
	return aligned;
}

/* Makes the next host without shared collectives the reference of its own group. */
static bool begin_group(struct rank_clocks *clocks)
{
	for (size_t h = 0; h < clocks->count; h++)
		if (!clocks->list[h].is_aligned) {
			clocks->list[h].is_aligned = true;
			clocks->list[h].reference = h;
			clocks->reference = h;
			return true;
		}
	return false;
}

int rank_clocks_align(struct rank_clocks *clocks, const struct communicators *communicators)
{
	struct bounds *bounds = xt_calloc(clocks->count + 1, sizeof(*bounds));
	struct side *sides = xt_calloc(clocks->count + 1, sizeof(*sides));
	int aligned = 1;

	/* Hosts may be connected through others only, or not at all, as in several jobs. */
	while (aligned > 0 && clocks->count > 1) {
		aligned = align_next(clocks, communicators, bounds, sides);
		if (!aligned)
			aligned = begin_group(clocks);
	}
	free(bounds);
	free(sides);
	return aligned < 0 ? aligned : 0;
}

void rank_clocks_free(struct rank_clocks *clocks)
{
	free(clocks->list);
	free(clocks->hosts);
	*clocks = (struct rank_clocks){0};
}
