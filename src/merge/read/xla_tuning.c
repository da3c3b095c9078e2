/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/xla_tuning.h"

#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"

#define NODES_ADDED_MAX (1u << 16) /* the log is untrusted: further work keeps its own range */
#define NO_PASS		SIZE_MAX

COMPARE_BY(compare_passes, struct tuning_pass, UP(start_ns))

static void add_pass(struct tuning_passes *passes, const struct tuning_pass *pass)
{
	xt_grow(&passes->rows, &passes->capacity, passes->count + 1, sizeof(*pass));
	passes->rows[passes->count++] = *pass;
}

/* Adds the times that a thread spent in ranges. outermost: by node, the range around it, or 0. */
static void add_passes(struct tuning_passes *passes, const struct range_history *history,
		       uint32_t thread, const uint32_t *outermost)
{
	uint32_t current = RANGE_NONE;

	for (size_t i = 0; i < history->count; i++) {
		uint32_t pass = outermost[history->states[i]];

		if (pass == current)
			continue;
		if (current)
			passes->rows[passes->count - 1].end_ns = history->times_ns[i];
		if (pass)
			add_pass(passes, &(struct tuning_pass){
						 .start_ns = history->times_ns[i],
						 .end_ns = UINT64_MAX,
						 .thread = thread,
						 .range = pass,
						 .is_alone = true,
					 });
		current = pass;
	}
}

static void sort_passes(struct tuning_passes *passes)
{
	if (passes->count)
		qsort(passes->rows, passes->count, sizeof(*passes->rows), compare_passes);
}

/* Replaces the compilations by the times at which several threads compile. */
static void keep_overlaps(struct tuning_passes *compilations)
{
	uint64_t end_ns = 0;
	size_t kept = 0;

	for (size_t c = 0; c < compilations->count; c++) {
		struct tuning_pass next = compilations->rows[c];
		uint64_t last_ns = end_ns;

		if (next.end_ns > end_ns)
			end_ns = next.end_ns;
		else
			last_ns = next.end_ns;
		if (next.start_ns >= last_ns)
			continue;
		next.end_ns = last_ns;
		compilations->rows[kept++] = next;
	}
	compilations->count = kept;
}

/* Marks the passes during which other threads compile. Changes the compilations. */
static void mark_overlapping(struct tuning_passes *passes, struct tuning_passes *compilations)
{
	size_t o = 0;

	sort_passes(passes);
	sort_passes(compilations);
	keep_overlaps(compilations);
	for (size_t p = 0; p < passes->count; p++) {
		struct tuning_pass *pass = &passes->rows[p];

		while (o < compilations->count && compilations->rows[o].end_ns <= pass->start_ns)
			o++;
		pass->is_alone =
			o == compilations->count || compilations->rows[o].start_ns >= pass->end_ns;
	}
}

/* Returns the index of the only pass at that time, or NO_PASS. */
static size_t pass_at(const struct xla_tuning *tuning, uint64_t time_ns)
{
	size_t low =
		FIRST_NOT(i, 0, tuning->passes.count, tuning->passes.rows[i].start_ns <= time_ns);

	return low && tuning->passes.rows[low - 1].is_alone &&
			       time_ns < tuning->passes.rows[low - 1].end_ns
		       ? low - 1
		       : NO_PASS;
}

static uint64_t helper_key(size_t pass, uint32_t thread)
{
	return (uint64_t)pass << 32 | thread;
}

static bool is_helper(const struct xla_tuning *tuning, size_t pass, uint32_t thread)
{
	uint64_t key = helper_key(pass, thread);

	return pass != NO_PASS && tuning->helper_count &&
	       bsearch(&key, tuning->helpers, tuning->helper_count, sizeof(key), compare_u64);
}

static bool is_in_trial(const struct xla_tuning *tuning, uint32_t node)
{
	return node < tuning->node_count && tuning->in_trial[node];
}

static void add_helpers(struct xla_tuning *tuning, const struct range_history *history,
			uint32_t thread)
{
	for (size_t i = 0; i < history->count; i++) {
		bool begins = is_in_trial(tuning, history->states[i]) &&
			      (!i || !is_in_trial(tuning, history->states[i - 1]));
		size_t pass = begins ? pass_at(tuning, history->times_ns[i]) : NO_PASS;
		uint64_t key = helper_key(pass, thread);

		if (pass == NO_PASS || tuning->passes.rows[pass].thread == thread ||
		    (tuning->helper_count && tuning->helpers[tuning->helper_count - 1] == key))
			continue;
		xt_grow(&tuning->helpers, &tuning->helper_capacity, tuning->helper_count + 1,
			sizeof(key));
		tuning->helpers[tuning->helper_count++] = key;
	}
}

