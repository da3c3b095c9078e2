/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the findings of one moment, and decides why the values differ.
 */
#ifndef XT_DIFF_HISTORY_MOVEMENTS_H
#define XT_DIFF_HISTORY_MOVEMENTS_H

#include <stddef.h>

#include "diff/history/detect.h"

/*
 * Describes how the words of two command lines differ: "--dim 256 -> 384", "--big added". See
 * text_print().
 */
const char *arguments_change(const char *before, const char *after);

struct movement {
	enum movement_cause cause;
	bool is_drift;
	size_t place, first, last;	  /* as in struct history_finding */
	const struct group_break *change; /* what else changed there; NULL: nothing */
	bool is_together;		  /* all call paths moved alike */
	size_t lead;			  /* index of the finding that represents it */
	size_t row_count;
	bool is_worse;
	const char *reason; /* all rows are accepted; NULL: they are not */
};

extern const struct cause_spec {
	const char *word; /* for JSON */
	const char *text; /* for people */
} cause_specs[CAUSES];

struct group_result {
	const struct history *history;
	struct history_group *group;
	struct detection detection;
	struct movement *movements; /* by place */
	size_t movement_count, movement_capacity;
};

/* Detects and classifies. Free it with group_result_free(). */
void group_result_make(struct group_result *result, struct history *history,
		       struct history_group *group);
void group_result_free(struct group_result *result);

/* The results of all groups of a history. All zeros is none. */
struct history_results {
	struct groups groups;
	struct group_result *list; /* by group */
	size_t count;
};

/* Divides a history into groups, and detects in each. Free it with history_results_free(). */
void history_results_make(struct history_results *results, struct history *history);
void history_results_free(struct history_results *results);

/*
 * Does one of the newest runs contain a movement for the worse that is real and not accepted? A
 * drift counts if a total drifts with a p-value of at most 0.3 %.
 */
bool group_result_fails(const struct group_result *result, size_t newest);

/*
 * Counts movements that would fail if their cause were not the method or the hardware. Adds each
 * cause to causes: "method changed: arguments".
 */
size_t group_result_ignored(const struct group_result *result, size_t newest,
			    struct problems *causes);

/*
 * The first point of a set, by its start time, or by its label if that is 0; or SIZE_MAX. The same
 * runs have other ids with --each-run or in another source, but the same start time.
 */
size_t group_result_find_point(const struct group_result *result, uint64_t time_ns,
			       const char *label);

/* The movement that an acceptance at a point of the group is about, or SIZE_MAX. */
size_t group_result_movement_at(const struct group_result *result, size_t place);

/* Text for "why": "CUDA driver 12080 -> 13000"; "" if it is unknown. See text_print(). */
const char *movement_why(const struct group_result *result, const struct movement *movement);

/* point_label() of a point of the group. */
static inline const char *result_label(const struct group_result *result, size_t place)
{
	return point_label(group_point(result->history, result->group, place));
}

static inline const struct track *finding_track(const struct group_result *result,
						const struct history_finding *finding)
{
	return &result->detection.tracks[finding->track];
}

static inline const struct history_row *finding_row(const struct group_result *result,
						    const struct history_finding *finding)
{
	return &result->history->rows.list[finding_track(result, finding)->row];
}

/* The unit of the values of a finding. */
enum unit finding_unit(const struct group_result *result, const struct history_finding *finding);

/* The findings of a movement, the most important first. The caller frees the list. */
const struct history_finding **movement_findings(const struct group_result *result, size_t movement,
						 size_t *count_out);

#endif
