/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace report: shows what was recorded. The work is xtrace-merge's; here it is decided where the
 * report lies, and a browser is opened where there is one to be seen.
 *
 * Whatever is no option of this command is passed on to xtrace-merge, whose exit status is the status.
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data_dir.h"
#include "info.h"
#include "install_paths.h"
#include "rotation.h"

#define DEFAULT_DATA_DIR "xtrace.data"
#define LOG_ENDING	 ".xtr"

static const struct command_option report_options[] = {
	{'t', "text", NULL, "Tables and a call tree on stdout rather than a page"},
	{'o', "output", "FILE",
	 "Where the page goes (DIR/report.html, or LOG.html); needed for several logs"},
	{'n', "no-open", NULL, "Open no browser, only say where the page is"},
	{'h', "help", NULL, "Print this help"},
	{0},
};

struct request {
	const char *output; /* NULL: beside what is read */
	bool is_text;
	bool tells_only; /* xtrace-merge is asked for something about itself */
	bool no_open;
	bool help;
	char **passed; /* to xtrace-merge, in the order of the command line */
	int passed_count;
	const char **inputs; /* those of them that are to be read */
	int input_count;
};

static bool is_directory(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

static bool is_log(const char *path)
{
	size_t length = strlen(path), ending = strlen(LOG_ENDING);

	return length > ending && !strcmp(path + length - ending, LOG_ENDING);
}

/* Options of xtrace-merge that take no value: what follows any other is its value. */
static const char *const switches[] = {"--full-names", "--embed-symbols", "--no-recover",
				       "--quiet",      "--version",	  "--"};

static bool is_about_merge(const char *argument)
{
	return !strcmp(argument, "--version") || !strcmp(argument, "-V") ||
	       !strncmp(argument, "--completion", strlen("--completion"));
}

static bool takes_next(const char *argument)
{
	if (strncmp(argument, "--", 2) || strchr(argument, '='))
		return false;
	for (size_t s = 0; s < sizeof(switches) / sizeof(switches[0]); s++)
		if (!strcmp(argument, switches[s]))
			return false;
	return true;
}

/* An option of this command is taken, whatever else there is, passed on. 0 or -EINVAL. */
static int read_arguments(struct request *request, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *argument = argv[i];

		if (!strcmp(argument, "-t") || !strcmp(argument, "--text")) {
			request->is_text = true;
		} else if (!strcmp(argument, "-n") || !strcmp(argument, "--no-open")) {
			request->no_open = true;
		} else if (!strcmp(argument, "-h") || !strcmp(argument, "--help")) {
			request->help = true;
		} else if (!strncmp(argument, "--output=", strlen("--output="))) {
			request->output = argument + strlen("--output=");
		} else if (!strcmp(argument, "-o") || !strcmp(argument, "--output")) {
			if (++i == argc) {
				complain("report: option '%s' needs an argument; see 'xtrace help "
					 "report'",
					 argument);
				return -EINVAL;
			}
			request->output = argv[i];
		} else {
			request->tells_only |= is_about_merge(argument);
			request->passed[request->passed_count++] = argv[i];
			if (takes_next(argument) && i + 1 < argc)
				request->passed[request->passed_count++] = argv[++i];
			else if (argument[0] != '-' || !strcmp(argument, "-"))
				request->inputs[request->input_count++] = argument;
		}
	}
	if (request->is_text && request->output) {
		complain("report: --text goes to stdout; a page goes to --output");
		return -EINVAL;
	}
	return 0;
}

