/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes gzip-compressed text to an output. The result depends only on the text.
 */
#ifndef XT_MERGE_GZIP_H
#define XT_MERGE_GZIP_H

#include <stddef.h>

#include "merge/base/output.h"

struct gzip;

struct gzip *gzip_new(struct output *out);

/* Writes errors are stored in the output. */
void gzip_write(struct gzip *gzip, const void *bytes, size_t length);

/* Ends the compressed data. */
void gzip_finish(struct gzip *gzip);

/* Accepts NULL. Also frees unfinished data. */
void gzip_free(struct gzip *gzip);

#endif
