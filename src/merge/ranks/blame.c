/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are taken in the order of their ends. So what made a rank late, if it was a wait in a
 * collective of another communicator, has its own causes already.
 */
#include "merge/ranks/blame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/grow.h"
#include "log/base/hash_table.h"
#include "merge/ranks/arrivals.h"
#include "merge/ranks/comm_blocks.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/path_sums.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"
#include "merge/sums/saturating.h"

#define SUSPECTS_MAX 16	  /* ranks that came last in collectives of one block */
#define SMALL_PART   0.02 /* parts of a cause below this are noise */

/* A collective in which a rank took part: its place in the communicators. */
struct place_in {
	uint32_t communicator, member, number;
};

/* Where the collectives of a log are in the communicators. */
struct log_places {
	struct place_in *members; /* by member of the log, without the number */
	uint32_t *numbers;	  /* by collective in its list */
};

/* A wait in a collective of another communicator. */
struct other_wait {
	struct place_in at;
	double ns;
};

/* A rank that came last, and its time since the beginning of the block. */
struct suspect {
	size_t member;
	uint64_t *ns; /* by node */
	struct other_wait *waits;
	size_t wait_count, wait_capacity;
	double waited_ns;
};

/* A part of the cause of a collective's wait. */
struct share {
	uint32_t log, node;
	float part;
};

struct blame {
	struct collectives_report *report;
	struct log_places *places; /* by log of the inputs */
	struct share *shares;
	size_t share_count, share_capacity;
	/* By communicator and number: its shares. They are unknown if there are none. */
	size_t **share_begins, **share_ends;
	struct comm_blocks blocks;
	/* Of the current block. */
	const struct communicator *communicator;
	const struct comm_block *block;
	struct path_sums sums;
	double waited_ns; /* in collectives of other communicators, of all ranks */
	struct suspect suspects[SUSPECTS_MAX];
	size_t suspect_count;
	size_t compared_count; /* members that are compared in the block */
};

static struct suspect *find_suspect(struct blame *blame, size_t member)
{
	for (size_t s = 0; s < blame->suspect_count; s++)
		if (blame->suspects[s].member == member)
			return &blame->suspects[s];
	return NULL;
}

/* If there are too many, the member is left out. */
static void add_suspect(struct blame *blame, size_t member)
{
	struct suspect *suspect = &blame->suspects[blame->suspect_count];

	if (find_suspect(blame, member) || blame->suspect_count == SUSPECTS_MAX)
		return;
	if (!suspect->ns)
		suspect->ns = xt_calloc(blame->sums.node_count, sizeof(*suspect->ns));
	suspect->member = member;
	suspect->wait_count = 0;
	suspect->waited_ns = 0;
	blame->suspect_count++;
}

/* The members that came last in collectives of a block, and the one that cost most. */
static void find_suspects(struct blame *blame, const struct comm_block *block)
{
	blame->suspect_count = 0;
	if (block->late_ns > 0)
		add_suspect(blame, block->late);
	for (size_t i = block->from; i < block->until; i++)
		if (blame->communicator->arrivals[i].has_waits &&
		    comm_block_compares(block, blame->communicator,
					blame->communicator->arrivals[i].late))
			add_suspect(blame, blame->communicator->arrivals[i].late);
}

static void add_path_time(struct blame *blame, struct suspect *suspect, uint32_t node, uint64_t ns,
			  uint64_t beside_ns)
{
	bool is_late = suspect && suspect->member == blame->block->late;

	path_sums_add(&blame->sums, node, ns, is_late ? 0 : beside_ns);
	if (suspect && node < blame->sums.node_count)
		saturating_add(&suspect->ns[node], ns);
}

/*
 * Adds a collective of another communicator. The wait there has causes of its own; the transfer is
 * time of its call path.
 */
static void add_other(struct blame *blame, const struct rank_collective *item, struct place_in at,
		      struct suspect *suspect)
{
	const struct communicator *other;
	double exposed_ns, ns, all_ns = (double)(item->end_ns - item->start_ns);

	if (at.communicator == UINT32_MAX || at.number == UINT32_MAX) {
		add_path_time(blame, suspect, item->node, all_ns > 0 ? (uint64_t)all_ns : 0, 0);
		return;
	}
	other = &blame->report->communicators.list[at.communicator];
	ns = arrivals_wait_ns(other, at.member, at.number, &blame->report->clocks, &exposed_ns);
	if (all_ns - ns >= 1)
		add_path_time(blame, suspect, item->node, (uint64_t)(all_ns - ns), 0);
	blame->waited_ns += ns;
	if (!suspect || ns <= 0)
		return;
	xt_append(suspect->waits, suspect->wait_count, suspect->wait_capacity,
		  (struct other_wait){at, ns});
	suspect->waited_ns += ns;
}

