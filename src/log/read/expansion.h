/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how much a log may expand; docs/internals/LOG_FORMAT.md defines the limits.
 *
 * A chunk of a few dozen bytes can hold a million rows. Without limits, a log of a few kilobytes
 * could exhaust the reader's memory. Real logs stay far below the limits: their rows take more than
 * two bytes each. Runs on the reader's thread.
 */
#ifndef XT_LOG_EXPANSION_H
#define XT_LOG_EXPANSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

#define XT_LOG_LIMITS_VARIABLE "XTRACE_LOG_LIMITS" /* 0 disables the limits */

enum xt_expansion_unit {
	XT_EXPANSION_TABLE_ROWS, /* rows of kinds that a reader keeps in memory */
	XT_EXPANSION_TABLE_BYTES,
	XT_EXPANSION_ROWS, /* rows of all kinds */
	XT_EXPANSION_BYTES,
	XT_EXPANSION_UNITS
};

/* Zeros are the start of a log. */
struct xt_expansion {
	uint64_t amounts[XT_EXPANSION_UNITS];
	uint64_t log_bytes; /* up to the end of the last chunk */
};

/* Adds a chunk of a known kind that ends at log_bytes. False if the log now exceeds a limit. */
bool xt_expansion_add(struct xt_expansion *expansion, const struct xt_chunk_header *header,
		      uint64_t log_bytes);

/* Describes the exceeded limit for an error message. */
void xt_expansion_put(char *out, size_t out_bytes, const struct xt_expansion *expansion);

#endif
