/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed text into an output, as gzip has it. The same text gives the same bytes.
 */
#ifndef XT_MERGE_GZIP_H
#define XT_MERGE_GZIP_H

#include <stddef.h>

#include "merge/base/output.h"

struct gzip;

/* NULL if memory ran out. */
struct gzip *gzip_new(struct output *out);

/* Errors in writing are the output's. */
void gzip_write(struct gzip *gzip, const void *bytes, size_t length);

/* Nothing is to be written any more. */
void gzip_finish(struct gzip *gzip);

/* Accepts NULL, and one that was not finished. */
void gzip_free(struct gzip *gzip);

#endif
