/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes outputs. They are opened before any log is read, and committed or discarded
 * together.
 */
#ifndef XT_MERGE_SINKS_H
#define XT_MERGE_SINKS_H

#include "merge/exporters.h"
#include "merge/options.h"

struct sink;

#define SINKS_MAX (ANALYSES_MAX + OUTPUTS_MAX)

/*
 * Lists the analyses that the outputs read, then the outputs, without opening any. Returns their
 * number. sinks has room for SINKS_MAX.
 */
size_t sinks_list(const struct options *options, struct sink *sinks, size_t *analysis_count);

/*
 * Opens the outputs and begins the exporters. Reports errors. Returns 0 or an error. Call
 * sinks_close() in any case.
 */
int sinks_open(struct sink *sinks, size_t count, struct report *report);

/* Commits the files if whole is true, else removes them. Frees the exporters. */
void sinks_close(struct sink *sinks, size_t count, bool whole, struct report *report);

#endif
