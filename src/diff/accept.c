/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects the changes of the baseline as xtrace history does, so that an acceptance matches one.
 */
#include "diff/accept.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/message.h"
#include "diff/base/format.h"
#include "diff/history/groups.h"
#include "diff/history/report.h"
#include "diff/history/sources.h"
#include "diff/load/baseline.h"
#include "diff/rules/rule.h"

#define LIST_BYTES 1024
#define LISTED_MAX 5

struct changes {
	struct history history;
	struct groups groups;
	struct group_result *results;
	size_t count;
};

static void free_changes(struct changes *changes)
{
	for (size_t g = 0; g < changes->count; g++)
		group_result_free(&changes->results[g]);
	free(changes->results);
	groups_free(&changes->groups);
	history_free(&changes->history);
}

static int find_changes(struct changes *changes, const char *file)
{
	static const struct source_options options = {.load.workers_count = 2};
	int error;

	history_init(&changes->history);
	error = source_read(&changes->history, file, &options);
	if (error)
		return error;
	groups_make(&changes->groups, &changes->history, NULL, 0);
	changes->results = xt_calloc(changes->groups.count + 1, sizeof(*changes->results));
	for (; changes->count < changes->groups.count; changes->count++)
		group_result_make(&changes->results[changes->count], &changes->history,
				  &changes->groups.list[changes->count]);
	return 0;
}

/* The point at which a movement is accepted. */
static size_t place_of(const struct movement *movement)
{
	return movement->is_drift ? movement->last : movement->place;
}

static const char *label_at(char out[LABEL_BYTES], const struct group_result *r, size_t place)
{
	return point_label(out, group_point(r->history, r->group, place));
}

/* "gpu-time +10.0 %", or "slow drift of gpu-time +0.10 % per run". */
static void put_lead(FILE *out, const struct group_result *r, const struct finding *lead)
{
	char title[ROW_TITLE_BYTES], ratio[AMOUNT_BYTES];

	fprintf(out, "%s%s %s%s", lead->is_drift ? "slow drift of " : "",
		row_title(title, finding_row(r, lead), finding_track(r, lead)->metric),
		format_ratio(ratio, lead->is_drift ? lead->per_run : lead->ratio),
		lead->is_drift ? " per run" : "");
}

static bool is_acceptable(const struct movement *movement)
{
	return movement->is_worse && !movement->reason && movement->cause != CAUSE_NOISE;
}

/* The result and movement of the newest change that is not accepted. Returns how many there are. */
static size_t find_open(const struct changes *changes, const struct group_result **result_out,
			const struct movement **movement_out)
{
	size_t count = 0;

	for (size_t g = 0; g < changes->count; g++)
		for (size_t m = 0; m < changes->results[g].movement_count; m++) {
			if (!is_acceptable(&changes->results[g].movements[m]))
				continue;
			*result_out = &changes->results[g];
			*movement_out = &changes->results[g].movements[m];
			count++;
		}
	return count;
}

/* "changes begin at v5 (gpu-time +10.0 %): use --by v5". The caller frees the text. */
static char *list_changes(const struct changes *changes)
{
	char *text = NULL, label[LABEL_BYTES], first[LABEL_BYTES] = "";
	size_t bytes, count = 0;
	FILE *out = xt_open_memstream(&text, &bytes);

	for (size_t g = 0; g < changes->count; g++) {
		const struct group_result *r = &changes->results[g];

		for (size_t m = 0; m < r->movement_count; m++) {
			const struct movement *movement = &r->movements[m];

			if (!count++)
				label_at(first, r, place_of(movement));
			if (count > LISTED_MAX)
				continue;
			fprintf(out, "%s%s (", count > 1 ? ", " : "changes begin at ",
				label_at(label, r, place_of(movement)));
			put_lead(out, r, &r->detection.findings[movement->lead]);
			fprintf(out, "%s)", movement->reason ? ", accepted" : "");
		}
	}
	if (count > LISTED_MAX)
		fprintf(out, " and %zu more", count - LISTED_MAX);
	if (count == 1)
		fprintf(out, ": use --by %s", first);
	else
		fputs(count ? ": choose one with --by" : "xtrace history finds no change", out);
	xt_close_memstream(out);
	return text;
}

/* The set of a point, or NULL. */
static const struct baseline_set *set_of(const struct baseline *baseline,
					 const struct history_point *point)
{
	for (size_t s = baseline->count; s-- > 0;)
		if (baseline->sets[s].time_ns == point->time_ns &&
		    (point->time_ns || !strcmp(baseline->sets[s].label, point->label)))
			return &baseline->sets[s];
	return NULL;
}

