/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace baseline: creates, shows, extends and prunes baselines, and accepts changes
 * (diff/load/baseline.h). It detects the changes of the baseline as xtrace history does, so that
 * an acceptance matches one.
 */
#include "diff/commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/message.h"
#include "diff/base/level.h"
#include "diff/base/text.h"
#include "diff/history/groups.h"
#include "diff/history/report.h"
#include "diff/history/sources.h"
#include "diff/load/baseline.h"
#include "diff/load/load_runs.h"
#include "diff/rules/rule.h"
#include "log/base/compare.h"
#include "log/base/new_file.h"
#include "log/base/spellcheck.h"

struct request {
	const char *label;     /* NULL: none was given */
	const char *iteration; /* for the merge, as in xtrace diff */
	const char *warmup;
	unsigned keep; /* 0: not given */
	bool force, undo;
	const char *reason; /* of accept */
	const char *row;    /* of accept; NULL: all rows */
	const char *by;	    /* of accept: label of a set; NULL: the set of the only change */
	const char *file;
	const char *side; /* NULL: none was given */
};

#define LISTED_MAX 5

/* What a verb says: errors, and notes to print when the file is written. */
struct said {
	struct problems problems, notes;
};

struct changes {
	struct history history;
	struct history_results results;
};

/* The point at which a movement is accepted. */
static size_t baseline_command_place_of(const struct movement *movement)
{
	return movement->is_drift ? movement->last : movement->place;
}

