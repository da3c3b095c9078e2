/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace report: shows a recording. This file chooses where the page goes and opens a browser.
 * xtrace merge writes the page in a process of its own, and its exit status is the status.
 */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data_dir.h"
#include "diff/pair/pair.h"
#include "http_server.h"
#include "log/base/compare.h"
#include "merge/options.h"
#include "merge/read/inputs.h"
#include "page/page.h"
#include "rotation.h"

#define PAIR_TOP 5 /* rows of a table of a comparison */

struct request {
	const char *output; /* NULL: beside the input */
	bool is_text;
	bool is_brief;
	bool no_open;
	bool is_served;
	bool is_compared, is_together, has_all;
	unsigned port;	     /* 0: none was given */
	const char **passed; /* options for xtrace merge; owned, one word each */
	int passed_count;
	char **inputs;
	int input_count;
};

static bool is_directory(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

static int set_served(void *context, const struct option_row *row, const char *value)
{
	struct request *request = context;

	request->is_served = true;
	return value ? option_number(context, row, value) : 0;
}

static const struct option_row option_rows[] = {
	{"text", 't',
	 .help = "Print the headline, what costs most and the findings on stdout, in two screens, "
		 "instead of writing a page",
	 .apply = option_flag, .offset = offsetof(struct request, is_text)},
	{"all", .help = "Print all tables of --text, with exact figures. Show all rows of two runs",
	 .apply = option_flag, .offset = offsetof(struct request, has_all)},
	{"brief",
	 .help = "Print the headline, the findings and the largest rows of tables on stdout, as "
		 "Markdown of at most 8 KB",
	 .apply = option_flag, .offset = offsetof(struct request, is_brief)},
	{"output", 'o', .value = "FILE", .expected = "a file name",
	 .help = "Write the page to FILE (default: DIR/report.html or LOG.html, of two "
		 "runs that of the second). Needed for several inputs of one job",
	 .apply = option_text, .offset = offsetof(struct request, output)},
	{"compare", .help = "Compare two inputs, even if their logs are parts of one job",
	 .apply = option_flag, .offset = offsetof(struct request, is_compared)},
	{"together", .help = "Show all inputs as one job, even if their logs are separate runs",
	 .apply = option_flag, .offset = offsetof(struct request, is_together)},
	{"no-open", 'n', .help = "Do not open a browser, only print the address of the page",
	 .apply = option_flag, .offset = offsetof(struct request, no_open)},
	{"serve", .number = "PORT",
	 .help = "Write the page, serve it on this host's loopback interface, and print the ssh "
		 "command that forwards the port",
	 .expected = "a port from 1 to 65535", .apply = set_served,
	 .offset = offsetof(struct request, port), .min = 1, .max = 65535},
	{0},
};

/* Passes any option of xtrace merge on. */
static int pass_on(void *context, const struct option_row *row, const char *value)
{
	struct request *request = context;

	request->passed[request->passed_count++] =
		xt_asprintf("--%s%s%s", row->name, value ? "=" : "", value ? value : "");
	return 0;
}

/* An output of xtrace merge. */
static int refuse_output(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	print_error("cannot use --%s: xtrace report writes a page; use 'xtrace merge --%s %s'",
		    row->name, row->name, value);
	return -ENOENT;
}

static void list_options(struct option_list *list)
{
	struct option_list merge = {0};

	option_list_add(list, option_rows);
	options_list(&merge);
	for (size_t i = 0; i < merge.count; i++) {
		struct option_row row = merge.rows[i];

		if (!row.name || !strcmp(row.name, "completion"))
			continue;
		row.apply = option_is_output(&row) ? refuse_output : pass_on;
		row.is_hidden = true;
		option_list_add_row(list, &row);
	}
}

/*
 * Beside the input, or the second of two runs. Returns 0, -ENAMETOOLONG, or -EINVAL if there are
 * several inputs of one job.
 */
static int choose_output(const struct request *request, bool is_pair, char out[PATH_MAX])
{
	int length = -1;

	if (request->output)
		length = snprintf(out, PATH_MAX, "%s", request->output);
	else if (request->input_count > 1 && !is_pair)
		return -EINVAL;
	for (int i = is_pair; i < request->input_count && length < 0; i++) {
		const char *input = request->inputs[i];

		if (is_directory(input))
			length = snprintf(out, PATH_MAX, "%s/%s", input, DATA_DIR_REPORT);
		else if (has_ending(input, DATA_DIR_LOG_SUFFIX))
			length =
				snprintf(out, PATH_MAX, "%.*s.html",
					 (int)(strlen(input) - strlen(DATA_DIR_LOG_SUFFIX)), input);
	}
	if (length < 0)
		length = snprintf(out, PATH_MAX, "%s/%s", DEFAULT_DATA_DIR, DATA_DIR_REPORT);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/*
 * Opens a file, only if the user has a screen. A browser that cannot be started is not an error.
 */
static void open_browser(const char *page)
{
	char *const arguments[] = {"xdg-open", (char *)page, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (!isatty(STDOUT_FILENO) || (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")))
		return;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
}

/*
 * An interrupted xtrace record may not have chosen which trace to keep. Choose now. On failure,
 * show DIR unchanged.
 */
static void settle_inputs(const struct request *request)
{
	if (!request->input_count)
		rotation_settle(DEFAULT_DATA_DIR, ROTATION_LATER);
	for (int i = 0; i < request->input_count; i++)
		if (!has_ending(request->inputs[i], DATA_DIR_LOG_SUFFIX))
			rotation_settle(request->inputs[i], ROTATION_LATER);
}

/* Prints an error if the only input is the directory of a recording without logs. */
static bool is_empty_recording(const struct request *request)
{
	const char *path = request->input_count ? request->inputs[0] : DEFAULT_DATA_DIR;
	char **logs;
	size_t count;

	if (request->input_count > 1 || !info_is_ours(path) ||
	    data_dir_list_logs(path, &logs, &count))
		return false;
	data_dir_free_logs(logs, count);
	if (!count)
		print_error("cannot show '%s': the recording is empty", path);
	return !count;
}

/* True if the user wants another format than HTML, by the ending of the name. */
static bool names_other_format(const char *path)
{
	const char *dot = strrchr(base_name(path), '.');

	return dot && strcmp(dot, ".html") != 0 && strcmp(dot, ".htm") != 0;
}

/* Starts xtrace merge for the inputs. Returns its exit status. */
static int merge(const struct request *request, const char *page)
{
	/* One word per option, one per input, and six more. */
	const char **arguments = xt_calloc(
		(size_t)(request->passed_count + request->input_count) + 6, sizeof(char *));
	int count = 0, status;

	arguments[count++] = "merge";
	arguments[count++] = request->is_brief ? "--brief" : request->is_text ? "--text" : "--html";
	arguments[count++] = page;
	for (int i = 0; i < request->passed_count; i++)
		arguments[count++] = request->passed[i];
	if (request->has_all)
		arguments[count++] = "--all";
	arguments[count++] = "--";
	for (int i = 0; i < request->input_count; i++)
		arguments[count++] = request->inputs[i];
	status = subprocess_run("merge", arguments, -1);
	free(arguments);
	if (status >= STATUS_SIGNAL)
		print_error(
			"cannot show the recording: the process that reads it was ended by signal "
			"%d (%s)",
			status - STATUS_SIGNAL, strsignal(status - STATUS_SIGNAL));
	return status;
}

/* Writes the comparison of two runs. --top limits what is shown, not what is compared. */
static int compare(const struct request *request, const char *page)
{
	static const char top[] = "--top=";
	const char **options = xt_calloc((size_t)request->passed_count + 1, sizeof(char *));
	struct pair_options pair = {.paths = {request->inputs[0], request->inputs[1]},
				    .format = request->is_brief ? PAIR_MARKDOWN : PAIR_TEXT,
				    .merge_options = options,
				    .top_count = request->has_all ? 0 : PAIR_TOP,
				    .all_option = "--all"};
	size_t count = 0;
	int status;

	for (int i = 0; i < request->passed_count; i++) {
		pair.is_redacted |= !strcmp(request->passed[i], "--redact");
		if (!begins_with(request->passed[i], top))
			options[count++] = request->passed[i];
		else if (!request->has_all)
			pair.top_count = strtoul(request->passed[i] + strlen(top), NULL, 10);
	}
	status = pair_report(&pair, request->is_brief || request->is_text ? NULL : page);
	free(options);
	return status;
}

static bool is_same_recording(const struct input *a, const struct input *b)
{
	bool is_same_process = a->identity[0] && !strcmp(a->identity, b->identity);

	return is_same_process || (a->recording && a->recording == b->recording &&
				   a->recording_device == b->recording_device);
}

/* Whether the ids allow that the logs are of one job, in which each has another rank. */
static bool is_other_rank(const struct input *a, const struct input *b)
{
	return a->rank != RANK_UNKNOWN && b->rank != RANK_UNKNOWN && a->rank != b->rank &&
	       a->world_size == b->world_size && !strcmp(a->run, b->run) &&
	       !strcmp(a->batch_job, b->batch_job);
}

/*
 * Whether the inputs are two runs, not parts of one job: they have no logs of one trace directory
 * or process, and some logs cannot be of different ranks.
 */
static bool are_runs(char *const *paths)
{
	struct inputs sides[2] = {0};
	struct report silent = {.quiet = true, .is_held = true};
	bool is_one_job = true, is_same = false, are_there = true;

	for (int s = 0; s < 2; s++)
		are_there &= !inputs_find(&sides[s], &paths[s], 1, &silent) && sides[s].count > 0;
	for (size_t i = 0; i < sides[0].count; i++) {
		for (size_t j = 0; j < sides[1].count; j++) {
			const struct input *x = &sides[0].logs[i], *y = &sides[1].logs[j];

			is_same |= is_same_recording(x, y);
			is_one_job &= is_other_rank(x, y);
		}
	}
	for (int s = 0; s < 2; s++)
		inputs_free(&sides[s]);
	report_free(&silent);
	return are_there && !is_same && !is_one_job;
}

static bool is_pair(const struct request *request)
{
	return request->input_count == 2 && !request->is_together &&
	       (request->is_compared || are_runs(request->inputs));
}

static int show(const struct request *request)
{
	char page[PATH_MAX] = "-", *whole;
	bool is_printed = request->is_text || request->is_brief, has_two;
	int status, error;

	for (size_t i = 0; request->input_count == 2 && i < 2; i++)
		if (access(request->inputs[i], F_OK)) {
			print_error("cannot read %s: %s", request->inputs[i], strerror(errno));
			return STATUS_FAILED;
		}
	settle_inputs(request);
	has_two = is_pair(request);
	error = is_printed ? 0 : choose_output(request, has_two, page);
	if (!is_printed && request->output && names_other_format(request->output)) {
		print_error("cannot write '%s': xtrace report writes HTML; use 'xtrace merge -o "
			    "%s'",
			    request->output, request->output);
		return STATUS_FAILED;
	}

	if (error) {
		print_error(error == -EINVAL
				    ? "cannot choose a name for the page of several inputs: "
				      "name it with --output FILE"
				    : "cannot write the page: its name is too long; name it "
				      "with --output FILE");
		return STATUS_FAILED;
	}
	if (is_empty_recording(request))
		return STATUS_FAILED;
	status = has_two ? compare(request, page) : merge(request, page);
	/* A page of a damaged log (STATUS_INCOMPLETE) says what is missing. */
	if (status > STATUS_INCOMPLETE || is_printed)
		return status;
	if (request->is_served)
		return serve_page(page, request->port) ? STATUS_FAILED : status;
	whole = realpath(page, NULL);
	printf("file://%s\n", whole ? whole : page);
	if (!request->no_open && whole)
		open_browser(whole);
	free(whole);
	return status;
}

static int report_command_run(const struct command *command, int argc, char **argv)
{
	struct request request = {.passed = xt_calloc((size_t)argc + 1, sizeof(char *)),
				  .inputs = argv + 1};
	int status = STATUS_FAILED;

	status = command_parse(command, NULL, &request, argc, argv, ANY_OPERANDS,
			       &request.input_count);
	if (status != COMMAND_GO_ON)
		goto out;
	if (!page_is_there() && !request.output && !request.is_served && !request.is_brief &&
	    !request.is_text) {
		print_note(PAGE_ABSENT "; this is the text report");
		request.is_text = true;
	}
	if (request.is_compared && request.is_together) {
		print_error("cannot use --compare with --together");
		status = STATUS_FAILED;
	} else if (request.is_compared && request.input_count != 2) {
		print_error("cannot use --compare: it needs exactly two inputs; %d %s given",
			    request.input_count, request.input_count == 1 ? "was" : "were");
		status = STATUS_FAILED;
	} else if ((request.is_text || request.is_brief) && (request.output || request.is_served)) {
		print_error(request.output ? "cannot use --output with --%s: text goes to stdout; "
					     "redirect it with >"
					   : "cannot use --serve with --%s: only the page is "
					     "served",
			    request.is_brief ? "brief" : "text");
		status = STATUS_FAILED;
	} else {
		status = show(&request);
	}
out:
	for (int i = 0; i < request.passed_count; i++)
		free((char *)request.passed[i]);
	free(request.passed);
	return status;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[OPTION]... [DIR|LOG]...",
	.summary = "Show a recording in the browser, or as text",
	.examples = "  xtrace report               Open the page of xtrace.data in the browser\n"
		    "  xtrace report --text        Print what costs most\n"
		    "  xtrace report --text A B    Compare two runs\n"
		    "  xtrace report --serve DIR   Show DIR in the browser of another computer\n",
	.details =
		"Two inputs are compared, unless they are logs of one trace directory, of one\n"
		"process, or of different ranks of a job.\n"
		"Options of 'xtrace merge' that name no output work here, too, such as --redact,\n"
		"--no-source, --from and --filter. --top N works with --text only.\n"
		"The address of the page goes to stdout.\n",
	.list_options = list_options,
	.run = report_command_run,
};