/* The instance that begins with this event is one of the new node. */
static void move_instance(struct ranges *ranges, const struct range_history *history, size_t event,
			  uint32_t node)
{
	struct range_node *own = &ranges->nodes[history->states[event]];

	if (own->parent != (event ? history->states[event - 1] : RANGE_NONE) || !own->count)
		return;
	own->count--;
	ranges->nodes[node].count++;
}

/* Adds the nodes of a thread's trials in passes, and of the ranges around them. */
static void graft_ranges(const struct xla_tuning *tuning, struct ranges *ranges, uint32_t thread,
			 size_t node_count_max)
{
	struct range_history history = ranges_history(ranges, thread);
	uint32_t own, before = RANGE_NONE;

	for (size_t i = 0; i < history.count && ranges->node_count < node_count_max;
	     i++, before = own) {
		size_t pass = pass_at(tuning, history.times_ns[i]);
		uint32_t range, node;

		own = history.states[i];
		if (!is_helper(tuning, pass, thread) ||
		    (!is_in_trial(tuning, own) && !is_in_trial(tuning, before)))
			continue;
		range = tuning->passes.rows[pass].range;
		if (!ranges_graft(ranges, range, own, &node) && is_in_trial(tuning, own))
			move_instance(ranges, &history, i, node);
		ranges_graft(ranges, range, before, &node);
	}
}

/* Lists passes and compilations of all threads. */
static void list_passes(struct xla_tuning *tuning, const struct ranges *ranges,
			const uint8_t *kinds, struct tuning_passes *compilations)
{
	uint32_t *outer_pass = xt_calloc(ranges->node_count + 1, sizeof(*outer_pass));
	uint32_t *outer_compile = xt_calloc(ranges->node_count + 1, sizeof(*outer_compile));

	/* Parents come first. */
	for (uint32_t n = 1; n < ranges->node_count; n++) {
		uint32_t parent = ranges->nodes[n].parent;

		outer_pass[n] = outer_pass[parent];
		outer_compile[n] = outer_compile[parent];
		if (!outer_pass[n] && kinds[n] == TUNING_PASS)
			outer_pass[n] = n;
		if (!outer_compile[n] && (kinds[n] == TUNING_PASS || kinds[n] == TUNING_COMPILE))
			outer_compile[n] = n;
	}
	for (uint32_t t = 0; t < ranges->thread_count; t++) {
		struct range_history history = ranges_history(ranges, t);

		add_passes(&tuning->passes, &history, t, outer_pass);
		add_passes(compilations, &history, t, outer_compile);
	}
	free(outer_pass);
	free(outer_compile);
}

void xla_tuning_index(struct xla_tuning *tuning, struct ranges *ranges, const uint8_t *kinds)
{
	struct tuning_passes compilations = {0};
	size_t node_count_max = ranges->node_count + NODES_ADDED_MAX;

	list_passes(tuning, ranges, kinds, &compilations);
	mark_overlapping(&tuning->passes, &compilations);
	free(compilations.rows);
	for (uint32_t t = 0; t < ranges->thread_count; t++) {
		struct range_history history = ranges_history(ranges, t);

		add_helpers(tuning, &history, t);
	}
	if (tuning->helper_count)
		qsort(tuning->helpers, tuning->helper_count, sizeof(*tuning->helpers), compare_u64);
	for (uint32_t t = 0; t < ranges->thread_count && tuning->helper_count; t++)
		graft_ranges(tuning, ranges, t, node_count_max);
}

void xla_tuning_free(struct xla_tuning *tuning)
{
	free_all(tuning->passes.rows, tuning->helpers, tuning->in_trial, tuning->in_tuner);
	*tuning = (struct xla_tuning){0};
}

uint32_t xla_tuning_range(const struct xla_tuning *tuning, const struct ranges *ranges,
			  const struct range_call *call, uint32_t own)
{
	size_t pass = tuning->helper_count ? pass_at(tuning, call->time_ns) : NO_PASS;
	uint32_t node = RANGE_NONE;

	if (pass != NO_PASS && is_helper(tuning, pass, call->thread) &&
	    (is_in_trial(tuning, own) ||
	     (call->stack < tuning->stack_count && tuning->in_tuner[call->stack])))
		node = ranges_grafted(ranges, tuning->passes.rows[pass].range, own);
	return node ? node : own;
}
