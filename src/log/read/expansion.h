/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of what a log may expand to, as docs/LOG_FORMAT.md defines them.
 *
 * A chunk of some tens of bytes can hold a million rows. Without limits, a log of a few kilobytes
 * takes all memory of its reader. Real logs stay far below the limits: their rows take more than two
 * bytes each.
 */
#ifndef XT_LOG_EXPANSION_H
#define XT_LOG_EXPANSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

#define XT_LOG_LIMITS_VARIABLE "XTRACE_LOG_LIMITS" /* 0: no limits */

enum xt_expansion_unit {
	XT_EXPANSION_TABLE_ROWS, /* of kinds that a reader keeps in memory */
	XT_EXPANSION_TABLE_BYTES,
	XT_EXPANSION_ROWS, /* of all kinds */
	XT_EXPANSION_BYTES,
	XT_EXPANSION_UNITS
};

/* All zeros is the start of a log. */
struct xt_expansion {
	uint64_t amounts[XT_EXPANSION_UNITS];
	uint64_t log_bytes; /* up to the end of the last chunk */
};

/* Adds a chunk of a known kind, which ends at log_bytes. False if the log is beyond a limit now. */
bool xt_expansion_add(struct xt_expansion *expansion, const struct xt_chunk_header *header,
		      uint64_t log_bytes);

/* Names the limit that the log exceeds, for an error message. */
void xt_expansion_put(char *out, size_t out_bytes, const struct xt_expansion *expansion);

#endif