static void add_path_times(struct blame *blame, const struct rank_log *log, size_t index,
			   struct suspect *suspect)
{
	struct rank_times times = rank_times_before(log, index);
	struct rank_time time;

	while (rank_times_next(&times, &time))
		add_path_time(blame, suspect, time.node, time.ns, time.beside_ns);
}

static struct place_in place_of(const struct blame *blame, const struct rank_log *log, size_t index)
{
	const struct log_places *places = &blame->places[log->log];
	struct place_in place = places->members[log->list[index].member];

	place.number = places->numbers[index];
	return place;
}

/* Adds the time of a member between its collectives number - 1 and number. */
static void add_times(struct blame *blame, size_t m, size_t number)
{
	const struct comm_member *member = &blame->communicator->members[m];
	const struct rank_log *log = member->log;
	struct suspect *suspect = find_suspect(blame, m);
	size_t until;

	/* What comes before the first collective is the start of the program. */
	if (number <= member->first || number - member->first >= member->count)
		return;
	until = member->items[number - member->first];
	for (size_t index = member->items[number - member->first - 1] + 1; index <= until;
	     index++) {
		if (log->members[log->list[index].member].device != member->member->device)
			continue;
		add_path_times(blame, log, index, suspect);
		if (index < until)
			add_other(blame, &log->list[index], place_of(blame, log, index), suspect);
	}
}

/* How much more than the mean of the other ranks that are compared. */
static double more_than_others(const struct blame *blame, double own_ns, double all_ns)
{
	size_t others = blame->compared_count - 1;

	return others && all_ns >= own_ns ? own_ns - (all_ns - own_ns) / (double)others : 0;
}

/* How much more time a suspect spent in a node. */
static double excess_ns(const struct blame *blame, const struct suspect *suspect, uint32_t node)
{
	return more_than_others(blame, (double)suspect->ns[node], (double)blame->sums.all_ns[node]);
}

static double excess_wait_ns(const struct blame *blame, const struct suspect *suspect)
{
	double more_ns = more_than_others(blame, suspect->waited_ns, blame->waited_ns);

	return more_ns > 0 ? more_ns : 0;
}

/* Adds a share to those of the current collective, which begin at `first`. */
static void add_share(struct blame *blame, size_t first, size_t log, uint32_t node, double part)
{
	for (size_t s = first; s < blame->share_count; s++)
		if (blame->shares[s].log == log && blame->shares[s].node == node) {
			blame->shares[s].part += (float)part;
			return;
		}
	xt_append(blame->shares, blame->share_count, blame->share_capacity,
		  (struct share){(uint32_t)log, node, (float)part});
}

/* Passes a part of the blame on to the causes of the suspect's own waits. */
static void add_inherited(struct blame *blame, size_t first, const struct suspect *suspect,
			  double part)
{
	for (size_t w = 0; w < suspect->wait_count; w++) {
		const struct place_in *at = &suspect->waits[w].at;
		size_t begin = blame->share_begins[at->communicator][at->number];
		size_t end = blame->share_ends[at->communicator][at->number];
		double own = part * suspect->waits[w].ns / suspect->waited_ns;

		if (own < SMALL_PART * part)
			continue;
		if (begin == end)
			add_share(blame, first,
				  blame->communicator->members[suspect->member].log->log, PATH_ROOT,
				  own);
		for (size_t s = begin; s < end; s++) {
			struct share share = blame->shares[s];

			add_share(blame, first, share.log, share.node, own * (double)share.part);
		}
	}
}

/*
 * Finds the causes that made a member late, as parts of 1. What is not explained belongs to the
 * root.
 */
static void find_shares(struct blame *blame, size_t late, double late_ns, size_t first)
{
	const struct suspect *suspect = find_suspect(blame, late);
	size_t log = blame->communicator->members[late].log->log;
	double more_ns, sum_ns, explained = 0;

	if (!suspect || late_ns <= 0) {
		add_share(blame, first, log, PATH_ROOT, 1);
		return;
	}
	sum_ns = excess_wait_ns(blame, suspect);
	for (size_t t = 0; t < blame->sums.touched_count; t++) {
		more_ns = excess_ns(blame, suspect, blame->sums.touched[t]);
		sum_ns += more_ns > 0 ? more_ns : 0;
	}
	if (sum_ns > 0)
		explained = sum_ns < late_ns ? sum_ns / late_ns : 1;
	for (size_t t = 0; t < blame->sums.touched_count && explained > 0; t++) {
		more_ns = excess_ns(blame, suspect, blame->sums.touched[t]);
		if (more_ns > SMALL_PART * sum_ns)
			add_share(blame, first, log, blame->sums.touched[t],
				  explained * more_ns / sum_ns);
	}
	more_ns = excess_wait_ns(blame, suspect);
	if (explained > 0 && more_ns > SMALL_PART * sum_ns)
		add_inherited(blame, first, suspect, explained * more_ns / sum_ns);
}