/* "gpu-time +10.0 %", or "slow drift of gpu-time +0.10 % per run". */
static const char *lead_text(const struct group_result *r, const struct history_finding *lead)
{
	return text_print("%s%s %s%s", lead->is_drift ? "slow drift of " : "",
			  row_title(finding_row(r, lead), finding_track(r, lead)->metric),
			  format_ratio(lead->is_drift ? lead->per_run : lead->ratio),
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

	for (size_t g = 0; g < changes->results.count; g++)
		for (size_t m = 0; m < changes->results.list[g].movement_count; m++) {
			if (!is_acceptable(&changes->results.list[g].movements[m]))
				continue;
			*result_out = &changes->results.list[g];
			*movement_out = &changes->results.list[g].movements[m];
			count++;
		}
	return count;
}

/* "changes begin at v5 (gpu-time +10.0 %): use --by v5". See text_print(). */
static const char *list_changes(const struct changes *changes)
{
	const char *text = "changes begin at", *label = "";
	size_t count = 0;

	for (size_t g = 0; g < changes->results.count; g++) {
		const struct group_result *r = &changes->results.list[g];

		for (size_t m = 0; m < r->movement_count; m++) {
			const struct movement *movement = &r->movements[m];

			if (++count > LISTED_MAX)
				continue;
			label = result_label(r, baseline_command_place_of(movement));
			text = text_print("%s%s %s (%s)%s", text, count > 1 ? "," : "", label,
					  lead_text(r, &r->detection.findings[movement->lead]),
					  movement->reason ? ", accepted" : "");
		}
	}
	if (!count)
		return "xtrace history finds no change";
	if (count == 1)
		return text_print("%s: use --by %s", text, label);
	if (count > LISTED_MAX)
		text = text_print("%s and %zu more", text, count - LISTED_MAX);
	return text_print("%s: choose one with --by", text);
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
					   const struct request *request)
{
	const struct baseline_set *set = &baseline->sets[baseline->count - 1];
	const struct group_result *r = NULL;
	const struct movement *movement = NULL;
	size_t count;

	if (request->by) {
		set = baseline_find_label(baseline, request->by);
		if (!set)
			print_error("cannot accept a change in '%s': it has no set '%s'; %s "
				    "('xtrace baseline update --keep N' keeps more than 5 sets)",
				    request->file, request->by,
				    baseline_advise_label(baseline, request->by));
		return set;
	}
	count = find_open(changes, &r, &movement);
	if (count > 1) {
		print_error("cannot accept a change in '%s' without --by: %s", request->file,
			    list_changes(changes));
		return NULL;
	}
	if (count)
		set = set_of(baseline, group_point(r->history, r->group,
						   baseline_command_place_of(movement)));
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
	for (size_t g = 0; g < changes->results.count; g++) {
		const struct group_result *r = &changes->results.list[g];

		*place_out = group_result_find_point(r, set->time_ns, set->label);
		if (*place_out != SIZE_MAX)
			return r;
	}
	return NULL;
}

static bool has_row(const struct group_result *r, size_t place, const char *pattern)
{
	const struct history_point *point = group_point(r->history, r->group, place);

	for (size_t row = 0; row < point->value_count; row++)
		if (!isnan(point->values[row].value) &&
		    row_pattern_matches(pattern, r->history->rows.list[row].level,
					r->history->rows.list[row].key))
			return true;
	return false;
}

/*
 * Describes what is accepted: "gpu-time +10.0 %, 12 call paths". The text is empty if the pattern
 * matches no row of the movement. See text_print().
 */
static const char *describe(const struct group_result *r, size_t movement, const char *pattern)
{
	size_t count, matches = 0, paths = 0;
	const struct history_finding **list = movement_findings(r, movement, &count);
	const char *text = "";
	bool is_path = false;

	for (size_t f = 0; f < count; f++) {
		const struct history_row *row = finding_row(r, list[f]);

		if (!row_pattern_matches(pattern, row->level, row->key))
			continue;
		if (!matches++) {
			text = lead_text(r, list[f]);
			is_path = row->level == LEVEL_PATH;
		} else {
			paths += row->level == LEVEL_PATH &&
				 finding_track(r, list[f])->metric == METRIC_VALUE;
		}
	}
	if (paths)
		text = text_print("%s, %zu%s call path%s", text, paths, is_path ? " more" : "",
				  paths == 1 ? "" : "s");
	if (matches > paths + 1)
		text = text_print("%s, %zu other row%s", text, matches - paths - 1,
				  matches - paths == 2 ? "" : "s");
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
			 const struct request *request, struct problems *lines)
{
	const struct group_result *open_result;
	const struct movement *open;
	const char *list = list_changes(changes), *label = result_label(r, place);
	size_t count =
		r->group->count < 2 * SEGMENT_MIN ? r->group->count : r->group->count - place;

	if (is_early(r, place)) {
		problems_add(lines,
			     "no change is detectable yet with %zu set%s%s%s; accepted at %s in "
			     "advance: %s",
			     count, count == 1 ? "" : "s", count < r->group->count ? " from " : "",
			     count < r->group->count ? label : "", label, request->reason);
		if (find_open(changes, &open_result, &open))
			problems_add(lines, "note: %s", list);
	} else if (request->force) {
		problems_add(lines, "no change begins at %s; accepted nevertheless: %s", label,
			     request->reason);
	} else {
		print_error("cannot accept a change in '%s': no change begins at %s; %s (--force "
			    "accepts it nevertheless)",
			    request->file, label, list);
	}
	return is_early(r, place) || request->force;
}

static bool accept_movement(const struct group_result *r, size_t place, size_t movement,
			    const struct request *request, struct problems *lines)
{
	const char *label = result_label(r, place);
	const char *begin = result_label(r, baseline_command_place_of(&r->movements[movement]));
	const char *some = describe(r, movement, request->row ? request->row : "");
	bool is_apart = baseline_command_place_of(&r->movements[movement]) != place;

	if (*some)
		problems_add(lines, "accepted at %s: %s%s%s%s: %s", label, some,
			     is_apart ? " (most likely at " : "", is_apart ? begin : "",
			     is_apart ? ")" : "", request->reason);
	else
		print_error(
			"cannot accept a change in '%s': %s does not change at %s; this does: %s",
			request->file, request->row ? request->row : "it", label,
			describe(r, movement, ""));
	return *some;
}

/* Checks that history finds this change, or cannot find it yet. */
static bool check_change(const struct changes *changes, const struct baseline_set *set,
			 const struct request *request, struct problems *lines)
{
	const struct group_result *r;
	size_t place = 0, movement;

	r = find_point(changes, set, &place);
	if (!r) {
		print_error(
			"cannot accept a change in '%s': xtrace history cannot use the set '%s'",
			request->file, set->label);
		return false;
	}
	if (request->row && !has_row(r, place, request->row)) {
		print_error("cannot accept a change in '%s': the set '%s' has no row %s; 'xtrace "
			    "history --csv -' lists all rows",
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

/*
 * Changes the baseline in memory and adds a line for each change that is accepted, or no longer
 * accepted. Returns false after an error message.
 */
static bool accept_change(struct baseline *baseline, const struct request *request,
			  struct problems *lines)
{
	static const struct source_options options = {.load.workers_count = 2};
	struct changes changes = {0};
	const struct baseline_set *set;

	history_init(&changes.history);
	source_read(&changes.history, request->file, &options);
	history_results_make(&changes.results, &changes.history);
	set = find_set(baseline, &changes, request);
	if (set && !check_change(&changes, set, request, lines))
		set = NULL;
	if (set)
		baseline_accept(&baseline->accepted, set->label, set->time_ns,
				request->row ? request->row : "", request->reason);
	history_results_free(&changes.results);
	history_free(&changes.history);
	return set;
}

static bool accept_undo(struct baseline *baseline, const struct request *request,
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

/* Adds errors to problems. */
static bool read_baseline(struct baseline *baseline, const char *path, struct problems *problems)
{
	struct stat about;
	size_t bytes = 0;
	/* A device may have no end. */
	int error = stat(path, &about) ? -errno : about.st_size ? 0 : -ENODATA;
	char *text = error ? NULL : file_read_path(path, &bytes);

	if (!error && !text)
		error = -errno;
	if (error)
		problems_add(problems, "%s: %s", path, strerror(-error));
	else
		error = baseline_read(baseline, text, bytes, path, problems);
	free(text);
	return !error;
}

static bool write_baseline(struct baseline *baseline, const char *path)
{
	int error = baseline_write(baseline, path);
	struct stat about;

	if (error)
		print_error("cannot write '%s': %s", path, xt_new_file_error(error));
	else if (!stat(path, &about))
		print_note("%s: %zu set%s, %lld KB", path, baseline->count,
			   baseline->count == 1 ? "" : "s",
			   (long long)(about.st_size + 999) / 1000);
	return !error;
}

/* Refuses no runs, and runs with missing events. */
static bool load_side(struct run_set *runs, const struct request *request,
		      struct problems *problems)
{
	/* Iterations are detected without a name, too. */
	bool is_named = request->iteration && strcmp(request->iteration, LOAD_DETECTED) != 0;
	struct load_options options = {.iteration = is_named ? request->iteration : NULL,
				       .warmup = request->warmup,
				       .workers_count = 2};
	char *argument = (char *)request->side;
	bool is_good;
	size_t kept = 0;

	load_runs(runs, &argument, 1, &options, problems);
	is_good = !problems->count;
	/* From another baseline, take only its newest set. */
	for (size_t r = 0; r < runs->count; r++)
		if (runs->runs[r]->history)
			run_profile_free(runs->runs[r]);
		else
			runs->runs[kept++] = runs->runs[r];
	runs->count = kept;
	for (size_t r = 0; is_good && r < kept; r++)
		if (runs->runs[r]->trust.word != TRUST_COMPLETE)
			problems_add(problems, "cannot use %s: events are missing in it",
				     runs->runs[r]->origin);
	if (is_good && !kept)
		problems_add(problems, "cannot use %s: it has no runs", request->side);
	return is_good && !problems->count;
}

/* Refuses runs of another program, GPU or driver, which say nothing about noise. */
static bool check_fitting(const struct baseline *baseline, const struct run_set *runs,
			  struct problems *problems)
{
	static const struct run_set none = {0};
	static const struct check_options options = {
		.advice = "; 'xtrace baseline save --force' replaces the baseline"};

	check_alike(baseline->count ? &baseline->sets[baseline->count - 1].runs : &none, runs,
		    &options, problems);
	return !problems->count;
}

/* Is a run the same as one of the first runs of a set? Returns that one, or NULL. */
static const struct run_profile *find_same(const struct run_profile *run, const struct run_set *set,
					   size_t count)
{
	for (size_t other = 0; other < count; other++)
		if (check_same_run(run, set->runs[other]))
			return set->runs[other];
	return NULL;
}

/* Refuses duplicate runs, which would look like a lack of noise. */
static bool check_unknown(const struct baseline *baseline, const struct run_set *runs,
			  struct problems *problems)
{
	for (size_t r = 0; r < runs->count && !problems->count; r++) {
		const struct run_profile *run = runs->runs[r], *same = find_same(run, runs, r);

		if (same)
			problems_add(problems, "%s and %s are the same run", same->origin,
				     run->origin);
		for (size_t s = 0; s < baseline->count && !problems->count; s++)
			if (find_same(run, &baseline->sets[s].runs, baseline->sets[s].runs.count))
				problems_add(problems, "%s is already in the set '%s'", run->origin,
					     baseline->sets[s].label);
	}
	return !problems->count;
}

static bool check_new(const struct request *request)
{
	if (request->force || access(request->file, F_OK))
		return true;
	print_error("cannot save '%s': it exists; 'update' adds to it, 'save --force' replaces it",
		    request->file);
	return false;
}

static bool baseline_command_add(struct baseline *baseline, const struct request *request,
				 struct said *said)
{
	struct run_set runs = {0};
	bool is_good = load_side(&runs, request, &said->problems) &&
		       check_fitting(baseline, &runs, &said->problems) &&
		       check_unknown(baseline, &runs, &said->problems);

	if (is_good) {
		baseline_add(baseline, request->label ? request->label : "", &runs);
		baseline_keep(baseline, request->keep ? request->keep : BASELINE_KEEP);
	}
	run_set_free(&runs);
	return is_good;
}

static bool prune(struct baseline *baseline, const struct request *request, struct said *said)
{
	(void)said;
	if (request->label && !baseline_remove_label(baseline, request->label)) {
		print_error("cannot prune '%s': it has no set '%s'; %s", request->file,
			    request->label, baseline_advise_label(baseline, request->label));
		return false;
	}
	if (request->keep || !request->label)
		baseline_keep(baseline, request->keep ? request->keep : BASELINE_KEEP);
	if (!baseline->count)
		print_error("cannot prune '%s': it would be empty; delete the file instead",
			    request->file);
	return baseline->count;
}

static bool check_reason(const struct request *request)
{
	if (!request->reason && !request->undo)
		print_error("cannot accept a change in '%s' without a reason: add --reason TEXT",
			    request->file);
	else if (request->row && !row_pattern_is_valid(request->row))
		print_error("cannot use '%s' for --row: it must be LEVEL(NAME) or the name of a "
			    "total, such as path(forward) or gpu-time",
			    request->row);
	else
		return true;
	return false;
}

static bool accept_or_undo(struct baseline *baseline, const struct request *request,
			   struct said *said)
{
	return (request->undo ? accept_undo : accept_change)(baseline, request, &said->notes);
}

/* Prints the median GPU time of a set, and the spread of its runs. */
static void show_set(const struct baseline_set *set)
{
	double *times = xt_calloc(set->runs.count, sizeof(*times)), middle = NAN, spread = NAN;
	size_t known = 0;

	for (size_t r = 0; r < set->runs.count; r++) {
		const struct profile_entry *entry =
			run_profile_find(set->runs.runs[r], LEVEL_TOTAL, "gpu-time");

		if (entry)
			times[known++] = entry->whole_value;
	}
	if (known) {
		qsort(times, known, sizeof(*times), compare_doubles);
		middle = (times[(known - 1) / 2] + times[known / 2]) / 2;
		spread = middle > 0 ? (times[known - 1] - times[0]) / middle : NAN;
	}
	printf("%-16s  %4zu %11s %9s  %s\n",
	       set->time_ns ? text_time(set->time_ns, "%Y-%m-%d %H:%M") : "-", set->runs.count,
	       format_amount(UNIT_NS, middle), format_percent(spread),
	       *set->label ? set->label : "-");
	free(times);
}

static void show_accepted(const struct baseline *baseline)
{
	for (size_t a = 0; a < baseline->accepted.count; a++) {
		const struct baseline_acceptance *entry = &baseline->accepted.list[a];

		printf("%saccepted at %s%s%s: %s\n", a ? "" : "\n",
		       *entry->label ? entry->label : "a set without label",
		       *entry->row ? ", " : "", entry->row, entry->reason);
	}
}

static bool show(struct baseline *baseline, const struct request *request, struct said *said)
{
	const struct run_profile *run = baseline->sets[baseline->count - 1].runs.runs[0];
	struct stat about;

	(void)said;
	if (stat(request->file, &about))
		return false;
	printf("%s: %s on %s%s, %lld KB\n", request->file, *run->title ? run->title : "?",
	       *run->machine.device ? run->machine.device : "an unknown GPU",
	       run->machine.is_simulated ? " (simulated)" : "",
	       (long long)(about.st_size + 999) / 1000);
	printf("GPU time of a whole run; the newest set is the reference, the others provide the "
	       "noise\n\n");
	printf("%-16s  %4s %11s %9s  %s\n", "first run (UTC)", "runs", "GPU time", "spread",
	       "label");
	for (size_t s = baseline->count; s-- > 0;)
		show_set(&baseline->sets[s]);
	show_accepted(baseline);
	return true;
}

static const struct verb {
	const char *name;
	const char *arguments;
	const char *help;
	bool has_side, makes_file, only_reads;
	/* Before the file is read; NULL: nothing to check. Returns false after an error message. */
	bool (*check)(const struct request *request);
	/* Returns false after an error. */
	bool (*run)(struct baseline *baseline, const struct request *request, struct said *said);
} verbs[] = {
	{"save", "[--label LABEL] [--force] FILE RUNS", "Create a baseline from runs",
	 .has_side = true, .makes_file = true, .check = check_new, .run = baseline_command_add},
	{"update", "[--label LABEL] [--keep N] FILE RUNS",
	 "Add runs, and compare with them from now on", .has_side = true,
	 .run = baseline_command_add},
	{"show", "FILE", "List the sets of runs", .only_reads = true, .run = show},
	{"prune", "[--label LABEL] [--keep N] FILE",
	 "Remove the sets of a label, or all but the newest N", .run = prune},
	{"accept", "--reason TEXT|--undo [--row ROW] [--by LABEL] FILE",
	 "Record that a change is intended, or take that back", .check = check_reason,
	 .run = accept_or_undo},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

#define TARGET(member) .offset = offsetof(struct request, member)

_Static_assert(BASELINE_KEEP == 5, "the help of --keep names the default");

static const struct option_row option_rows[] = {
	{"label", 'l', .value = "LABEL", .apply = option_text, TARGET(label),
	 .help = "Name the set of runs, for example after a commit"},
	{"keep", 'k', .value = "N", .apply = option_number, TARGET(keep), .min = 1, .max = 1000000,
	 .help = "Keep the newest N sets (default: 5)"},
	{"force", 'f', .apply = option_flag, TARGET(force),
	 .help = "Let save replace an existing baseline, or accept a change that is not found"},
	{"reason", .value = "TEXT", .apply = option_text, TARGET(reason),
	 .help = "Let accept record why the change is intended"},
	{"row", .value = "LEVEL(NAME)", .apply = option_text, TARGET(row),
	 .help = "Let accept record only these rows, as in 'path(forward)' (default: all)"},
	{"by", .value = "LABEL", .apply = option_text, TARGET(by),
	 .help = "Let accept record the change at this set (default: the set of the only change)"},
	{"undo", .apply = option_flag, TARGET(undo),
	 .help = "Let accept remove what was accepted, all of it or that of --by and --row"},
	{"iteration", .value = "NAME", .apply = option_text, TARGET(iteration),
	 .help = "Treat each instance of this NVTX range as one iteration, as in xtrace diff"},
	{"warmup", .value = "COUNT", .apply = option_text, TARGET(warmup),
	 .help = "Ignore the first COUNT iterations of each run, as in xtrace diff"},
	{0},
};

static const struct verb *find_verb(const char *name)
{
	struct suggestion near = {.name = name, .length = strlen(name)};

	for (size_t v = 0; v < VERB_COUNT; v++) {
		if (!strcmp(verbs[v].name, name))
			return &verbs[v];
		suggest_consider(&near, verbs[v].name);
	}
	if (near.best)
		print_error("unknown verb '%s': did you mean '%s'? (see %s --help)", name,
			    near.best, message_name());
	else
		print_error("unknown verb '%s': the verbs are save, update, show, prune and accept "
			    "(see %s --help)",
			    name, message_name());
	return NULL;
}

/* Returns false after an error, with the file unchanged. */
static bool run_verb(const struct verb *verb, const struct request *request)
{
	struct baseline baseline = {0};
	struct said said = {0};
	bool is_good =
		(!verb->check || verb->check(request)) &&
		(verb->makes_file || read_baseline(&baseline, request->file, &said.problems)) &&
		verb->run(&baseline, request, &said) &&
		(verb->only_reads || write_baseline(&baseline, request->file));

	for (size_t n = 0; is_good && n < said.notes.count; n++)
		print_note("%s", said.notes.lines[n]);
	problems_print(&said.problems);
	problems_free(&said.problems);
	problems_free(&said.notes);
	baseline_free(&baseline);
	return is_good;
}

static int baseline_command_run(const struct command *command, int argc, char **argv)
{
	struct request request = {0};
	const struct verb *verb;
	int status, count;

	status = command_parse(command, NULL, &request, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!count) {
		print_error("no verb given: save, update, show, prune or accept (see %s --help)",
			    message_name());
		return STATUS_FAILED;
	}
	verb = find_verb(argv[1]);
	if (!verb)
		return STATUS_FAILED;
	if (count != 2 + verb->has_side) {
		print_error("wrong number of arguments: usage: %s %s %s", message_name(),
			    verb->name, verb->arguments);
		return STATUS_FAILED;
	}
	request.file = argv[2];
	request.side = verb->has_side ? argv[3] : NULL;
	return run_verb(verb, &request) ? STATUS_OK : STATUS_FAILED;
}

static void print_verbs(void)
{
	printf("\nVerbs:\n");
	for (size_t v = 0; v < VERB_COUNT; v++)
		printf("  %-7s %-51s %s\n", verbs[v].name, verbs[v].arguments, verbs[v].help);
}

const struct command command_baseline = {
	.name = "baseline",
	.arguments = "VERB [OPTION]... FILE [RUNS]",
	.summary = "Manage files of reference runs for xtrace diff",
	.details =
		"FILE is small enough to be committed. RUNS are as BASE and NEW of xtrace diff.\n"
		"Exit status: 0, or 2 after an error, with FILE unchanged.\n",
	.print_details = print_verbs,
	.operand = "save|update|show|prune|accept",
	.options = option_rows,
	.run = baseline_command_run,
};
