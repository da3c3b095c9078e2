/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/wait_cause.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/naming/paths.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/collectives.h"
#include "merge/read/inputs.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"

#define NOTABLE_SHARE 0.02 /* of the time of the job: less than this has no verdict */
#define SAME_SHARE    0.6  /* of the cost: more than this is due to one rank */

#define LAUNCH_LATE "launch late"

static const struct {
	const char *beginning; /* of the last frame of a path */
	const char *kind;
	const char *what; /* the rank needs longer for it */
} leaves[] = {
	{LEAF_KERNEL_MARK, "kernel", "a kernel of this line takes longer"},
	{"[GPU_Memcpy", "copy", "a copy of this line takes longer"},
	{"[GPU_Memset", "memset", "a memset of this line takes longer"},
	{"[idle: allocating", "idle",
	 "the GPU of this rank is idle longer while this line allocates memory"},
	{"[idle: loading", "idle",
	 "the GPU of this rank is idle longer while this line loads code"},
	{"[idle:", "idle",
	 "the GPU of this rank is idle longer before the work that this line launches"},
};

static const char *name_of(const struct paths *paths, uint32_t node)
{
	return names_text(&paths->names, paths->nodes[node].name, NULL);
}

/* Returns the index in leaves, or -1. name_out: NULL, or gets the name of that frame. */
static int leaf_of(const struct paths *paths, uint32_t node, const char **name_out)
{
	/* The activity of the CPU is below the frame of idle time, so go up to that frame. */
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		const char *name = name_of(paths, node);

		if (name_out)
			*name_out = name;
		for (size_t l = 0; l < sizeof(leaves) / sizeof(leaves[0]); l++)
			if (!strncmp(name, leaves[l].beginning, strlen(leaves[l].beginning)))
				return (int)l;
	}
	return -1;
}

/* Whether it ends in idle time in which the CPU had not launched the next work. */
static bool wait_cause_is_launch_late(const struct paths *paths, uint32_t node)
{
	const char *name;

	return leaf_of(paths, node, &name) >= 0 && !strcmp(name, idle_labels[IDLE_LAUNCH_LATE]);
}

/* Whether a call path ends in a collective: its transfers take longer. */
static bool wait_cause_is_transfer(const struct paths *paths, uint32_t node)
{
	const char *name = name_of(paths, node);
	size_t mark = strlen(LEAF_KERNEL_MARK);

	/* The time of a send or receive is mostly a wait for its peer. */
	return node != PATH_ROOT && !strncmp(name, LEAF_KERNEL_MARK, mark) &&
	       is_collective_kernel(name + mark, strlen(name + mark)) &&
	       collective_needs_all(collective_operation(name + mark, strlen(name + mark)));
}

bool wait_cause_is_kernel(const struct paths *paths, uint32_t node)
{
	return leaf_of(paths, node, NULL) == 0 && !wait_cause_is_transfer(paths, node);
}

const char *wait_cause_kind(const struct paths *paths, uint32_t node)
{
	int leaf = leaf_of(paths, node, NULL);

	if (wait_cause_is_transfer(paths, node))
		return "collective";
	return leaf < 0 ? "unknown" : leaves[leaf].kind;
}

uint32_t wait_cause_frame(const struct paths *paths, uint32_t node)
{
	uint32_t innermost = NAME_EMPTY;

	for (uint32_t n = node; n != PATH_ROOT; n = paths->nodes[n].parent) {
		uint32_t name = paths->nodes[n].name;

		if (paths_is_user_frame(paths, name))
			return name;
		if (innermost == NAME_EMPTY && name_of(paths, n)[0] != '[')
			innermost = name;
	}
	return innermost;
}

char *wait_cause_where(const struct paths *paths, uint32_t node)
{
	return paths_frame_where(paths, wait_cause_frame(paths, node));
}

const char *wait_cause_what(const struct paths *paths, uint32_t node)
{
	int leaf = leaf_of(paths, node, NULL);

	return leaf < 0 ? "" : leaves[leaf].what;
}

/* The causes with one line and one kind of work. */
struct cause_place {
	uint32_t frame;	  /* a name in run->paths */
	const char *kind; /* as from wait_cause_kind(), or that launches are late */
	uint32_t node;	  /* the path that costs most */
	uint64_t ns;
};

struct cause_places {
	LIST(struct cause_place);
	struct interner ids; /* of frame and kind */
};

/* Returns the time that ranks lost as a part of all their time. */
static double share_of(const struct collectives_report *report, double lost_ns)
{
	return report->times.ranks_ns > 0 ? lost_ns / report->times.ranks_ns : 0;
}

/* Returns the cost of a late rank as a part of the others' time: it does not wait itself. */
static double share_of_wait(const struct collectives_report *report, uint64_t cost_ns)
{
	double others = (double)report->largest_count - 1;

	return others > 0 ? share_of(report, (double)cost_ns) * (others + 1) / others : 0;
}

static uint64_t slow_ns_of(const struct collectives_report *report, size_t communicator)
{
	uint64_t slow_ns = 0;

	for (size_t g = 0; g < report->groups.count; g++)
		if (report->groups.list[g].communicator == communicator)
			slow_ns += report->groups.list[g].slow_ns;
	return slow_ns * report->communicators.list[communicator].members.count;
}

