/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace baseline: creates, shows, extends and prunes baselines, and accepts changes
 * (diff/load/baseline.h).
 */
#include "diff/baseline_command.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "diff/accept.h"
#include "diff/base/json_memory.h"
#include "diff/load/baseline.h"
#include "diff/load/check_runs.h"
#include "diff/load/load_runs.h"
#include "diff/base/format.h"
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

/* Returns 0 or -errno. Adds errors to problems. */
static int read_baseline(struct baseline *baseline, const char *path, struct problems *problems)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), error = file < 0 ? -errno : 0;
	struct stat about;
	char *text = MAP_FAILED;

	if (!error && fstat(file, &about))
		error = -errno;
	if (!error && !about.st_size)
		error = -ENODATA;
	if (!error) {
		text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
		error = text == MAP_FAILED ? -errno : 0;
	}
	if (!error)
		error = baseline_read(baseline, text, (size_t)about.st_size, path, problems);
	else
		problems_add(problems, "%s: %s", path, strerror(-error));
	if (text != MAP_FAILED)
		munmap(text, (size_t)about.st_size);
	if (file >= 0)
		close(file);
	return error;
}

/* Refuses runs with missing events. */
static int check_whole(const struct run_set *runs, struct problems *problems)
{
	int error = 0;

	for (size_t r = 0; r < runs->count; r++) {
		if (runs->runs[r]->trust == TRUST_COMPLETE)
			continue;
		problems_add(problems, "cannot use %s: events are missing in it",
			     runs->runs[r]->origin);
		error = -EINVAL;
	}
	return error;
}

static int load_side(struct run_set *runs, const struct request *request, struct problems *problems)
{
	/* Iterations are detected without a name, too. */
	bool is_named = request->iteration && strcmp(request->iteration, LOAD_DETECTED) != 0;
	struct load_options options = {.iteration = is_named ? request->iteration : NULL,
				       .warmup = request->warmup,
				       .workers_count = 2};
	char *argument = (char *)request->side;
	size_t kept = 0;
	int error = load_runs(runs, &argument, 1, &options, problems);
	/* From another baseline, take only its newest set. */
	for (size_t r = 0; r < runs->count; r++)
		if (runs->runs[r]->history)
			run_profile_free(runs->runs[r]);
		else
			runs->runs[kept++] = runs->runs[r];
	runs->count = kept;
	if (!error)
		error = check_whole(runs, problems);
	if (!error && !kept) {
		problems_add(problems, "cannot use %s: it has no runs", request->side);
		error = -EINVAL;
	}
	return error;
}

static const char *device_of(const struct run_profile *run)
{
	return run->device_count ? run->devices[0].name : "";
}

/* Refuses runs of another program, GPU or driver, which say nothing about noise. */
static int check_fitting(const struct baseline *baseline, const struct run_set *runs,
			 struct problems *problems)
{
	static const struct run_set none = {0};
	static const struct check_options options = {
		.advice = "; 'xtrace baseline save --force' replaces the baseline"};
	size_t before = problems->count;

	check_alike(baseline->count ? &baseline->sets[baseline->count - 1].runs : &none, runs,
		    &options, problems);
	return problems->count > before ? -EINVAL : 0;
}

/* Refuses duplicate runs, which would look like a lack of noise. */
static int check_unknown(const struct baseline *baseline, const struct run_set *runs,
			 struct problems *problems)
{
	for (size_t r = 0; r < runs->count; r++) {
		const struct run_profile *run = runs->runs[r];

		for (size_t other = 0; other < r; other++) {
			if (!check_same_run(run, runs->runs[other]))
				continue;
			problems_add(problems, "%s and %s are the same run",
				     runs->runs[other]->origin, run->origin);
			return -EINVAL;
		}
		for (size_t s = 0; s < baseline->count; s++) {
			const struct baseline_set *set = &baseline->sets[s];

			for (size_t other = 0; other < set->runs.count; other++) {
				if (!check_same_run(run, set->runs.runs[other]))
					continue;
				problems_add(problems, "%s is already in the set '%s'", run->origin,
					     set->label);
				return -EINVAL;
			}
		}
	}
	return 0;
}

static int write_baseline(struct baseline *baseline, const struct request *request)
{
	int error = baseline_write(baseline, request->file);
	struct stat about;

	if (error) {
		print_error("cannot write '%s': %s", request->file, xt_new_file_error(error));
		return STATUS_FAILED;
	}
	if (!stat(request->file, &about))
		print_note("%s: %zu set%s, %lld KB", request->file, baseline->count,
			   baseline->count == 1 ? "" : "s",
			   (long long)(about.st_size + 999) / 1000);
	return STATUS_OK;
}

/* Returns the exit status, as run_save() and so on do. */
static int add(struct baseline *baseline, const struct request *request, struct problems *problems)
{
	struct run_set runs = {0};
	int error = load_side(&runs, request, problems), status = STATUS_FAILED;

	if (!error)
		error = check_fitting(baseline, &runs, problems);
	if (!error)
		error = check_unknown(baseline, &runs, problems);
	if (!error) {
		baseline_add(baseline, request->label ? request->label : "", &runs);
		baseline_keep(baseline, request->keep ? request->keep : BASELINE_KEEP);
		status = write_baseline(baseline, request);
	}
	run_set_free(&runs);
	return status;
}

