/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings at nearly the same point are one movement. If the command line changed there, its words
 * are compared. Quotes are unknown: the lines were joined with spaces.
 */
#include "diff/history/movements.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/rules/rule.h"
#include "diff/stats/statistics.h"
#include "log/base/compare.h"

#define WORDS_MAX	 512 /* the last word contains the rest */
#define CHANGE_BYTES_MAX 511 /* of the text */

struct words {
	struct word {
		const char *text;
		size_t bytes;
	} list[WORDS_MAX];
	size_t count;
};

static void split(struct words *words, const char *text)
{
	words->count = 0;
	while (*(text += strspn(text, " "))) {
		bool is_last = words->count + 1 == WORDS_MAX;
		size_t bytes = is_last ? strlen(text) : strcspn(text, " ");

		words->list[words->count++] = (struct word){text, bytes};
		text += bytes;
	}
}

static bool is_same(const struct word *a, const struct word *b)
{
	return a->bytes == b->bytes && !memcmp(a->text, b->text, a->bytes);
}

/* Words are separated by single spaces here. */
static void append_words(FILE *out, const struct words *words, size_t begin, size_t end)
{
	for (size_t w = begin; w < end; w++)
		fprintf(out, "%s%.*s", w > begin ? " " : "", (int)words->list[w].bytes,
			words->list[w].text);
}

/* Describes that a[begin..a_end) became b[begin..b_end). The words before are the same. */
static void append_change(FILE *out, const struct words *a, size_t a_end, const struct words *b,
			  size_t b_end, size_t begin)
{
	const struct word *option = begin ? &a->list[begin - 1] : NULL;

	if (ftell(out))
		fputs(", ", out);
	if (a_end == begin || b_end == begin) {
		append_words(out, a_end == begin ? b : a, begin, a_end == begin ? b_end : a_end);
		fputs(a_end == begin ? " added" : " removed", out);
		return;
	}
	/* A changed value follows the name of its option. */
	if (option && option->text[0] == '-' && a->list[begin].text[0] != '-' &&
	    b->list[begin].text[0] != '-')
		fprintf(out, "%.*s ", (int)option->bytes, option->text);
	append_words(out, a, begin, a_end);
	fputs(" -> ", out);
	append_words(out, b, begin, b_end);
}

/* The text of arguments_change() in full. */
static void put_arguments_change(FILE *out, const char *before, const char *after)
{
	struct words a, b;
	size_t begin = 0, a_end, b_end;

	split(&a, before);
	split(&b, after);
	if (a.count == b.count) {
		for (size_t w = 0; w < a.count; w++)
			if (!is_same(&a.list[w], &b.list[w]))
				append_change(out, &a, w + 1, &b, w + 1, w);
		return;
	}
	while (begin < a.count && begin < b.count && is_same(&a.list[begin], &b.list[begin]))
		begin++;
	for (a_end = a.count, b_end = b.count; a_end > begin && b_end > begin; a_end--, b_end--)
		if (!is_same(&a.list[a_end - 1], &b.list[b_end - 1]))
			break;
	append_change(out, &a, a_end, &b, b_end, begin);
}

const char *arguments_change(const char *before, const char *after)
{
	char *text;
	size_t bytes;
	FILE *out = xt_open_memstream(&text, &bytes);

	put_arguments_change(out, before, after);
	xt_close_memstream(out);
	if (bytes > CHANGE_BYTES_MAX)
		text[CHANGE_BYTES_MAX] = '\0';
	return text_keep(text);
}

/* Findings at most this many points apart are one movement. */
#define NEAR 2
/* A change that is reverted within so many points is noise. This part of it may remain. */
#define EXCURSION_MAX 6
#define REVERTED_REST 0.15
/* An accepted drift must be accepted again after so many points. */
#define ACCEPTED_RUNS 10
/* The p-value at which a drift fails a gate: at most one false alarm in 1,000 runs. */
#define DRIFT_GATE_ALPHA 0.003
/* All paths moved alike: HISTORY_METHOD.md has the rule and its measured error rates. */
#define TOGETHER_PATHS	10  /* paths that are needed to say that all moved */
#define TOGETHER_SHARE	0.8 /* of their cost */
#define TOGETHER_SPREAD 0.8 /* relative difference to the median change */
#define TOGETHER_EXCESS 1.0 /* the same, of a path or kernel that changed significantly */
#define TOGETHER_PART	0.7 /* of the change of the leading row, that the median must have */
#define TOGETHER_WEIGHT 0.1 /* largest weight of a path */