/* The time of all ranks in slow transfers, and in waits for ranks that such transfers made late. */
static void judge_link(struct collectives_report *report, const struct run *run)
{
	struct rank_verdict *verdict = &report->verdict;
	uint64_t waited_ns = 0, most_ns = 0;
	double share;
	size_t slowest = 0;

	for (size_t c = 0; c < report->causes.count; c++)
		if (wait_cause_is_transfer(&run->paths, report->causes.list[c].node))
			waited_ns += report->causes.list[c].cost_ns;
	for (size_t c = 0; c < report->communicators.count; c++)
		if (slow_ns_of(report, c) > most_ns) {
			slowest = c;
			most_ns = slow_ns_of(report, c);
		}
	if (!most_ns)
		return;
	share = share_of(report, (double)most_ns) + share_of_wait(report, waited_ns);
	if (share >= NOTABLE_SHARE &&
	    (share > verdict->share || wait_cause_is_transfer(&run->paths, verdict->node)))
		*verdict = (struct rank_verdict){.kind = VERDICT_LINK,
						 .communicator = slowest,
						 .cost_ns = most_ns + waited_ns,
						 .share = share};
}

/* Returns the place of a cause, which is added if needed. */
static struct cause_place *wait_cause_place_of(struct cause_places *places, const struct run *run,
					       const struct wait_cause *cause)
{
	bool is_late = wait_cause_is_launch_late(&run->paths, cause->node);
	const struct cause_place place = {
		.frame = wait_cause_frame(&run->paths, cause->node),
		.kind = is_late ? LAUNCH_LATE : wait_cause_kind(&run->paths, cause->node),
		.node = cause->node};
	const uint64_t key[] = {place.frame, (uintptr_t)place.kind};
	bool is_new;
	uint32_t id = xt_intern(&places->ids, key, sizeof(key), &is_new);

	if (is_new)
		list_append(*places, place);
	return &places->list[id - 1];
}

/*
 * Chooses the place that costs most. If launches cost most in all, and no other place much, the
 * place with the most expensive launches counts.
 */
static void choose_place(struct rank_verdict *verdict, const struct cause_places *places)
{
	const struct cause_place *worst = NULL, *latest = NULL, *other = NULL;

	for (size_t p = 0; p < places->count; p++) {
		const struct cause_place *place = &places->list[p];
		bool is_late = !strcmp(place->kind, LAUNCH_LATE);
		const struct cause_place **most = is_late ? &latest : &other;

		if (is_late)
			verdict->launch_late_ns += place->ns;
		if (!*most || place->ns > (*most)->ns)
			*most = place;
	}
	verdict->is_of_launches = latest && verdict->launch_late_ns > verdict->cost_ns / 2 &&
				  latest->ns < verdict->cost_ns / 2 &&
				  (!other || other->ns < verdict->cost_ns / 4);
	worst = !other || (latest && latest->ns > other->ns) ? latest : other;
	if (verdict->is_of_launches)
		worst = latest;
	if (!worst)
		return;
	verdict->place_ns = worst->ns;
	verdict->node = worst->node;
}

/* Finds the line that causes most, in one log or in all (log: SIZE_MAX). */
static void find_main_cause(struct rank_verdict *verdict, const struct collectives_report *report,
			    const struct run *run, size_t log)
{
	struct cause_places places = {0};

	verdict->node = PATH_ROOT;
	for (size_t c = 0; c < report->causes.count; c++) {
		const struct wait_cause *cause = &report->causes.list[c];

		if (cause->node != PATH_ROOT && (log == SIZE_MAX || cause->log == log))
			wait_cause_place_of(&places, run, cause)->ns += cause->cost_ns;
	}
	choose_place(verdict, &places);
	free(places.list);
	interner_free(&places.ids);
}

/* Finds a rank that never reached the first collective that hangs, and its last work. */
static void judge_hang(struct collectives_report *report)
{
	const struct unfinished_collective *row = &report->unfinished.list[0];
	const struct communicator *communicator = &report->communicators.list[row->communicator];
	double until_ns = row->begin_ns, first_ns;

	report->verdict =
		(struct rank_verdict){.kind = VERDICT_HANG, .log = SIZE_MAX, .node = PATH_ROOT};
	for (size_t m = communicator->members.count; m-- > 0;) {
		const struct rank_log *log = communicator->members.list[m].log;
		const struct rank_clock *clock =
			&report->clocks.list[communicator->members.list[m].host];

		if (comm_member_reach(communicator, m) > row->number) {
			until_ns = fmax(until_ns, rank_clock_ns(clock, log->end_ns));
			continue;
		}
		report->verdict.log = log->log;
		report->verdict.node = log->last_node;
	}
	report->verdict.cost_ns = (uint64_t)(until_ns - row->begin_ns);
	first_ns = fmin(report->times.first_ns, row->begin_ns);
	report->verdict.share =
		until_ns > first_ns ? (until_ns - row->begin_ns) / (until_ns - first_ns) : 1;
}

void verdict_find(struct collectives_report *report, const struct run *run)
{
	struct rank_verdict *verdict = &report->verdict;
	double share = share_of_wait(report, report->times.cost_ns);
	size_t most = 0;

	for (size_t l = 1; l < run->inputs->count; l++)
		if (report->ranks[l].cost_ns > report->ranks[most].cost_ns)
			most = l;
	if (report->unfinished.count) {
		judge_hang(report);
		return;
	}
	if (!report->counts.compared_count) {
		verdict->kind = VERDICT_UNKNOWN;
	} else if (share >= NOTABLE_SHARE && (double)report->ranks[most].cost_ns >
						     SAME_SHARE * (double)report->times.cost_ns) {
		*verdict = (struct rank_verdict){
			.kind = VERDICT_RANK,
			.log = most,
			.cost_ns = report->ranks[most].cost_ns,
			.share = share_of_wait(report, report->ranks[most].cost_ns)};
		find_main_cause(verdict, report, run, most);
	} else if (share >= NOTABLE_SHARE) {
		*verdict = (struct rank_verdict){
			.kind = VERDICT_MOVING, .cost_ns = report->times.cost_ns, .share = share};
		find_main_cause(verdict, report, run, SIZE_MAX);
	}
	judge_link(report, run);
}