/* The set that the change is at, or NULL after an error message. */
static const struct baseline_set *find_set(const struct baseline *baseline,
					   const struct changes *changes,
					   const struct accept_request *request)
{
	const struct baseline_set *set = &baseline->sets[baseline->count - 1];
	const struct group_result *r = NULL;
	const struct movement *movement = NULL;
	char advice[ADVICE_BYTES], *list;
	size_t count;

	if (request->by) {
		set = baseline_find_label(baseline, request->by);
		if (!set)
			print_error("cannot accept a change in '%s': it has no set '%s'; %s "
				    "('xtrace baseline update --keep N' keeps more than 5 sets)",
				    request->file, request->by,
				    baseline_advise_label(advice, baseline, request->by));
		return set;
	}
	count = find_open(changes, &r, &movement);
	if (count > 1) {
		list = list_changes(changes);
		print_error("cannot accept a change in '%s' without --by: %s", request->file,
			    list ? list : "it has several");
		free(list);
		return NULL;
	}
	if (count)
		set = set_of(baseline, group_point(r->history, r->group, place_of(movement)));
	if (!set || (!set->time_ns && !*set->label)) {
		print_error("cannot accept a change in '%s': its newest set has neither a start "
			    "time nor a label; add it again with --label",
			    request->file);
		return NULL;
	}
	return set;
}

/* The group that contains a set, and the place in it. NULL: none. */
static const struct group_result *find_point(const struct changes *changes,
					     const struct baseline_set *set, size_t *place_out)
{
	for (size_t g = 0; g < changes->count; g++) {
		const struct group_result *r = &changes->results[g];

		for (size_t i = 0; i < r->group->count; i++) {
			const struct history_point *point = group_point(r->history, r->group, i);

			if (point->time_ns != set->time_ns ||
			    (!set->time_ns && strcmp(point->label, set->label) != 0))
				continue;
			*place_out = i;
			return r;
		}
	}
	return NULL;
}

static bool has_row(const struct group_result *r, size_t place, const char *pattern)
{
	const struct history_point *point = group_point(r->history, r->group, place);

	for (size_t row = 0; row < point->value_count; row++)
		if (!isnan(point->values[row].value) &&
		    row_pattern_matches(pattern, r->history->rows[row].level,
					r->history->rows[row].key))
			return true;
	return false;
}

/*
 * Describes what is accepted: "gpu-time +10.0 %, 12 call paths". The caller frees the text, which
 * is empty if the pattern matches no row of the movement.
 */
static char *describe(const struct group_result *r, size_t movement, const char *pattern)
{
	const struct finding **list = xt_calloc(r->detection.finding_count + 1, sizeof(*list));
	size_t count = movement_findings(r, movement, list), matches = 0, paths = 0;
	bool is_path = false;
	char *text = NULL;
	size_t bytes;
	FILE *out = xt_open_memstream(&text, &bytes);

	for (size_t f = 0; f < count; f++) {
		const struct history_row *row = finding_row(r, list[f]);

		if (!row_pattern_matches(pattern, row->level, row->key))
			continue;
		if (!matches++) {
			put_lead(out, r, list[f]);
			is_path = row->level == LEVEL_PATH;
		} else {
			paths += row->level == LEVEL_PATH &&
				 finding_track(r, list[f])->metric == METRIC_VALUE;
		}
	}
	if (paths)
		fprintf(out, ", %zu%s call path%s", paths, is_path ? " more" : "",
			paths == 1 ? "" : "s");
	if (matches > paths + 1)
		fprintf(out, ", %zu other row%s", matches - paths - 1,
			matches - paths == 2 ? "" : "s");
	xt_close_memstream(out);
	free(list);
	return text;
}

/* Whether a change at this point cannot be found yet. */
static bool is_early(const struct group_result *r, size_t place)
{
	return r->group->count < 2 * SEGMENT_MIN || r->group->count - place < SEGMENT_MIN;
}

/* Handles a set at which no change begins. Returns false after an error message. */
static bool accept_early(const struct changes *changes, const struct group_result *r, size_t place,
			 const struct accept_request *request, struct problems *lines)
{
	const struct group_result *open_result;
	const struct movement *open;
	char label[LABEL_BYTES], *list = list_changes(changes);
	bool is_done = true;
	size_t count =
		r->group->count < 2 * SEGMENT_MIN ? r->group->count : r->group->count - place;

	label_at(label, r, place);
	if (is_early(r, place)) {
		problems_add(lines,
			     "no change is detectable yet with %zu set%s%s%s; accepted at %s in "
			     "advance: %s",
			     count, count == 1 ? "" : "s", count < r->group->count ? " from " : "",
			     count < r->group->count ? label : "", label, request->reason);
		if (list && find_open(changes, &open_result, &open))
			problems_add(lines, "note: %s", list);
	} else if (request->force) {
		problems_add(lines, "no change begins at %s; accepted nevertheless: %s", label,
			     request->reason);
	} else {
		print_error("cannot accept a change in '%s': no change begins at %s; %s (--force "
			    "accepts it nevertheless)",
			    request->file, label, list ? list : "");
		is_done = false;
	}
	free(list);
	return is_done;
}

