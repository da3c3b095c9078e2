/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace: finds the command in a table and runs it. The commands help, completion and version.
 */
#include <cjson/cJSON.h>
#include <elfutils/libdwfl.h>
#include <event2/event.h>
#include <lzma.h>
#include <protobuf-c/protobuf-c.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "commands.h"
#include "data_dir.h"
#include "diff/commands.h"
#include "log/base/compare.h"
#include "log/base/spellcheck.h"
#include "merge/merge_command.h"
#include "page/page.h"
#include "program.h"
#include "xtrace/log_format.h"

/* The context is a bool. */
static const struct option_row option_rows[] = {
	{"verbose", 'v', .help = "Also print the commit, the compiler and the libraries",
	 .apply = option_flag},
	{0},
};

static void print_details(void)
{
	char commit[128];
	const struct {
		const char *name, *text;
	} rows[] = {
		{"commit", commit},
		{"compiler", __VERSION__},
		{"zstd", ZSTD_versionString()},
		{"SQLite", sqlite3_libversion()},
		{"cJSON", cJSON_Version()},
		{"liblzma", lzma_version_string()},
		{"zlib", zlibVersion()},
		{"protobuf-c", protobuf_c_version()},
		{"libevent", event_get_version()},
		{"elfutils", dwfl_version(NULL)},
		{"libunwind", XTRACE_LIBUNWIND_VERSION},
	};

	version_commit(commit, sizeof(commit));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("%-12s %s\n", rows[i].name, rows[i].text);
	printf("%-12s %d.%d\n", "log format", XT_LOG_VERSION_MAJOR, XT_LOG_VERSION_MINOR);
	printf("%-12s %s\n", "HTML report", page_is_there() ? "yes" : "no");
}

static int run_version(const struct command *command, int argc, char **argv)
{
	bool is_verbose = false;
	int count, status = command_parse(command, NULL, &is_verbose, argc, argv, 0, &count);

	if (status != COMMAND_GO_ON)
		return status;
	printf("xtrace %s\n", XTRACE_VERSION);
	if (is_verbose)
		print_details();
	return STATUS_OK;
}

const struct command command_version = {
	.name = "version",
	.arguments = "[--verbose]",
	.summary = "Print the version",
	.options = option_rows,
	.run = run_version,
};

static int run_help(const struct command *command, int argc, char **argv);
static int run_completion(const struct command *command, int argc, char **argv);

static const struct command command_help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.summary = "List the commands, or show the options of one",
	.operand = "COMMAND",
	.run = run_help,
};

static const struct command command_completion = {
	.name = "completion",
	.arguments = "bash|zsh",
	.summary = "Print shell completion",
	.operand = "bash|zsh",
	.needed = "shell",
	.run = run_completion,
};

static const struct command *const commands[] = {
	&command_record, &command_attach,   &command_start,  &command_stop,	  &command_snapshot,
	&command_sample, &command_env,	    &command_report, &command_merge,	  &command_diff,
	&command_bench,	 &command_baseline, &command_ci,     &command_history,	  &command_top,
	&command_ps,	 &command_serve,    &command_doctor, &command_completion, &command_help,
	&command_version};

