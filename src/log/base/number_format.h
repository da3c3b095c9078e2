/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats numbers for people. Any thread may call.
 */
#ifndef XT_LOG_NUMBER_FORMAT_H
#define XT_LOG_NUMBER_FORMAT_H

#include <stdint.h>

#define COUNT_BYTES 28
#define TIME_BYTES  40
#define SHARE_BYTES 16

/* "1,234,567", into COUNT_BYTES. Returns out. */
const char *format_count(char *out, uint64_t value);

/* Writes "1.234 ms" and "1.234 MiB" into TIME_BYTES. */
void format_time(char *out, uint64_t ns);
void format_bytes(char *out, uint64_t bytes);

/*
 * Writes "24.1 %" into SHARE_BYTES. Only a complete part is "100.0 %", only none is "0.0 %". The
 * HTML page has the same rules (src/report/src/format.ts).
 */
void format_share(char *out, uint64_t part, uint64_t whole);

#endif