/* Returns a cause, which is added if needed. */
static struct wait_cause *cause_of(struct collectives_report *report, size_t log, uint32_t node)
{
	uint32_t hash = xt_hash_u64((uint64_t)log << 32 | node);
	struct xt_hash_slot *slot;

	xt_hash_require(&report->causes.table, report->causes.count + 1);
	xt_grow(&report->causes.list, &report->causes.capacity, report->causes.count + 1,
		sizeof(*report->causes.list));
	for (slot = xt_hash_first(&report->causes.table, hash); slot->item;
	     slot = xt_hash_next(&report->causes.table, slot)) {
		struct wait_cause *cause = &report->causes.list[slot->item - 1];

		if (cause->log == log && cause->node == node)
			return cause;
	}
	report->causes.list[report->causes.count++] = (struct wait_cause){.log = log, .node = node};
	*slot = (struct xt_hash_slot){hash, (uint32_t)report->causes.count};
	return &report->causes.list[report->causes.count - 1];
}

static void add_cause(struct collectives_report *report, size_t log, uint32_t node,
		      uint64_t wait_ns, uint64_t cost_ns)
{
	struct wait_cause *cause = cause_of(report, log, node);

	cause->wait_ns += wait_ns;
	cause->cost_ns += cost_ns;
	report->times.cost_ns += cost_ns;
	report->ranks[log].caused_ns += wait_ns;
	report->ranks[log].cost_ns += cost_ns;
}

/* Charges a wait, or what it costs, to the causes that made a member late. */
static void charge(struct blame *blame, size_t late, double late_ns, double wait_ns, double cost_ns)
{
	size_t first = blame->share_count;
	double sum = 0;

	find_shares(blame, late, late_ns, first);
	for (size_t s = first; s < blame->share_count; s++)
		sum += (double)blame->shares[s].part;
	if (sum < 1)
		add_share(blame, first, blame->communicator->members[late].log->log, PATH_ROOT,
			  1 - sum);
	for (size_t s = first; s < blame->share_count; s++) {
		const struct share *share = &blame->shares[s];
		uint64_t own_wait_ns = (uint64_t)(wait_ns * (double)share->part);
		uint64_t own_cost_ns = (uint64_t)(cost_ns * (double)share->part);

		if (own_wait_ns || own_cost_ns)
			add_cause(blame->report, share->log, share->node, own_wait_ns, own_cost_ns);
	}
}

/* Drops small parts and scales the others up. Otherwise each collective inherits more of them. */
static void drop_small_shares(struct blame *blame, size_t first)
{
	size_t kept = first;
	float sum = 0;

	for (size_t s = first; s < blame->share_count; s++)
		if ((double)blame->shares[s].part >= SMALL_PART) {
			sum += blame->shares[s].part;
			blame->shares[kept++] = blame->shares[s];
		}
	if (kept == first)
		return;
	blame->share_count = kept;
	for (size_t s = first; s < kept; s++)
		blame->shares[s].part /= sum;
}

/* Keeps the causes for collectives of other communicators that wait for this one. */
static void charge_wait(struct blame *blame, uint32_t communicator, size_t number)
{
	const struct arrivals *arrivals = &blame->communicator->arrivals[number];

	blame->share_begins[communicator][number] = blame->share_count;
	charge(blame, arrivals->late, arrivals->last_ns - arrivals->mean_ns, arrivals->wait_ns, 0);
	drop_small_shares(blame, blame->share_begins[communicator][number]);
	blame->share_ends[communicator][number] = blame->share_count;
}

/* The cost of waits beside other work to the other ranks, on average. */
static double hidden_cost_ns(struct blame *blame)
{
	const struct suspect *late = find_suspect(blame, blame->block->late);

	if (!late || blame->block->hidden_ns <= 0)
		return 0;
	return fmin(blame->block->hidden_ns,
		    path_sums_slowed_ns(&blame->sums, late->ns, blame->compared_count - 1));
}

/* Charges what a block cost the other ranks. */
static void charge_cost(struct blame *blame)
{
	double late_ns = blame->block->late_ns;
	size_t shares = blame->share_count;
	double cost_ns;

	if (blame->compared_count > 1 && late_ns > 0)
		late_ns = fmin(late_ns + hidden_cost_ns(blame), blame->block->apart_ns);
	cost_ns = late_ns * (double)(blame->compared_count - 1);
	if (blame->compared_count > 1 && cost_ns >= 1)
		charge(blame, blame->block->late, late_ns, 0, cost_ns);

	blame->share_count = shares; /* nothing inherits them */
}

