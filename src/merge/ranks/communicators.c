/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches collectives across ranks, finds the lines of the differences of their clocks, and
 * compares their arrivals.
 */
#include "merge/ranks/communicators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"

#define SHIFTS_MAX  4096 /* numbers tried for the first collective of a log */
#define SAMPLES_MAX 64	 /* collectives compared for each */

#define DRIFT_MAX    1e-3 /* clocks of computers stay far below */
#define SEARCH_STEPS 60
#define EXTREMES     9 /* drifts at which the possible lines are compared */

/* Whether two logs can be of one job. Communicators by order have nothing else in common. */
static bool may_share_job(const struct inputs *inputs, const struct rank_log *a,
			  const struct rank_log *b)
{
	const struct input *x = &inputs->logs[a->log], *y = &inputs->logs[b->log];

	return !strcmp(x->program, y->program) && !strcmp(x->command, y->command) &&
	       x->world_size == y->world_size && !strcmp(x->run, y->run) &&
	       !strcmp(x->batch_job, y->batch_job);
}

static struct communicator *find_one(struct communicators *out, const struct inputs *inputs,
				     const struct rank_log *log, const struct rank_member *member)
{
	struct communicator *communicator;

	for (size_t c = 0; c < out->count; c++) {
		communicator = &out->list[c];
		if (communicator->key == member->communicator &&
		    communicator->is_by_order == member->is_by_order &&
		    (!member->is_by_order ||
		     may_share_job(inputs, communicator->members.list[0].log, log)))
			return communicator;
	}
	communicator = list_new(*out);
	*communicator = (struct communicator){.key = member->communicator,
					      .is_by_order = member->is_by_order};
	return communicator;
}

/* Whether the log is left out, because another one is of the same rank. */
static bool is_duplicate(struct communicators *out, const struct communicator *communicator,
			 const struct rank_log *log, const struct inputs *inputs)
{
	uint32_t rank = inputs->logs[log->log].rank;

	for (size_t m = 0; m < communicator->members.count && rank != RANK_UNKNOWN; m++) {
		const struct rank_log *other = communicator->members.list[m].log;

		if (inputs->logs[other->log].rank != rank || other == log)
			continue;
		for (size_t d = 0; d < out->duplicates.count; d++)
			if (out->duplicates.list[d].log == log->log)
				return true;
		list_append(out->duplicates, (struct duplicate_rank){log->log, other->log, rank});
		return true;
	}
	return false;
}

/* Whether the n-th of one rank is the n-th of all others. Sends have other numbers in each. */
static bool is_numbered(const struct rank_collective *collective)
{
	return collective->operation != COLLECTIVE_SEND_RECV;
}

static void add_items(struct comm_member *to, uint32_t member)
{
	const struct rank_log *log = to->log;
	size_t count = 0;

	for (size_t i = 0; i < log->count; i++)
		count += log->list[i].member == member && is_numbered(&log->list[i]);
	to->items = xt_malloc((count + 1) * sizeof(*to->items));
	for (size_t i = 0; i < log->count; i++)
		if (log->list[i].member == member && is_numbered(&log->list[i]))
			to->items[to->count++] = (uint32_t)i;
}

static void add_member(struct communicators *out, const struct inputs *inputs,
		       const struct rank_log *log, uint32_t m, const uint32_t *hosts)
{
	const struct rank_member *member = &log->members.list[m];
	struct communicator *communicator = find_one(out, inputs, log, member);
	struct comm_member *to;

	if (is_duplicate(out, communicator, log, inputs))
		return;
	to = xt_new(communicator->members.list, communicator->members.count,
		    communicator->members.capacity);
	*to = (struct comm_member){
		.log = log, .member = member, .rank = member->rank, .host = hosts[log->log]};
	if (member->rank_count)
		communicator->rank_count = member->rank_count;
	add_items(to, m);
}

static const struct rank_collective *item(const struct comm_member *member, size_t index)
{
	return &member->log->list[member->items[index]];
}

/*
 * How badly a member fits if its first collective has the number `first` of the base. That is how
 * many operations or sizes differ, and how much the differences of the ends vary.
 */
