/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace version: what this program was built from.
 */
#include <cjson/cJSON.h>
#include <elfutils/libdwfl.h>
#include <event2/event.h>
#include <protobuf-c/protobuf-c.h>
#include <limits.h>
#include <lzma.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "commands.h"
#include "install_paths.h"
#include "page/page.h"
#include "version.h"
#include "xtrace/log_format.h"

static bool is_verbose;

static int set_verbose(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)row;
	(void)value;
	is_verbose = true;
	return 0;
}

static const struct option_row option_rows[] = {
	{"verbose", 'v', .help = "Also print the commit, the compiler and the libraries",
	 .apply = set_verbose},
	{0},
};

void version_commit(char *out, size_t out_bytes)
{
	/* The second is that of the Debian package. */
	static const char *const places[] = {"share/xtrace/built-from",
					     "share/xtrace-gpu/built-from"};
	char path[PATH_MAX + 64];
	struct install_paths paths;
	FILE *file = NULL;

	snprintf(out, out_bytes, "unknown (not installed)");
	if (install_paths_find(&paths))
		return;
	for (size_t i = 0; !file && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", paths.top, places[i]);
		file = fopen(path, "re");
	}
	if (file && fgets(out, (int)out_bytes, file))
		out[strcspn(out, "\n")] = '\0';
	if (file)
		fclose(file);
}

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
	int count, status;

	status = command_parse(command, NULL, NULL, argc, argv, 0, &count);
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
