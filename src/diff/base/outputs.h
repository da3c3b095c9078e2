/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of xtrace diff and xtrace history, and parts of their JSON documents.
 */
#ifndef XT_DIFF_OUTPUTS_H
#define XT_DIFF_OUTPUTS_H

#include "base/json.h"
#include "base/output.h"
#include "cli/option.h"
#include "diff/base/level.h"
#include "diff/base/text.h"

struct output_writer {
	const char *name; /* of the option */
	const char *help;
	int (*write)(struct output *out, const void *result); /* of the command; 0 or -errno */
	bool (*is_there)(void);				      /* in this build; NULL: always */
};

/* The option of a writer. Returns false for a row of zeros, which ends a table. */
bool outputs_format(const struct output_writer *writer, struct output_format *out);

/* Writes all outputs. Prints errors, and returns the exit status. */
int outputs_write(const struct outputs *outputs, const void *result);

extern const char *const json_units[]; /* by enum unit: "ns", "bytes", "count" */

/* Begins a document with its format, version and generator. */
void json_begin_document(struct json *json, const char *format, int version);

/* The lines, as an array of strings. */
void json_lines(struct json *json, const char *key, const struct problems *lines);

#endif
