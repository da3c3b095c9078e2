/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace history: reads runs over time, finds movements, and writes the outputs.
 */
#include "diff/commands.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "diff/history/history.h"
#include "diff/history/report.h"
#include "diff/history/sources.h"
#include "log/base/new_file.h"

#define JOBS_MAX       1024
#define TOP_DEFAULT    5
#define TOP_MAX	       1000000
#define NEWEST_DEFAULT 20

struct request {
	struct source_options source;
	const char *index; /* NULL: beside the first source; "none": none */
	bool has_gate, skips_damaged;
	unsigned newest, top_count;
	struct outputs outputs; /* their writers are struct output_writer */
};

static const struct output_ending endings[] = {
	{"txt", "text"}, {"json", "json"}, {"csv", "csv"}, {"html", "html"}, {0}};

#define TARGET(member) .offset = offsetof(struct request, member)

_Static_assert(NEWEST_DEFAULT == 20 && TOP_DEFAULT == 5, "the help names the defaults");

static const struct option_row option_rows[] = {
	{"fail", .apply = option_flag, TARGET(has_gate),
	 .help = "Exit with 1 if the newest runs became worse and the change is not accepted"},
	{"newest", .value = "N", .apply = option_number, TARGET(newest), .min = 1, .max = 1000000,
	 .help = "Let --fail look at movements in the newest N sets of runs (default: 20)"},
	{"each-run", .apply = option_flag, TARGET(source.each_run),
	 .help = "Show each run, not the mean of each set of runs"},
	{"skip-damaged", .apply = option_flag, TARGET(skips_damaged),
	 .help = "Exit as usual even if some input cannot be read"},
	{"index", .value = "FILE", .apply = option_text, TARGET(index),
	 .help = "Keep values of known runs in FILE, or nowhere if it is 'none' "
		 "(default: " HISTORY_INDEX " beside the first source)"},
	{"top", .value = "N", .apply = option_number, TARGET(top_count), .min = 1, .max = TOP_MAX,
	 .help = "Limit the text to N rows for each movement (default: 5)"},
	{"iteration", .value = "NAME", .apply = load_apply_iteration, TARGET(source.load),
	 .help = "Show the mean of one iteration instead of the whole run, as in xtrace diff: an "
		 "instance of this NVTX range, or 'detected'"},
	{"warmup", .value = "COUNT", .apply = load_apply_warmup, TARGET(source.load),
	 .max = UINT32_MAX, .expected = "a number of iterations",
	 .help = "Show iterations, but ignore the first COUNT of each run (default: detected)"},
	{"jobs", 'j', .value = "N", .apply = option_number, TARGET(source.load.workers_count),
	 .min = 1, .max = JOBS_MAX, .help = "Read up to N logs in parallel (default: 2)"},
	{0},
};

static const struct output_writer writers[] = {
	{"text", "Write movements and notes for people", .write = report_text},
	{"json", "Write movements, noise and runs as one JSON document", .write = report_json},
	{"csv", "Write the values of all rows and runs", .write = report_csv},
	{"html", "Write a page with trend lines", .write = report_html},
	{0},
};

static bool format_at(size_t i, struct output_format *out)
{
	return outputs_format(&writers[i], out);
}

static const struct output_choice choice = {
	.format = format_at,
	.endings = endings,
	.help = "Write the format that the ending of FILE names: .txt, .json, .csv or .html",
	.offset = offsetof(struct request, outputs),
	.checks_folder = true,
};

static void list_options(struct option_list *list)
{
	output_options_list(list, &choice, option_rows);
}

/* A directory that xtrace bench or xtrace record made gets no other files. */
static bool is_recorded(const char *directory)
{
	static const char *const names[] = {"bench.json", "info.json"};
	bool is_found = false;
	char *path;

	for (size_t n = 0; n < 2 && !is_found; n++) {
		path = xt_asprintf("%s/%s", directory, names[n]);
		is_found = !access(path, F_OK);
		free(path);
	}
	return is_found;
}

/* The index is in a directory that is searched, and beside other sources. NULL: there is none. */
static char *index_path(const struct request *request, const char *source)
{
	struct stat about;
	char *copy, *path = NULL;
	bool is_inside;

	if (request->index)
		return strcmp(request->index, "none") ? xt_strdup(request->index) : NULL;
	if (stat(source, &about))
		return xt_strdup(HISTORY_INDEX);
	is_inside = S_ISDIR(about.st_mode) && !is_recorded(source);
	copy = xt_strdup(source);
	path = xt_asprintf("%s/" HISTORY_INDEX, is_inside ? copy : dirname(copy));
	free(copy);
	return path;
}

