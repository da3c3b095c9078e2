/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that choose what is recorded. A traced program gets them as environment variables.
 */
#ifndef XTRACE_CAPTURE_OPTIONS_H
#define XTRACE_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/option.h"
#include "program.h"

struct capture_options {
	const char *output; /* as the user typed it */
	/* NULL: taken from the environment */
	const char *api_level;
	const char *graph_detail;
	const char *capture_range;
	const char *python;
	const char *modules;
	const char *max_size;
	const char *flight_recorder;
	const char *snapshot_on; /* triggers, separated by commas */
	const char *snapshot_interval;
	unsigned snapshot_max;
	unsigned cpu_hz; /* 0: off, or taken from the environment */
	bool simulates;
	bool is_paused;
	const char *armed; /* value of XTRACE_START; NULL: not armed */
	bool keeps_cupti;
};

/* Adds the options. Their context begins with a struct capture_options. */
void capture_options_list(struct option_list *list);

/* Returns STATUS_OK, or STATUS_FAILED after an error message: options exclude each other. */
int capture_check(const struct capture_options *options);

/* Finds the injected library and the simulated GPU. Returns an exit status, and prints errors. */
int capture_find_parts(const struct capture_options *options, struct install_paths *paths);

#define CAPTURE_VARIABLES_MAX 24

/* All zeros is empty. Ends with an entry of zeros, as child_run() takes it. */
struct capture_environment {
	struct environment_entry entries[CAPTURE_VARIABLES_MAX + 1];
	size_t count;
	char *libraries, *cupti; /* owned */
	char cpu_hz[16], snapshot_max[16];
};

/*
 * The variables that make a program record into data_dir. They refer to the arguments, and to the
 * environment itself. Returns 0 or -ENOMEM. Call capture_environment_free() in both cases.
 */
int capture_environment_make(struct capture_environment *environment,
			     const struct capture_options *options,
			     const struct install_paths *paths, const char *data_dir);

/* Adds a variable of the caller's. value: NULL adds nothing. */
void capture_environment_add(struct capture_environment *environment, const char *name,
			     const char *value);

void capture_environment_free(struct capture_environment *environment);

#endif