const struct cause_spec cause_specs[CAUSES] = {
	[CAUSE_REAL] = {"real", "real"},
	[CAUSE_METHOD] = {"method", "method changed"},
	[CAUSE_HARDWARE] = {"hardware", "hardware or driver"},
	[CAUSE_NOISE] = {"noise", "noise"},
};

enum unit finding_unit(const struct group_result *r, const struct history_finding *finding)
{
	return finding_track(r, finding)->metric == METRIC_COUNT ? UNIT_COUNT
								 : finding_row(r, finding)->unit;
}

/* Totals represent a movement better than a path does, and gpu-time better than other totals. */
static int importance(const struct group_result *r, const struct history_finding *finding)
{
	static const char *const totals[] = {"gpu-time", "wall", "gpu-busy"};
	const struct history_row *row = finding_row(r, finding);

	if (row->level != LEVEL_TOTAL)
		return finding_track(r, finding)->metric == METRIC_VALUE;
	for (int t = 0; t < 3; t++)
		if (!strcmp(row->key, totals[t]))
			return 5 - t;
	return 2;
}

static int compare_importance(const void *a, const void *b, void *result)
{
	const struct history_finding *x = *(const struct history_finding *const *)a;
	const struct history_finding *y = *(const struct history_finding *const *)b;
	int first = importance(result, x), second = importance(result, y);
	double change_x = fabs(x->after - x->before), change_y = fabs(y->after - y->before);

	return ORDER(second, first) ?: ORDER(change_y, change_x) ?: ORDER(x->track, y->track);
}

/* The next finding of a movement. after: the one before, or NULL. */
static struct history_finding *next_finding(const struct group_result *r, size_t movement,
					    const struct history_finding *after)
{
	size_t f = after ? (size_t)(after - r->detection.findings) + 1 : 0;

	while (f < r->detection.finding_count && r->detection.findings[f].movement != movement)
		f++;
	return f < r->detection.finding_count ? &r->detection.findings[f] : NULL;
}

const struct history_finding **movement_findings(const struct group_result *r, size_t movement,
						 size_t *count_out)
{
	const struct history_finding **list =
		xt_calloc(r->detection.finding_count + 1, sizeof(*list));

	*count_out = 0;
	for (const struct history_finding *f = NULL; (f = next_finding(r, movement, f));)
		list[(*count_out)++] = f;
	SORT_BY(list, *count_out, compare_importance, (void *)r);
	return list;
}

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

/* Can the change of this finding be at the place of the movement? */
static bool is_near(const struct movement *movement, const struct history_finding *finding)
{
	if (movement->is_drift || finding->is_drift)
		return movement->is_drift && finding->is_drift;
	if (finding->is_at_break)
		return movement->place == finding->place;
	return movement->place + NEAR >= finding->first && movement->place <= finding->last + NEAR;
}

/* The nearest movement that a finding can belong to, or SIZE_MAX. */
static size_t find_movement(const struct group_result *r, const struct history_finding *finding)
{
	size_t best = SIZE_MAX, best_distance = SIZE_MAX;

	for (size_t m = 0; m < r->movement_count; m++) {
		size_t apart = distance(r->movements[m].place, finding->place);

		if (!is_near(&r->movements[m], finding) || apart >= best_distance)
			continue;
		best_distance = apart;
		best = m;
	}
	return best;
}

static const struct group_break *find_break(const struct history_group *group, size_t place)
{
	for (size_t b = 0; b < group->break_count; b++)
		if (group->breaks[b].place == place)
			return &group->breaks[b];
	return NULL;
}

/* Joins the most certain findings first, so that their places count. */
COMPARE_BY(compare_certainty, struct history_finding, DOWN(is_at_break) UP(p) UP(track))

