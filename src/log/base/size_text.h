/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How bounds are written: on the size of a log, 500M, 2G, 2G:newest; on what tracing costs, 5, 0.5.
 */
#ifndef XT_LOG_SIZE_TEXT_H
#define XT_LOG_SIZE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define XT_SIZE_BOUND_MIN (UINT64_C(256) << 10)

struct xt_size_bound {
	uint64_t bytes;	   /* 0: none */
	bool keeps_newest; /* leaves out the oldest; else recording stops */
};

/* A number of bytes with K, M, G or T behind it (1024 each), then `:newest` or nothing. False if it is
 * not that, or less than XT_SIZE_BOUND_MIN. */
bool xt_size_bound_parse(const char *text, struct xt_size_bound *bound);

/* A number of percent, above 0 and at most 100, as 5 or 0.5. False if it is not that. */
bool xt_percent_parse(const char *text, double *percent);

#endif
