/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats numbers for people, masks the numbers in names, and parses the limits that users write:
 * log sizes (500M, 2G, 2G:newest), times (30s, 1.5ms) and triggers of snapshots
 * (range:step>500ms,iteration>3x,hang>10s,error,oom). Never allocates; any thread may call.
 */
#ifndef XT_LOG_NUMBER_FORMAT_H
#define XT_LOG_NUMBER_FORMAT_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_BYTES 28
#define TIME_BYTES  40
#define SHARE_BYTES 16

/* Each returns out. */

/* "1,234,567", into COUNT_BYTES. */
const char *format_count(char *out, uint64_t value);

/* Writes "1.234 ms" and "1.234 MiB" into TIME_BYTES. */
const char *format_time(char *out, uint64_t ns);
const char *format_bytes(char *out, uint64_t bytes);

/* The same in three significant digits: "1.23 ms". */
const char *format_time_short(char *out, uint64_t ns);
const char *format_bytes_short(char *out, uint64_t bytes);

/*
 * Writes "24.1 %" into SHARE_BYTES. Only a complete part is "100.0 %", only none is "0.0 %". The
 * HTML page has the same rules (src/report/src/format.ts).
 */
const char *format_share(char *out, uint64_t part, uint64_t whole);

/* Replaces each number by one "#", in place: "step 12" and "step 7" become "step #". */
static inline void xt_mask_numbers(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (!isdigit((unsigned char)*from))
			*to++ = *from;
		else if (to == text || to[-1] != '#')
			*to++ = '#';
	}
	*to = '\0';
}

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

#define XT_SNAPSHOT_TRIGGERS_MAX 16
#define XT_SNAPSHOT_TEXT_BYTES	 4096 /* of all triggers, with the final 0 */

/* Limits of automatic snapshots, unless the user chooses others. */
#define XT_SNAPSHOT_INTERVAL_NS UINT64_C(60000000000)
#define XT_SNAPSHOT_COUNT_MAX	20

enum xt_trigger_kind {
	XT_TRIGGER_RANGE,
	XT_TRIGGER_ITERATION,
	XT_TRIGGER_HANG,
	XT_TRIGGER_ERROR,
	XT_TRIGGER_OOM
};

/* The texts are parts of the parsed text. */
struct xt_snapshot_trigger {
	enum xt_trigger_kind kind;
	const char *text; /* the whole trigger */
	size_t text_bytes;
	const char *name; /* of the NVTX range; NULL: none */
	size_t name_bytes;
	/* The limit: a time, or a multiple of the median. A longer time fires the trigger. */
	uint64_t limit_ns;
	double factor; /* 0: the limit is limit_ns */
};

/*
 * Parses triggers separated by commas. The name of a range ends at the first ">" that a limit
 * follows, so it may contain commas. Returns their number, or -EINVAL if one is malformed or there
 * are too many.
 */
int xt_snapshot_triggers_parse(const char *text,
			       struct xt_snapshot_trigger triggers[XT_SNAPSHOT_TRIGGERS_MAX]);

#endif