static void join_findings(struct group_result *r)
{
	struct detection *d = &r->detection;

	SORT(d->findings, d->finding_count, compare_certainty);
	for (size_t f = 0; f < d->finding_count; f++) {
		struct history_finding *finding = &d->findings[f];
		struct movement movement = {
			.is_drift = finding->is_drift,
			.place = finding->place,
			.first = finding->first,
			.last = finding->last,
			.change =
				finding->is_at_break ? find_break(r->group, finding->place) : NULL,
		};

		finding->movement = find_movement(r, finding);
		if (finding->movement != SIZE_MAX)
			continue;
		finding->movement = r->movement_count;
		xt_append(r->movements, r->movement_count, r->movement_capacity, movement);
	}
}

/* How a path changed at a point. */
struct shift {
	double change, error, weight;
};

/* Where a track changed in a movement. A comparison across its own change would find nothing. */
static size_t place_in(const struct group_result *r, const struct movement *movement, size_t track)
{
	size_t index = (size_t)(movement - r->movements);

	for (const struct history_finding *f = NULL; (f = next_finding(r, index, f));)
		if (f->track == track)
			return f->place;
	return movement->place;
}

/* The changes of all call paths. Returns their number. */
static size_t path_shifts(const struct group_result *r, const struct movement *movement,
			  struct shift *list)
{
	const struct detection *d = &r->detection;
	double sum = 0.0;
	size_t count = 0;

	for (size_t t = 0; t < d->track_count; t++) {
		const struct track *track = &d->tracks[t];
		struct step step;

		if (r->history->rows.list[track->row].level != LEVEL_PATH || !track->is_tested ||
		    !track->is_log ||
		    !track_compare(track, r->group, place_in(r, movement, t), WINDOW, &step))
			continue;
		list[count++] = (struct shift){step.after - step.before, step.error, track->cost};
		sum += track->cost;
	}
	for (size_t i = 0; i < count; i++)
		list[i].weight = fmin(list[i].weight, TOGETHER_WEIGHT * sum);
	return count;
}

/* Whether no call path or kernel of the movement changed by much more than all, or less. */
static bool explains_all(const struct group_result *r, size_t movement, double middle)
{
	double slack = TOGETHER_EXCESS * fabs(middle);

	for (const struct history_finding *f = NULL; (f = next_finding(r, movement, f));) {
		enum level level = finding_row(r, f)->level;

		if (level != LEVEL_TOTAL && level_specs[level].is_gpu_time &&
		    (!(log1p(f->low) <= middle + slack) || !(log1p(f->high) >= middle - slack)))
			return false;
	}
	return true;
}

/* A machine that became slower moves all paths alike; a change of the program does not. */
static void find_together(struct group_result *r, struct movement *movement)
{
	const struct history_finding *lead = &r->detection.findings[movement->lead];
	struct shift *shifts = xt_calloc(r->detection.track_count + 1, sizeof(*shifts));
	struct weighted_value *changes = xt_calloc(r->detection.track_count + 1, sizeof(*changes));
	double middle, all = 0.0, alike = 0.0;
	size_t count;

	count = path_shifts(r, movement, shifts);
	for (size_t i = 0; i < count; i++)
		changes[i] = (struct weighted_value){shifts[i].change, shifts[i].weight};
	middle = weighted_median(changes, count);
	for (size_t i = 0; i < count; i++) {
		double allowed = fmax(TOGETHER_SPREAD * fabs(middle), 2.0 * shifts[i].error);

		all += shifts[i].weight;
		if (fabs(shifts[i].change - middle) <= allowed)
			alike += shifts[i].weight;
	}
	movement->is_together = count >= TOGETHER_PATHS && alike >= TOGETHER_SHARE * all &&
				middle / log1p(lead->ratio) >= TOGETHER_PART &&
				explains_all(r, (size_t)(movement - r->movements), middle);
	free_all(shifts, changes);
}

static bool has_counts(const struct group_result *r, size_t movement)
{
	for (const struct history_finding *f = NULL; (f = next_finding(r, movement, f));)
		if (finding_unit(r, f) == UNIT_COUNT)
			return true;
	return false;
}

/* Represents the movement: sets lead, row_count and is_worse. */
static void summarise(struct group_result *r, size_t index)
{
	struct movement *movement = &r->movements[index];
	const struct history_finding **list = movement_findings(r, index, &movement->row_count);
	size_t worse = 0, worse_times = 0;

	movement->lead = (size_t)(list[0] - r->detection.findings);
	if (movement->is_drift) {
		movement->place = movement->first = list[0]->place;
		movement->last = list[0]->last;
	}
	for (size_t f = 0; f < movement->row_count; f++) {
		bool is_worse = list[f]->after > list[f]->before;

		worse += is_worse;
		worse_times += is_worse && importance(r, list[f]) >= 3;
	}
	/* GPU time and elapsed time decide; without them, any row that is worse. */
	movement->is_worse = importance(r, list[0]) >= 3 ? worse_times > 0 : worse > 0;
	free(list);
}