static double misfit(const struct comm_member *base, const struct comm_member *member,
		     int64_t first)
{
	double differences_ns[SAMPLES_MAX];
	int64_t from = first < 0 ? -first : 0, until = (int64_t)base->count - first, step;
	size_t count = 0, wrong = 0;

	until = smaller(until, (int64_t)member->count);
	if (from >= until)
		return (double)INT64_MAX;
	step = (until - from + SAMPLES_MAX - 1) / SAMPLES_MAX;
	for (int64_t i = from; i < until; i += step) {
		const struct rank_collective *mine = item(member, (size_t)i);
		const struct rank_collective *theirs = item(base, (size_t)(i + first));

		wrong += mine->operation != theirs->operation || mine->bytes != theirs->bytes;
		differences_ns[count++] = (double)mine->end_ns - (double)theirs->end_ns;
	}
	qsort(differences_ns, count, sizeof(*differences_ns), compare_doubles);
	/* Half of the differences lie within this span. */
	return (differences_ns[count - 1 - count / 4] - differences_ns[count / 4]) +
	       (double)wrong / (double)count * 1e15;
}

/* Returns the number in the base of the collective that ended at a time of the same host. */
static int64_t nearest_end(const struct comm_member *base, int64_t end_ns)
{
	size_t low = FIRST_NOT(i, 0, base->count, item(base, i)->end_ns <= end_ns);

	if (!low)
		return 0;
	if (low < base->count &&
	    item(base, low)->end_ns - end_ns < end_ns - item(base, low - 1)->end_ns)
		return (int64_t)low;
	return (int64_t)low - 1;
}

/*
 * Returns the number in the base of a member's first collective. Negative: before the base's first.
 */
static int64_t first_number(const struct comm_member *base, const struct comm_member *member)
{
	int64_t least = -(int64_t)(member->count / 2), most = (int64_t)(base->count / 2), best = 0;
	double least_misfit = misfit(base, member, 0);
	bool begins_alike = base->member->saw_join && member->member->saw_join;

	if (begins_alike || (base->count == member->count && !base->log->lacks_beginning &&
			     !member->log->lacks_beginning))
		return 0;
	if (base->host == member->host) {
		size_t middle = member->count / 2;

		return nearest_end(base, item(member, middle)->end_ns) - (int64_t)middle;
	}
	/* The one that began later has less, if both ended together. */
	if (base->count > member->count)
		most = (int64_t)(base->count - member->count) + 2;
	least = larger(least, -SHIFTS_MAX / 2);
	if (most > least + SHIFTS_MAX)
		least = most - SHIFTS_MAX;
	for (int64_t first = least; first <= most; first++) {
		double other = misfit(base, member, first);

		if (other < least_misfit) {
			least_misfit = other;
			best = first;
		}
	}
	return best;
}

static void number_items(struct communicator *communicator)
{
	struct comm_member *members = communicator->members.list;
	size_t base = 0, before = 0;
	int64_t *firsts = xt_calloc(communicator->members.count, sizeof(*firsts));

	for (size_t m = 1; m < communicator->members.count; m++)
		if (members[m].count > members[base].count)
			base = m;
	for (size_t m = 0; m < communicator->members.count; m++) {
		if (m != base && members[m].count)
			firsts[m] = first_number(&members[base], &members[m]);
		if (firsts[m] < -(int64_t)before)
			before = (size_t)-firsts[m];
	}
	for (size_t m = 0; m < communicator->members.count; m++) {
		members[m].first = (size_t)(firsts[m] + (int64_t)before);
		if (members[m].first + members[m].count > communicator->instance_count)
			communicator->instance_count = members[m].first + members[m].count;
	}
	free(firsts);
}

/*
 * A log that begins late does not have the rank in the communicator. If that of the others is their
 * rank in the job, so is this.
 */
static void complete_ranks(struct communicator *communicator, const struct inputs *inputs)
{
	bool is_job = true, is_known = false;

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];

		is_known |= member->rank != UINT32_MAX;
		is_job &= member->rank == UINT32_MAX ||
			  member->rank == inputs->logs[member->log->log].rank;
	}
	for (size_t m = 0; m < communicator->members.count && is_job && is_known; m++)
		communicator->members.list[m].rank =
			inputs->logs[communicator->members.list[m].log->log].rank;
}