static void clear(struct blame *blame)
{
	for (size_t t = 0; t < blame->sums.touched_count; t++)
		for (size_t s = 0; s < blame->suspect_count; s++)
			blame->suspects[s].ns[blame->sums.touched[t]] = 0;
	path_sums_clear(&blame->sums);
	blame->waited_ns = 0;
}

static void blame_block(struct blame *blame, const struct comm_block *block)
{
	blame->block = block;
	blame->communicator = &blame->report->communicators.list[block->communicator];
	blame->compared_count = 0;
	for (size_t m = 0; m < blame->communicator->member_count; m++)
		blame->compared_count += comm_block_compares(block, blame->communicator, m);
	find_suspects(blame, block);
	for (size_t i = block->from; i < block->until && blame->suspect_count; i++) {
		for (size_t m = 0; m < blame->communicator->member_count; m++)
			if (comm_block_compares(block, blame->communicator, m))
				add_times(blame, m, i);
		if (blame->communicator->arrivals[i].wait_ns > 0)
			charge_wait(blame, block->communicator, i);
	}
	if (blame->suspect_count)
		charge_cost(blame);
	clear(blame);
}

/* Notes for each collective of each log which of its communicator it is. */
static void find_places(struct blame *blame, const struct run *run)
{
	const struct communicators *communicators = &blame->report->communicators;

	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];
		struct log_places *places = &blame->places[log->log];

		places->members = xt_malloc((log->member_count + 1) * sizeof(*places->members));
		places->numbers = xt_malloc((log->count + 1) * sizeof(*places->numbers));
		memset(places->numbers, 0xff, (log->count + 1) * sizeof(*places->numbers));
		for (size_t m = 0; m < log->member_count; m++)
			places->members[m] = (struct place_in){.communicator = UINT32_MAX};
	}
	for (uint32_t c = 0; c < communicators->count; c++)
		for (uint32_t m = 0; m < communicators->list[c].member_count; m++) {
			const struct comm_member *member = &communicators->list[c].members[m];
			struct log_places *places = &blame->places[member->log->log];

			places->members[member->member - member->log->members] =
				(struct place_in){.communicator = c, .member = m};
			for (size_t i = 0; i < member->count; i++)
				places->numbers[member->items[i]] = (uint32_t)(member->first + i);
		}
}

static int begin(struct blame *blame, const struct run *run)
{
	size_t communicators = blame->report->communicators.count;

	blame->places = xt_calloc(run->inputs->count + 1, sizeof(*blame->places));
	blame->share_begins = xt_calloc(communicators + 1, sizeof(*blame->share_begins));
	blame->share_ends = xt_calloc(communicators + 1, sizeof(*blame->share_ends));
	path_sums_init(&blame->sums, &run->paths);
	for (size_t c = 0; c < communicators; c++) {
		size_t count = blame->report->communicators.list[c].instance_count;

		blame->share_begins[c] = xt_calloc(count + 1, sizeof(**blame->share_begins));
		blame->share_ends[c] = xt_calloc(count + 1, sizeof(**blame->share_ends));
	}
	find_places(blame, run);
	return 0;
}

static void end(struct blame *blame, const struct run *run)
{
	for (size_t c = 0; c < blame->report->communicators.count; c++) {
		if (blame->share_begins)
			free(blame->share_begins[c]);
		if (blame->share_ends)
			free(blame->share_ends[c]);
	}
	for (size_t l = 0; blame->places && l < run->inputs->count; l++) {
		free(blame->places[l].members);
		free(blame->places[l].numbers);
	}
	for (size_t s = 0; s < SUSPECTS_MAX; s++) {
		free(blame->suspects[s].ns);
		free(blame->suspects[s].waits);
	}
	free_all(blame->share_begins, blame->share_ends, blame->places, blame->shares);
	comm_blocks_free(&blame->blocks);
	path_sums_free(&blame->sums);
}

int blame_waits(struct collectives_report *report, const struct run *run)
{
	struct blame blame = {.report = report};
	int error = begin(&blame, run);

	if (!error)
		comm_blocks_find(&blame.blocks, &report->communicators, &report->clocks,
				 report->absorbed_ns);
	for (size_t b = 0; b < blame.blocks.count && !error; b++) {
		blame_block(&blame, &blame.blocks.list[b]);
		error = 0;
	}
	end(&blame, run);
	return error;
}