/* A change that the next movement reverts after a few points. */
static bool is_reverted(const struct group_result *r, const struct movement *movement,
			const struct movement *next)
{
	const struct history_finding *lead = &r->detection.findings[movement->lead];
	size_t index = (size_t)(next - r->movements);

	if (next->is_drift || next->place <= movement->place ||
	    next->place - movement->place > EXCURSION_MAX)
		return false;
	for (const struct history_finding *back = NULL; (back = next_finding(r, index, back));)
		if (back->track == lead->track &&
		    fabs(back->after - lead->before) <
			    REVERTED_REST * fabs(lead->after - lead->before))
			return true;
	return false;
}

static void mark_excursions(struct group_result *r)
{
	for (size_t m = 0; m < r->movement_count; m++)
		for (size_t n = 0; n < r->movement_count; n++) {
			struct movement *a = &r->movements[m], *b = &r->movements[n];

			if (a->is_drift || a->change || b->change || has_counts(r, m) ||
			    has_counts(r, n) || !is_reverted(r, a, b))
				continue;
			a->cause = b->cause = CAUSE_NOISE;
		}
}

size_t group_result_find_point(const struct group_result *r, uint64_t time_ns, const char *label)
{
	for (size_t i = 0; i < r->group->count; i++) {
		const struct history_point *point = group_point(r->history, r->group, i);

		if (point->time_ns == time_ns && (time_ns || !strcmp(point->label, label)))
			return i;
	}
	return SIZE_MAX;
}

/* The nearest movement whose range contains the point. */
size_t group_result_movement_at(const struct group_result *r, size_t place)
{
	size_t best = SIZE_MAX, best_distance = SIZE_MAX;

	for (size_t m = 0; m < r->movement_count; m++) {
		const struct movement *movement = &r->movements[m];
		size_t near = movement->is_drift ? 0 : NEAR;
		size_t apart = movement->is_drift ? SIZE_MAX - 1 : distance(movement->place, place);

		if (place + near < movement->first || place > movement->last + near ||
		    apart >= best_distance ||
		    (movement->is_drift && movement->last > place + ACCEPTED_RUNS))
			continue;
		best = m;
		best_distance = apart;
	}
	return best;
}

static void accept_rows(struct group_result *r, size_t movement,
			const struct baseline_acceptance *acceptance)
{
	for (struct history_finding *f = NULL; (f = next_finding(r, movement, f));)
		if (row_pattern_matches(acceptance->row, finding_row(r, f)->level,
					finding_row(r, f)->key))
			f->reason = acceptance->reason;
}

/* A movement is accepted if all of its rows are, or all that are worse. */
static void apply_acceptances(struct group_result *r)
{
	for (size_t a = 0; a < r->history->accepted.count; a++) {
		const struct baseline_acceptance *accepted = &r->history->accepted.list[a];
		size_t place = group_result_find_point(r, accepted->time_ns, accepted->label);
		size_t movement = place == SIZE_MAX ? SIZE_MAX : group_result_movement_at(r, place);

		if (movement != SIZE_MAX)
			accept_rows(r, movement, accepted);
	}
	for (size_t m = 0; m < r->movement_count; m++) {
		struct movement *movement = &r->movements[m];
		bool is_open = false;

		for (const struct history_finding *f = NULL; (f = next_finding(r, m, f));) {
			is_open |= !f->reason && (f->after > f->before || !movement->is_worse);
			movement->reason = f->reason ? f->reason : movement->reason;
		}
		if (is_open)
			movement->reason = NULL;
	}
}

static void classify(struct group_result *r)
{
	for (size_t m = 0; m < r->movement_count; m++) {
		struct movement *movement = &r->movements[m];

		summarise(r, m);
		if (!movement->is_drift)
			find_together(r, movement);
		if (movement->change)
			movement->cause = property_specs[movement->change->property].cause;
		else if (movement->is_together && !has_counts(r, m))
			movement->cause = CAUSE_HARDWARE;
	}
}