static void free_one(struct communicator *communicator)
{
	for (size_t m = 0; m < communicator->members.count; m++)
		free(communicator->members.list[m].items);
	free_all(communicator->members.list, communicator->arrivals);
}

void communicators_find(struct communicators *out, const struct rank_log *logs, size_t log_count,
			const struct inputs *inputs, const uint32_t *hosts)
{
	size_t kept = 0;

	for (size_t l = 0; l < log_count; l++)
		for (uint32_t m = 0; m < logs[l].members.count; m++)
			if (!logs[l].members.list[m].is_rest)
				add_member(out, inputs, &logs[l], m, hosts);
	for (size_t c = 0; c < out->count; c++) {
		/* Several ranks are kept even if the logs of all but one are missing. */
		if (out->list[c].members.count < 2 && out->list[c].rank_count < 2) {
			free_one(&out->list[c]);
			continue;
		}
		number_items(&out->list[c]);
		complete_ranks(&out->list[c], inputs);
		out->list[kept++] = out->list[c];
	}
	out->count = kept;
}

void communicator_name(const struct communicator *communicator, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, communicator->is_by_order ? "stream %llu" : "%llu",
		 (unsigned long long)communicator->key);
}

size_t comm_member_reach(const struct communicator *communicator, size_t m)
{
	const struct comm_member *member = &communicator->members.list[m];
	size_t reach = member->first + member->count;

	for (size_t o = 0; o < member->log->open_calls.count && !communicator->is_by_order; o++)
		reach += member->log->open_calls.list[o].communicator == communicator->key;
	return reach;
}

void communicators_free(struct communicators *communicators)
{
	for (size_t c = 0; c < communicators->count; c++)
		free_one(&communicators->list[c]);
	free_all(communicators->list, communicators->duplicates.list);
	*communicators = (struct communicators){0};
}

/*
 * A bound of the difference of two clocks.
 *
 * Let a collective end in host A at e and begin there at s, and in host B at E and S, each on its
 * own clock. B's clock needs the correction x with s <= E + x and S + x <= e. So s - E <= x <= e -
 * S. For a given drift, the offset is between the largest lower and the smallest upper bound. The
 * room between them is a concave function of the drift, so a search by sections finds its maximum.
 */
struct bound {
	double at_ns; /* on the clock of the host, since first_ns */
	double low_ns, high_ns;
	double ends_ns; /* difference of the ends */
};

