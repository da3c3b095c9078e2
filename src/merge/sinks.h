/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs at work: opened before anything is read, and either all taken on or all given up.
 */
#ifndef XT_MERGE_SINKS_H
#define XT_MERGE_SINKS_H

#include "merge/options.h"

/* Opens all outputs of the options and begins their exporters. What cannot be done is reported. 0 or
 * an error; sinks_close() in any case. */
int sinks_open(const struct options *options, struct sink *sinks, struct report *report);

/* Gives the files their names if the whole is written, else removes them; frees the exporters. */
void sinks_close(struct sink *sinks, size_t count, bool whole, struct report *report);

/* For exporters of USES_FOLDER: the file of that name in the output's folder, which is opened with
 * the others and closed with them. 0 or as output_open(). */
int sinks_add_file(struct sink *sink, const char *name);

#endif