/* Beside the directory or log that is read. 0, -ENAMETOOLONG, or -EINVAL: it is one of several. */
static int choose_output(const struct request *request, char out[PATH_MAX])
{
	int length = -1;

	if (request->output)
		length = snprintf(out, PATH_MAX, "%s", request->output);
	else if (request->input_count > 1)
		return -EINVAL;
	for (int i = 0; i < request->input_count && length < 0; i++) {
		const char *argument = request->inputs[i];

		if (is_directory(argument))
			length = snprintf(out, PATH_MAX, "%s/%s", argument, DATA_DIR_REPORT);
		else if (is_log(argument))
			length = snprintf(out, PATH_MAX, "%.*s.html",
					  (int)(strlen(argument) - strlen(LOG_ENDING)), argument);
	}
	if (length < 0)
		length = snprintf(out, PATH_MAX, "%s/%s", DEFAULT_DATA_DIR, DATA_DIR_REPORT);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Its exit status, or STATUS_NOT_FOUND. */
static int run_merge(char **arguments)
{
	struct install_paths paths;
	int status, error;
	pid_t pid;

	install_paths_find(&paths);
	error = posix_spawn(&pid, paths.merge, NULL, NULL, arguments, environ);
	if (error) {
		complain("%s: %s", paths.merge, strerror(error));
		return STATUS_NOT_FOUND;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_USAGE;
	return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_SIGNAL + WTERMSIG(status);
}

/* Where someone sits before a screen; a browser that cannot be started is no error. */
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
	if (request->tells_only)
		return;
	if (!request->input_count)
		rotation_settle(DEFAULT_DATA_DIR, ROTATION_LATER);
	for (int i = 0; i < request->input_count; i++)
		if (!is_log(request->inputs[i]))
			rotation_settle(request->inputs[i], ROTATION_LATER);
}

/* Whether the only input is the directory of a recording without logs. Then says so. */
static bool is_empty_recording(const struct request *request)
{
	const char *path = request->input_count ? request->inputs[0] : DEFAULT_DATA_DIR;
	char **logs;
	size_t count;

	if (request->tells_only || request->input_count > 1 || !info_is_ours(path) ||
	    data_dir_list_logs(path, &logs, &count))
		return false;
	data_dir_free_logs(logs, count);
	if (!count)
		complain("report: the recording in '%s' is empty: it has no logs", path);
	return !count;
}

static int report(struct request *request, char **arguments)
{
	char page[PATH_MAX], *whole;
	int count = 0, status;
	bool has_page = !request->is_text && !request->tells_only;
	int error = has_page ? choose_output(request, page) : 0;

	if (error) {
		complain(error == -EINVAL
				 ? "report: several are read: --output FILE says where their page "
				   "goes"
				 : "report: the name of the page is too long; see --output");
		return STATUS_USAGE;
	}
	settle_inputs(request);
	if (is_empty_recording(request))
		return STATUS_USAGE;
	arguments[count++] = "xtrace-merge";
	if (!request->tells_only) {
		arguments[count++] = request->is_text ? "--text" : "--html";
		arguments[count++] = request->is_text ? "-" : page;
	}
	for (int i = 0; i < request->passed_count; i++)
		arguments[count++] = request->passed[i];
	arguments[count] = NULL;
	status = run_merge(arguments);
	/* (1: something is missing in the log, which the page says, too.) */
	if (status > 1 || !has_page)
		return status;
	whole = realpath(page, NULL);
	printf("file://%s\n", whole ? whole : page);
	if (!request->no_open && whole)
		open_browser(whole);
	free(whole);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	/* What is passed on, and what is put before it. */
	struct request request = {.passed = calloc((size_t)argc + 1, sizeof(char *)),
				  .inputs = calloc((size_t)argc + 1, sizeof(char *))};
	char **arguments = calloc((size_t)argc + 4, sizeof(char *));
	int status = STATUS_USAGE;

	if (!request.passed || !request.inputs || !arguments)
		complain("out of memory");
	else if (read_arguments(&request, argc, argv))
		status = STATUS_USAGE;
	else if (request.help) {
		command_print_help(command);
		status = STATUS_OK;
	} else {
		status = report(&request, arguments);
	}
	free(request.passed);
	free(request.inputs);
	free(arguments);
	return status;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[OPTION]... [DIR|LOG]...",
	.summary = "Shows what was recorded: a page for a browser, or text",
	.details = "All other options are those of xtrace-merge, such as --from, --filter or "
		   "--top. The "
		   "page's\naddress goes to stdout.\n",
	.options = report_options,
	.run = run,
};
