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
#include "http_server.h"
#include "log/base/compare.h"
#include "merge/options.h"
#include "page/page.h"
#include "rotation.h"

struct request {
	const char *output; /* NULL: beside the input */
	bool is_text;
	bool is_brief;
	bool no_open;
	bool is_served;
	unsigned port; /* 0: none was given */
	char **passed; /* options for xtrace merge; owned, one word each */
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
	{"text", 't', .help = "Print tables and a call tree on stdout instead of writing a page",
	 .apply = option_flag, .offset = offsetof(struct request, is_text)},
	{"brief",
	 .help = "Print the headline, the findings and the largest sums on stdout, as Markdown of "
		 "at most 8 KB",
	 .apply = option_flag, .offset = offsetof(struct request, is_brief)},
	{"output", 'o', .value = "FILE", .expected = "a file name",
	 .help = "Write the page to FILE (default: DIR/report.html or LOG.html). Needed for "
		 "several "
		 "inputs",
	 .apply = option_text, .offset = offsetof(struct request, output)},
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

/* Beside the input. Returns 0, -ENAMETOOLONG, or -EINVAL if there are several inputs. */
static int choose_output(const struct request *request, char out[PATH_MAX])
{
	int length = -1;

	if (request->output)
		length = snprintf(out, PATH_MAX, "%s", request->output);
	else if (request->input_count > 1)
		return -EINVAL;
	for (int i = 0; i < request->input_count && length < 0; i++) {
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

static int show(const struct request *request, const char **arguments)
{
	char page[PATH_MAX], *whole;
	int count = 0, status;
	bool is_printed = request->is_text || request->is_brief;
	int error = is_printed ? 0 : choose_output(request, page);

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
	settle_inputs(request);
	if (is_empty_recording(request))
		return STATUS_FAILED;
	arguments[count++] = "merge";
	arguments[count++] = request->is_brief ? "--brief" : request->is_text ? "--text" : "--html";
	arguments[count++] = is_printed ? "-" : page;
	for (int i = 0; i < request->passed_count; i++)
		arguments[count++] = request->passed[i];
	arguments[count++] = "--";
	for (int i = 0; i < request->input_count; i++)
		arguments[count++] = request->inputs[i];
	arguments[count] = NULL;
	status = subprocess_run("merge", arguments, -1);
	if (status >= STATUS_SIGNAL)
		print_error(
			"cannot show the recording: the process that reads it was ended by signal "
			"%d (%s)",
			status - STATUS_SIGNAL, strsignal(status - STATUS_SIGNAL));
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
	/* One word per option, one per input, and five that show() adds. */
	struct request request = {.passed = xt_calloc((size_t)argc + 1, sizeof(char *)),
				  .inputs = argv + 1};
	const char **arguments = xt_calloc((size_t)argc + 5, sizeof(char *));
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
	if ((request.is_text || request.is_brief) && (request.output || request.is_served)) {
		print_error(request.output ? "cannot use --output with --%s: text goes to stdout; "
					     "redirect it with >"
					   : "cannot use --serve with --%s: only the page is "
					     "served",
			    request.is_brief ? "brief" : "text");
		status = STATUS_FAILED;
	} else {
		status = show(&request, arguments);
	}
out:
	for (int i = 0; i < request.passed_count; i++)
		free(request.passed[i]);
	free(request.passed);
	free(arguments);
	return status;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[OPTION]... [DIR|LOG]...",
	.summary = "Show a recording in the browser, or as text",
	.details =
		"Options of 'xtrace merge' that name no output work here, too, such as --redact,\n"
		"--from, --filter and --top.\n"
		"The address of the page goes to stdout.\n",
	.list_options = list_options,
	.run = report_command_run,
};