struct bounds {
	LIST(struct bound);
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
	if (!bounds->count)
		bounds->first_ns = own->end_ns;
	list_append(*bounds,
		    (struct bound){own->end_ns - bounds->first_ns, others->start_ns - own->end_ns,
				   others->end_ns - own->start_ns, others->end_ns - own->end_ns});
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

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];
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
	for (size_t m = 0; m < communicator->members.count; m++) {
		uint32_t host = communicator->members.list[m].host;

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

		*low_ns = larger(*low_ns, bound->low_ns - drifted_ns);
		*high_ns = smaller(*high_ns, bound->high_ns - drifted_ns);
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

/* Aligns the hosts that share collectives with aligned ones. Returns their number. */
static size_t align_next(struct rank_clocks *clocks, const struct communicators *communicators,
			 struct bounds *bounds, struct side *sides)
{
	size_t aligned = 0;

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

void rank_clocks_align(struct rank_clocks *clocks, const struct communicators *communicators)
{
	struct bounds *bounds = xt_calloc(clocks->count + 1, sizeof(*bounds));
	struct side *sides = xt_calloc(clocks->count + 1, sizeof(*sides));
	size_t aligned = 1;

	/* Hosts may be connected through others only, or not at all, as in several jobs. */
	while (aligned && clocks->count > 1) {
		aligned = align_next(clocks, communicators, bounds, sides);
		if (!aligned)
			aligned = begin_group(clocks);
	}
	free_all(bounds, sides);
}

void rank_clocks_free(struct rank_clocks *clocks)
{
	free_all(clocks->list, clocks->hosts);
	*clocks = (struct rank_clocks){0};
}

static double start_ns(const struct comm_member *member, const struct rank_collective *item,
		       const struct rank_clocks *clocks)
{
	return rank_clock_ns(&clocks->list[member->host], item->start_ns);
}

double arrivals_wait_ns(const struct communicator *communicator, size_t member, size_t number,
			const struct rank_clocks *clocks, double *exposed_ns_out)
{
	const struct arrivals *arrivals = &communicator->arrivals[number];
	const struct comm_member *one = &communicator->members.list[member];
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
	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];
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
	for (size_t m = 0; m < communicator->members.count; m++)
		if (communicator->members.list[m].rank == rank && rank != UINT32_MAX)
			return comm_item(&communicator->members.list[m], number) ? m : SIZE_MAX;
	return SIZE_MAX;
}

/* Decides who waits for whom. In a send, nobody knows. */
static bool find_direction(struct arrivals *arrivals, const struct communicator *communicator,
			   size_t number, const struct rank_clocks *clocks)
{
	const struct rank_collective *item =
		comm_item(&communicator->members.list[arrivals->late], number);
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
			start_ns(&communicator->members.list[root],
				 comm_item(&communicator->members.list[root], number), clocks);
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

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];
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
	for (size_t m = 0; m < communicator->members.count; m++) {
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

char *rank_clock_text(const struct run *run, size_t index)
{
	const struct rank_clock *clock = &run->compared->report.clocks.list[index];
	const struct rank_clocks *clocks = &run->compared->report.clocks;
	bool is_known = rank_clock_is_known(clocks, index);
	const char *first = clocks->list[is_known ? clock->reference : 0].log->host;
	char time[TIME_BYTES];

	format_time(time, (uint64_t)clock->error_ns);
	if (is_known)
		return xt_asprintf(
			"The clock of %s is aligned with that of %s to within %s, by %zu "
			"collective%s%s.%s",
			clock->log->host, first, time, clock->bound_count,
			clock->bound_count == 1 ? "" : "s",
			clock->by_order_count == clock->bound_count
				? " that are matched by their order only"
				: "",
			clock->broken_count ? " Some of them contradict a steady drift." : "");
	return xt_asprintf("The clocks of %s and %s share no collective: their difference is as "
			   "exact as their system clocks, which is unknown.",
			   clock->log->host, first);
}

/* The offset of a clock in the middle of the job. */
static int64_t shift_ns(const struct collectives_report *report, const struct rank_clock *clock)
{
	/* By the clock itself. */
	double middle_ns = report->times.first_ns + report->times.job_ns / 2 - clock->offset_ns;

	return llround(clock->offset_ns + clock->drift * (middle_ns - clock->at_ns));
}

/* Says how well a host is aligned. The caller frees it. */
static char *host_text(const struct run *run, size_t host)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_clock *clock = &report->clocks.list[host];
	double drifted_ns = fabs(clock->drift) * report->times.job_ns / 2;
	int64_t by_ns = shift_ns(report, clock);
	char by[TIME_BYTES], within[TIME_BYTES];

	if (!rank_clock_is_known(&report->clocks, host))
		return rank_clock_text(run, host);
	format_time(by, (uint64_t)llabs(by_ns));
	format_time(within, (uint64_t)(clock->error_ns + drifted_ns));
	return xt_asprintf("in timelines, the clock of %s is moved %s by %s, to that of %s. This "
			   "is right to within %s.",
			   clock->log->host, by_ns < 0 ? "back" : "forward", by,
			   report->clocks.list[clock->reference].log->host, within);
}

void alignment_keep(struct alignment *alignment, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_clocks *clocks = &report->clocks;
	size_t log_count = run->inputs->count;

	alignment->shifts_ns = xt_calloc(log_count + 1, sizeof(*alignment->shifts_ns));
	alignment->sentences = xt_calloc(clocks->count + 1, sizeof(*alignment->sentences));
	for (size_t l = 0; l < log_count && report->communicators.count; l++)
		if (clocks->list[clocks->hosts[l]].is_aligned)
			alignment->shifts_ns[l] = shift_ns(report, &clocks->list[clocks->hosts[l]]);
	for (size_t h = 1; h < clocks->count && report->communicators.count; h++)
		alignment->sentences[alignment->count++] = host_text(run, h);
}

void alignment_free(struct alignment *alignment)
{
	free_list((void **)alignment->sentences, alignment->count);
	free_all(alignment->sentences, alignment->shifts_ns);
}
