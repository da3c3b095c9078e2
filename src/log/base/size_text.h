/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the limits that users write: log sizes (500M, 2G, 2G:newest), times (30s, 1.5ms) and
 * overheads (5, 0.5). Never allocates; any thread.
 */
#ifndef XT_LOG_SIZE_TEXT_H
#define XT_LOG_SIZE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XT_SIZE_BOUND_MIN (UINT64_C(256) << 10)
#define XT_TIME_BOUND_MIN UINT64_C(1000000000)

struct xt_size_bound {
	uint64_t bytes;	   /* 0: no limit */
	bool keeps_newest; /* discard the oldest events; otherwise stop recording */
	/* A flight recorder. Its discarded events are no loss. */
	bool is_flight_recorder;
	uint64_t keep_ns; /* keep at least the events of this time; 0: bytes is the limit */
};

/*
 * Parses a byte count with an optional K, M, G or T (powers of 1024) and an optional `:newest`.
 * False if malformed or below XT_SIZE_BOUND_MIN.
 */
bool xt_size_bound_parse(const char *text, struct xt_size_bound *bound);

/*
 * Parses the bound of a flight recorder: a size, or a time with a unit, of which at least
 * XT_SIZE_BOUND_MIN or XT_TIME_BOUND_MIN is kept. False if malformed or smaller.
 */
bool xt_flight_recorder_parse(const char *text, struct xt_size_bound *bound);

/* Parses a time with a unit: 1h, 5m, 30s, 1.5ms, 20us or 7ns. False if malformed or 0. */
bool xt_time_parse(const char *text, size_t length, uint64_t *time_ns);

/* Parses a factor above 1, such as 3x or 2.5x. False if malformed, or not below a million. */
bool xt_factor_parse(const char *text, size_t length, double *factor);

/* Parses a percentage above 0 and up to 100, such as 5 or 0.5. False if malformed. */
bool xt_percent_parse(const char *text, double *percent);

#endif