static void write_index(const struct history *h, const char *path)
{
	int error = path ? index_write(h, path) : 0;

	if (error == -EEXIST)
		print_note("'%s' is no index, so it was not replaced; see --index", path);
	else if (error)
		print_note("cannot write the index '%s': %s; the next call reads all runs again",
			   path, xt_new_file_error(error));
}

/* Names movements that do not fail because the program may not be their cause. */
static void print_ignored(const struct history_report *report, const struct request *request)
{
	struct problems causes = {0};
	const char *list = "";
	size_t count = 0;

	for (size_t g = 0; g < report->results.count; g++)
		count += group_result_ignored(&report->results.list[g], request->newest, &causes);
	for (size_t c = 0; c < causes.count; c++)
		list = text_print("%s%s%s", list, c ? "; " : "", causes.lines[c]);
	if (count)
		print_note("--fail: %zu movement%s ignored (%s)", count, count == 1 ? "" : "s",
			   list);
	problems_free(&causes);
}

static bool is_judged(const struct history_report *report)
{
	for (size_t g = 0; g < report->results.count; g++)
		if (report->results.list[g].group->count >= 2 * SEGMENT_MIN)
			return true;
	return false;
}

/* Unreadable input never passes. */
static int exit_status(const struct history *h, const struct request *request,
		       const struct history_report *report, int status)
{
	if (status || !report->results.count)
		return STATUS_FAILED;
	if (h->problems.count && !request->skips_damaged) {
		print_error("the result lacks this input; --skip-damaged ignores it");
		return STATUS_FAILED;
	}
	if (request->has_gate && !is_judged(report)) {
		print_error("cannot judge: no program has the %d sets of runs that change points "
			    "need; of a branch, a shallow clone has only the newest",
			    2 * SEGMENT_MIN);
		return STATUS_FAILED;
	}
	if (request->has_gate)
		print_ignored(report, request);
	return request->has_gate && report->has_failed ? STATUS_INCOMPLETE : STATUS_OK;
}

static int show(const struct request *request, char *const *sources, int count)
{
	char *index = index_path(request, sources[0]);
	struct history h = {0};
	struct history_report report = {.history = &h, .top_count = request->top_count};
	int status = STATUS_FAILED;

	history_init(&h);
	if (index)
		index_read(&h, index);
	for (int s = 0; s < count; s++)
		source_read(&h, sources[s], &request->source);
	history_results_make(&report.results, &h);
	for (size_t g = 0; g < report.results.count; g++)
		report.has_failed |= group_result_fails(&report.results.list[g], request->newest);
	problems_print(&h.problems);
	if (!report.results.count && !h.problems.count)
		print_error("cannot find runs: the sources contain no baseline, profile or log");
	if (report.results.count) {
		write_index(&h, index);
		status = outputs_write(&request->outputs, &report);
	}
	status = exit_status(&h, request, &report, status);
	history_results_free(&report.results);
	history_free(&h);
	free(index);
	return status;
}

static int history_command_run(const struct command *command, int argc, char **argv)
{
	struct request request = {
		.source.load.workers_count = 2, .newest = NEWEST_DEFAULT, .top_count = TOP_DEFAULT};
	struct option_list list;
	int status, count;

	status = command_parse(command, &list, &request, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!request.outputs.count)
		outputs_add(&request.outputs, &choice, "text", "-");
	return show(&request, argv + 1, count);
}

const struct command command_history = {
	.name = "history",
	.arguments = "[OPTION]... SOURCE...",
	.summary = "Find since when a program is slower, and slow drift",
	.needed = "source",
	.details =
		"A SOURCE is a baseline, a profile, a trace or bench directory, a directory that\n"
		"contains those, or BRANCH:PATH, all versions of a baseline on a git branch.\n\n"
		"Exit status:\n"
		"  0                           The history was written\n"
		"  1                           --fail found a movement for the worse\n"
		"  2                           Wrong usage, or some input cannot be read\n",
	.list_options = list_options,
	.run = history_command_run,
};