/* Headings of the list of commands. */
static const struct {
	const struct command *first;
	const char *title;
} groups[] = {
	{&command_record, "Record"}, {&command_report, "Look"},	 {&command_diff, "Compare"},
	{&command_top, "Watch"},     {&command_doctor, "Other"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* The link that behaves as "xtrace merge". */
#define MERGE_LINK "xtrace-merge"

/* Other names that run a command. */
static const struct {
	const char *name, *command;
} aliases[] = {
	{"export", "merge"}, {"--help", "help"}, {"-h", "help"},      {"--version", "version"},
	{"-V", "version"},   {"pause", "stop"},	 {"resume", "start"},
};

/* Names from other tools, and the command that does the same here. */
static const struct {
	const char *name, *command;
} synonyms[] = {
	{"stats", "report --text"},
	{"stat", "report --text"},
	{"list", "report --text"},
	{"info", "report --text"},
	{"summary", "report --text"},
	{"show", "report"},
	{"view", "report"},
	{"open", "report"},
	{"analyze", "report"},
	{"flamegraph", "report"},
	{"flame", "report"},
	{"query", "merge --sqlite FILE"},
	{"convert", "merge"},
	{"dump", "merge"},
	{"profile", "record"},
	{"trace", "record"},
	{"run", "record"},
	{"launch", "record"},
	{"compare", "diff"},
	{"benchmark", "bench"},
	{"check", "doctor"},
	{"diagnose", "doctor"},
	{"status", "doctor"},
	{"environment", "env"},
	{"continue", "start"},
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (!strcmp(aliases[i].name, name))
			name = aliases[i].command;
	return command_find(name);
}

static int unknown_command(const char *name)
{
	struct suggestion near = {.name = name, .length = strlen(name)};
	const char *kind = *name == '-' ? "option" : "command";
	size_t length = strlen(name);

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		suggest_consider(&near, commands[i]->name);
	for (size_t i = 0; i < COMMAND_COUNT && !near.best && length; i++)
		if (!strncmp(commands[i]->name, name, strlen(name)))
			near.best = commands[i]->name;
	for (size_t i = 0; i < COUNT(aliases); i++)
		suggest_consider(&near, aliases[i].name);
	for (size_t i = 0; i < COUNT(synonyms); i++)
		if (!strcmp(synonyms[i].name, name))
			near.best = synonyms[i].command;
	if (near.best)
		print_error("unknown %s '%s': did you mean '%s'? (see xtrace help)", kind, name,
			    near.best);
	else if (has_ending(name, ".py"))
		print_error("unknown command '%s': did you mean 'record python3 %s'? (see xtrace "
			    "help)",
			    name, name);
	else if (has_ending(name, DATA_DIR_LOG_SUFFIX))
		print_error("unknown command '%s': did you mean 'report %s'? (see xtrace help)",
			    name, name);
	else if (!child_find(name))
		print_error("unknown command '%s': did you mean 'record %s'? (see xtrace help)",
			    name, name);
	else
		print_error("unknown %s '%s' (see xtrace help)", kind, name);
	return STATUS_FAILED;
}

static void print_commands(void)
{
	printf("Usage: xtrace COMMAND [ARGUMENT]...\n\n"
	       "Show which line of a CUDA program causes which GPU time.\n");
	for (size_t i = 0, g = 0; i < COMMAND_COUNT; i++) {
		if (g < COUNT(groups) && commands[i] == groups[g].first)
			printf("\n%s:\n", groups[g++].title);
		printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
	}
	printf("\n'xtrace COMMAND --help' lists the options of a command. 'export' is another name "
	       "for 'merge'.\n");
}

static int run_help(const struct command *command, int argc, char **argv)
{
	const struct command *about;
	int count, status = command_parse(command, NULL, NULL, argc, argv, 1, &count);

	if (status != COMMAND_GO_ON)
		return status;
	if (!count) {
		print_commands();
		return STATUS_OK;
	}
	about = find_command(argv[1]);
	if (!about)
		return unknown_command(argv[1]);
	command_usage(about);
	return STATUS_OK;
}

static int run_completion(const struct command *command, int argc, char **argv)
{
	int count, status = command_parse(command, NULL, NULL, argc, argv, 1, &count);

	return status == COMMAND_GO_ON ? completion_print(argv[1]) : status;
}

static int xtrace_run(int argc, char **argv)
{
	static char name[64];
	const struct command *command;

	if (argc && !strcmp(base_name(argv[0]), MERGE_LINK)) {
		message_set_name(MERGE_LINK);
		return command_merge.run(&command_merge, argc, argv);
	}
	if (argc < 2) {
		print_error("no command given (see xtrace help)");
		return STATUS_FAILED;
	}
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	if (*argv[1] != '-') {
		snprintf(name, sizeof(name), "xtrace %s", argv[1]);
		message_set_name(name);
	}
	return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status;

	commands_register(commands, COMMAND_COUNT);
	status = xtrace_run(argc, argv);
	if (fflush(stdout) || ferror(stdout)) {
		print_error("cannot write to stdout: %m");
		return STATUS_FAILED;
	}
	return status;
}
