/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of a command: one option for each format, whose value is the file to write, and
 * --output FILE, which takes the format from the ending of FILE.
 */
#ifndef XT_CLI_OUTPUT_OPTIONS_H
#define XT_CLI_OUTPUT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/option.h"

#define OUTPUTS_MAX 16

/* The outputs that a command line asks for. All zeros is an empty list. */
struct outputs {
	struct output_option {
		const void *writer; /* of the command's type */
		const char *path;   /* "-" is stdout */
	} list[OUTPUTS_MAX];
	size_t count;
};

struct output_format {
	const char *name;   /* of the option */
	const char *help;   /* as in option_row */
	const char *value;  /* placeholder; NULL: "FILE" */
	const char *absent; /* why this build lacks it; NULL: it does not */
	const char *needs;  /* "file" or "directory": it cannot go to stdout; NULL: it can */
	const void *writer;
};

/* The format that a file name asks for by its ending. */
struct output_ending {
	const char *ending; /* without the dot */
	const char *name;   /* of the format */
};

/* What a command can write. One format is "text". */
struct output_choice {
	bool (*format)(size_t i, struct output_format *out); /* false after the last */
	const struct output_ending *endings;		     /* end with a row of zeros */
	const char *help;				     /* of --output */
	size_t offset;	    /* of struct outputs in the context of the options */
	bool checks_folder; /* refuse a file in a missing directory, before minutes of work */
};

/* Adds the outputs to a list, and the other options under a heading of their own. */
void output_options_list(struct option_list *list, const struct output_choice *choice,
			 const struct option_row *others);

/* Adds an output. Refuses a path that is there already. Returns as option_apply. */
int outputs_add(struct outputs *outputs, const struct output_choice *choice, const char *name,
		const char *path);

#endif
