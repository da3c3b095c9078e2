/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes output files atomically.
 */
#ifndef XT_DIFF_OUTPUT_FILE_H
#define XT_DIFF_OUTPUT_FILE_H

#include <stdio.h>

/*
 * Calls write() with a stream that replaces the file when it is complete. Returns 0, or the first
 * error of write() or xt_new_file_open().
 */
int output_file_write(const char *path, int (*write)(FILE *file, void *context), void *context);

#endif
