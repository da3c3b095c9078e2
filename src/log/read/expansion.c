/* SPDX-License-Identifier: Apache-2.0 */
#include "log/read/expansion.h"

#include <stdio.h>

#define STREAMED_KINDS                                                                             \
	(1u << XT_KIND_CALL | 1u << XT_KIND_KERNEL | 1u << XT_KIND_COPY | 1u << XT_KIND_SET |      \
	 1u << XT_KIND_CLOCK)

static const struct {
	const char *what;
	uint64_t base;
	uint64_t per_log_byte;
} limits[XT_EXPANSION_UNITS] = {
	[XT_EXPANSION_TABLE_ROWS] = {"table rows", 1u << 20, 4},
	[XT_EXPANSION_TABLE_BYTES] = {"bytes of tables", 1u << 24, 64},
	[XT_EXPANSION_ROWS] = {"rows", 1u << 23, 16},
	[XT_EXPANSION_BYTES] = {"bytes of rows", 1u << 28, 256},
};

static uint64_t limit_of(enum xt_expansion_unit unit, uint64_t log_bytes)
{
	return limits[unit].base + limits[unit].per_log_byte * log_bytes;
}

static bool exceeds(const struct xt_expansion *expansion, enum xt_expansion_unit unit)
{
	return expansion->amounts[unit] > limit_of(unit, expansion->log_bytes);
}

bool xt_expansion_add(struct xt_expansion *expansion, const struct xt_chunk_header *header,
		      uint64_t log_bytes)
{
	expansion->log_bytes = log_bytes;
	if (!(STREAMED_KINDS >> header->kind & 1)) {
		expansion->amounts[XT_EXPANSION_TABLE_ROWS] += header->row_count;
		expansion->amounts[XT_EXPANSION_TABLE_BYTES] += header->raw_bytes;
	}
	expansion->amounts[XT_EXPANSION_ROWS] += header->row_count;
	expansion->amounts[XT_EXPANSION_BYTES] += header->raw_bytes;
	for (int unit = 0; unit < XT_EXPANSION_UNITS; unit++)
		if (exceeds(expansion, unit))
			return false;
	return true;
}

void xt_expansion_put(char *out, size_t out_bytes, const struct xt_expansion *expansion)
{
	int unit = 0;

	while (unit < XT_EXPANSION_UNITS - 1 && !exceeds(expansion, unit))
		unit++;
	snprintf(out, out_bytes,
		 "its first %llu bytes expand to %llu %s, the limit is %llu; xtrace does not "
		 "write such logs. To read it nevertheless, set " XT_LOG_LIMITS_VARIABLE "=0",
		 (unsigned long long)expansion->log_bytes,
		 (unsigned long long)expansion->amounts[unit], limits[unit].what,
		 (unsigned long long)limit_of(unit, expansion->log_bytes));
}