COMPARE_BY(compare_places, struct movement, UP(place) UP(is_drift))

/* Sorts the movements and renumbers them in the findings. */
static void sort_movements(struct group_result *r)
{
	size_t *numbers = xt_calloc(r->movement_count + 1, sizeof(*numbers));

	/* lead is not known yet: it carries the old number. */
	for (size_t m = 0; m < r->movement_count; m++)
		r->movements[m].lead = m;
	SORT(r->movements, r->movement_count, compare_places);
	for (size_t m = 0; m < r->movement_count; m++)
		numbers[r->movements[m].lead] = m;
	for (size_t f = 0; f < r->detection.finding_count; f++)
		r->detection.findings[f].movement = numbers[r->detection.findings[f].movement];
	free(numbers);
}

void group_result_make(struct group_result *r, struct history *h, struct history_group *group)
{
	*r = (struct group_result){.history = h, .group = group};
	detection_make(&r->detection, h, group);
	join_findings(r);
	sort_movements(r);
	classify(r);
	mark_excursions(r);
	apply_acceptances(r);
}

void group_result_free(struct group_result *r)
{
	detection_free(&r->detection);
	free(r->movements);
	*r = (struct group_result){0};
}

void history_results_make(struct history_results *results, struct history *h)
{
	groups_make(&results->groups, h);
	results->list = xt_calloc(results->groups.count + 1, sizeof(*results->list));
	for (; results->count < results->groups.count; results->count++)
		group_result_make(&results->list[results->count], h,
				  &results->groups.list[results->count]);
}

void history_results_free(struct history_results *results)
{
	for (size_t g = 0; g < results->count; g++)
		group_result_free(&results->list[g]);
	free(results->list);
	groups_free(&results->groups);
}

/* Whether a total drifts upwards, almost certainly. */
static bool has_sure_drift(const struct group_result *r, size_t movement)
{
	for (const struct history_finding *f = NULL; (f = next_finding(r, movement, f));)
		if (f->after > f->before && finding_row(r, f)->level == LEVEL_TOTAL &&
		    f->p <= DRIFT_GATE_ALPHA)
			return true;
	return false;
}

/* Whether a movement is new, for the worse and not accepted. */
static bool is_open(const struct group_result *r, size_t index, size_t newest)
{
	const struct movement *movement = &r->movements[index];
	size_t end = movement->is_drift ? movement->last : movement->place;

	return movement->is_worse && !movement->reason && end + newest >= r->group->count &&
	       (!movement->is_drift || has_sure_drift(r, index));
}

bool group_result_fails(const struct group_result *r, size_t newest)
{
	for (size_t m = 0; m < r->movement_count; m++)
		if (r->movements[m].cause == CAUSE_REAL && is_open(r, m, newest))
			return true;
	return false;
}

size_t group_result_ignored(const struct group_result *r, size_t newest, struct problems *causes)
{
	size_t count = 0;

	for (size_t m = 0; m < r->movement_count; m++) {
		const struct movement *movement = &r->movements[m];
		const char *detail = "all call paths moved alike";

		if ((movement->cause != CAUSE_METHOD && movement->cause != CAUSE_HARDWARE) ||
		    !is_open(r, m, newest))
			continue;
		if (movement->change && movement->change->property == PROPERTY_COMMAND)
			detail = "arguments";
		else if (movement->change)
			detail = property_specs[movement->change->property].name;
		problems_add(causes, "%s: %s", cause_specs[movement->cause].text, detail);
		count++;
	}
	return count;
}

const char *movement_why(const struct group_result *r, const struct movement *movement)
{
	const struct group_break *change = movement->change;
	const char *before, *after;

	if (!change && movement->cause == CAUSE_NOISE)
		return text_print("for at most %d runs", EXCURSION_MAX);
	if (!change)
		return movement->is_together ? "all call paths moved alike" : "";
	before = group_point(r->history, r->group, change->place - 1)->properties[change->property];
	after = group_point(r->history, r->group, change->place)->properties[change->property];
	if (change->property == PROPERTY_COMMAND)
		return arguments_change(before, after);
	return text_print("%s %s -> %s", property_specs[change->property].name, before, after);
}
