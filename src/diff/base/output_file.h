/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes output files atomically, and knows those that a command line asks for.
 */
#ifndef XT_DIFF_OUTPUT_FILE_H
#define XT_DIFF_OUTPUT_FILE_H

#include <stdio.h>

#include "cli/output_options.h"

/* Writes an output to a stream. Returns 0 or -errno. */
typedef int output_write(const void *format, FILE *file, void *context);

/* Writes all outputs. Prints errors, and returns the exit status. */
int outputs_write(const struct outputs *outputs, output_write *write, void *context);

/*
 * Calls write() with a stream that replaces the file when it is complete. Returns 0, or the first
 * error of write() or xt_new_file_open().
 */
int output_file_write(const char *path, int (*write)(FILE *file, void *context), void *context);

#endif