static bool accept_movement(const struct group_result *r, size_t place, size_t movement,
			    const struct accept_request *request, struct problems *lines)
{
	char label[LABEL_BYTES], begin[LABEL_BYTES];
	char *all = describe(r, movement, ""),
	     *some = describe(r, movement, request->row ? request->row : "");
	bool is_done = all && some && *some, is_apart = place_of(&r->movements[movement]) != place;

	label_at(label, r, place);
	label_at(begin, r, place_of(&r->movements[movement]));
	if (is_done)
		problems_add(lines, "accepted at %s: %s%s%s%s: %s", label, some,
			     is_apart ? " (most likely at " : "", is_apart ? begin : "",
			     is_apart ? ")" : "", request->reason);
	else
		print_error("cannot accept a change in '%s': %s does not change at %s; this does: "
			    "%s",
			    request->file, request->row ? request->row : "it", label,
			    all ? all : "?");
	free(all);
	free(some);
	return is_done;
}

/* Checks that history finds this change, or cannot find it yet. */
static bool check_change(const struct changes *changes, const struct baseline_set *set,
			 const struct accept_request *request, struct problems *lines)
{
	const struct group_result *r;
	size_t place = 0, movement;

	r = find_point(changes, set, &place);
	if (!r) {
		print_error("cannot accept a change in '%s': xtrace history cannot use the set "
			    "'%s'",
			    request->file, set->label);
		return false;
	}
	if (request->row && !has_row(r, place, request->row)) {
		print_error("cannot accept a change in '%s': the set '%s' has no row %s; "
			    "'xtrace history --csv -' lists all rows",
			    request->file, set->label, request->row);
		return false;
	}
	movement = group_result_movement_at(r, place);
	/* Near a step is not at it, although the statistics allow for that. */
	if (movement != SIZE_MAX &&
	    (place < r->movements[movement].first || place > r->movements[movement].last))
		movement = SIZE_MAX;
	return movement == SIZE_MAX ? accept_early(changes, r, place, request, lines)
				    : accept_movement(r, place, movement, request, lines);
}

bool accept_change(struct baseline *baseline, const struct accept_request *request,
		   struct problems *lines)
{
	struct changes changes = {0};
	const struct baseline_set *set = NULL;
	int error = find_changes(&changes, request->file);

	if (!error)
		set = find_set(baseline, &changes, request);
	if (set && !check_change(&changes, set, request, lines))
		set = NULL;
	if (set)
		baseline_accept(baseline, set, request->row ? request->row : "", request->reason);
	if (error)
		print_error("cannot find the changes in '%s': %s", request->file, strerror(-error));
	free_changes(&changes);
	return set && !error;
}

bool accept_undo(struct baseline *baseline, const struct accept_request *request,
		 struct problems *lines)
{
	struct baseline_acceptances *accepted = &baseline->accepted;
	const struct baseline_set *set =
		request->by ? baseline_find_label(baseline, request->by) : NULL;
	const char *label = set ? set->label : request->by;
	size_t before = accepted->count;

	if (before > 1 && !request->by && !request->row) {
		print_error("cannot undo in '%s': it has %zu accepted changes; choose with --by or "
			    "--row ('xtrace baseline show' lists them)",
			    request->file, before);
		return false;
	}
	for (size_t a = before; a-- > 0;) {
		const struct baseline_acceptance *entry = &accepted->list[a];

		if ((label && strcmp(entry->label, label) != 0) ||
		    (request->row && strcmp(entry->row, request->row) != 0))
			continue;
		problems_add(lines, "no longer accepted at %s%s%s: %s",
			     *entry->label ? entry->label : "a set without label",
			     *entry->row ? ", " : "", entry->row, entry->reason);
		baseline_remove_acceptance(baseline, a);
	}
	if (accepted->count == before)
		print_error("cannot undo in '%s': nothing is accepted%s%s%s%s ('xtrace baseline "
			    "show' lists what is)",
			    request->file, label ? " at " : "", label ? label : "",
			    request->row ? " of " : "", request->row ? request->row : "");
	return accepted->count < before;
}
