/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes outputs. They are opened before any log is read, and committed or discarded
 * together.
 */
#ifndef XT_MERGE_SINKS_H
#define XT_MERGE_SINKS_H

#include "merge/options.h"

/*
 * Opens the outputs and begins their exporters. Reports errors. Returns 0 or an error. Call
 * sinks_close() in any case.
 */
int sinks_open(const struct options *options, struct sink *sinks, struct report *report);

/* Lists the sinks of an output without opening any, for reading logs only. */
void sinks_list(const struct options *options, struct sink *sinks);

/* Commits the files if whole is true, else removes them. Frees the exporters. */
void sinks_close(struct sink *sinks, size_t count, bool whole, struct report *report);

#endif