static int run_save(const struct request *request, struct problems *problems)
{
	struct baseline baseline = {0};
	int status;

	if (!request->force && access(request->file, F_OK) == 0) {
		print_error("cannot save '%s': it exists; 'update' adds to it, 'save --force' "
			    "replaces it",
			    request->file);
		return STATUS_FAILED;
	}
	status = add(&baseline, request, problems);
	baseline_free(&baseline);
	return status;
}

static int run_update(const struct request *request, struct problems *problems)
{
	struct baseline baseline = {0};
	int status = STATUS_FAILED;

	if (!read_baseline(&baseline, request->file, problems))
		status = add(&baseline, request, problems);
	baseline_free(&baseline);
	return status;
}

static int run_prune(const struct request *request, struct problems *problems)
{
	struct baseline baseline = {0};
	char advice[ADVICE_BYTES];
	int status = STATUS_FAILED;

	if (read_baseline(&baseline, request->file, problems))
		goto out;
	if (request->label && !baseline_remove_label(&baseline, request->label)) {
		print_error("cannot prune '%s': it has no set '%s'; %s", request->file,
			    request->label,
			    baseline_advise_label(advice, &baseline, request->label));
		goto out;
	}
	if (request->keep || !request->label)
		baseline_keep(&baseline, request->keep ? request->keep : BASELINE_KEEP);
	if (!baseline.count)
		print_error("cannot prune '%s': it would be empty; delete the file instead",
			    request->file);
	else
		status = write_baseline(&baseline, request);
out:
	baseline_free(&baseline);
	return status;
}

static int run_accept(const struct request *request, struct problems *problems)
{
	const struct accept_request accept = {.file = request->file,
					      .by = request->by,
					      .row = request->row,
					      .reason = request->reason,
					      .force = request->force};
	struct baseline baseline = {0};
	struct problems lines = {0};
	int status = STATUS_FAILED;

	if (!request->reason && !request->undo) {
		print_error("cannot accept a change in '%s' without a reason: add --reason TEXT",
			    request->file);
		return STATUS_FAILED;
	}
	if (request->row && !row_pattern_is_valid(request->row)) {
		print_error("cannot use '%s' for --row: it must be LEVEL(NAME) or the name of a "
			    "total, such as path(forward) or gpu-time",
			    request->row);
		return STATUS_FAILED;
	}
	if (!read_baseline(&baseline, request->file, problems) &&
	    (request->undo ? accept_undo : accept_change)(&baseline, &accept, &lines))
		status = write_baseline(&baseline, request);
	for (size_t l = 0; status == STATUS_OK && l < lines.count; l++)
		print_note("%s", lines.lines[l]);
	problems_free(&lines);
	baseline_free(&baseline);
	return status;
}

/* Prints the median GPU time of a set, and the spread of its runs. */
static void show_set(const struct baseline_set *set)
{
	time_t seconds = (time_t)(set->time_ns / 1000000000);
	double *times = xt_calloc(set->runs.count, sizeof(*times)), middle = NAN, spread = NAN;
	char day[32], time_text[AMOUNT_BYTES], spread_text[AMOUNT_BYTES];
	struct tm parts;
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
	gmtime_r(&seconds, &parts);
	strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &parts);
	printf("%-16s  %4zu %11s %9s  %s\n", set->time_ns ? day : "-", set->runs.count,
	       format_amount(time_text, UNIT_NS, middle), format_percent(spread_text, spread),
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

static int run_show(const struct request *request, struct problems *problems)
{
	struct baseline baseline = {0};
	const struct run_profile *run;
	struct stat about;

	if (read_baseline(&baseline, request->file, problems) || stat(request->file, &about)) {
		baseline_free(&baseline);
		return STATUS_FAILED;
	}
	run = baseline.sets[baseline.count - 1].runs.runs[0];
	printf("%s: %s on %s%s, %lld KB\n", request->file, *run->title ? run->title : "?",
	       *device_of(run) ? device_of(run) : "an unknown GPU",
	       run->is_simulated ? " (simulated)" : "", (long long)(about.st_size + 999) / 1000);
	printf("GPU time of a whole run; the newest set is the reference, the others provide the "
	       "noise\n\n");
	printf("%-16s  %4s %11s %9s  %s\n", "first run (UTC)", "runs", "GPU time", "spread",
	       "label");
	for (size_t s = baseline.count; s-- > 0;)
		show_set(&baseline.sets[s]);
	show_accepted(&baseline);
	baseline_free(&baseline);
	return STATUS_OK;
}

static const struct verb {
	const char *name;
	const char *arguments;
	const char *help;
	bool has_side;
	int (*run)(const struct request *request, struct problems *problems);
} verbs[] = {
	{"save", "[--label LABEL] [--force] FILE RUNS", "Create a baseline from runs", true,
	 run_save},
	{"update", "[--label LABEL] [--keep N] FILE RUNS",
	 "Add runs, and compare with them from now on", true, run_update},
	{"show", "FILE", "List the sets of runs", false, run_show},
	{"prune", "[--label LABEL] [--keep N] FILE",
	 "Remove the sets of a label, or all but the newest N", false, run_prune},
	{"accept", "--reason TEXT|--undo [--row ROW] [--by LABEL] FILE",
	 "Record that a change is intended, or take that back", false, run_accept},
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
			    "(see %s "
			    "--help)",
			    name, message_name());
	return NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct request request = {0};
	struct problems problems = {0};
	const struct verb *verb;
	int status, count;

	json_use_memory();
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
	status = verb->run(&request, &problems);
	problems_print(&problems);
	problems_free(&problems);
	return status;
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
	.run = run,
};
