/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the limits that users write: log sizes (500M, 2G, 2G:newest) and overheads (5, 0.5). Never
 * allocates; any thread.
 */
#ifndef XT_LOG_SIZE_TEXT_H
#define XT_LOG_SIZE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define XT_SIZE_BOUND_MIN (UINT64_C(256) << 10)

struct xt_size_bound {
	uint64_t bytes;	   /* 0: no limit */
	bool keeps_newest; /* discard the oldest events; otherwise stop recording */
};

/*
 * Parses a byte count with an optional K, M, G or T (powers of 1024) and an optional `:newest`.
 * False if malformed or below XT_SIZE_BOUND_MIN.
 */
bool xt_size_bound_parse(const char *text, struct xt_size_bound *bound);

/* Parses a percentage above 0 and up to 100, such as 5 or 0.5. False if malformed. */
bool xt_percent_parse(const char *text, double *percent);

#endif
