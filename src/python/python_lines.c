/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three line table formats since CPython 3.9. Each is a sequence of instruction ranges. Runs in
 * the program's threads on the cold path.
 */
#include "python/python_lines.h"

/* 3.9: pairs of address increment and line increment. */
static uint32_t line_by_lnotab(const uint8_t *table, size_t table_bytes, uint32_t first_line,
			       int64_t offset, size_t *used_out)
{
	uint32_t line = first_line;
	int64_t address = 0;
	size_t at = 0;

	for (; at + 2 <= table_bytes; at += 2) {
		address += table[at];
		if (address > offset)
			break;
		line += (uint32_t)(int8_t)table[at + 1];
	}
	*used_out = at + 2 <= table_bytes ? at + 2 : table_bytes;
	return line;
}

/* 3.10: pairs of range length in bytes and line difference from the previous range. */
static uint32_t line_by_linetable(const uint8_t *table, size_t table_bytes, uint32_t first_line,
				  int64_t offset, size_t *used_out)
{
	const int8_t no_line = -128;
	uint32_t line = first_line;
	int64_t end = 0;

	for (size_t at = 0; at + 2 <= table_bytes; at += 2) {
		int8_t delta = (int8_t)table[at + 1];

		end += table[at];
		if (delta != no_line)
			line += (uint32_t)delta;
		if (offset < end) {
			*used_out = at + 2;
			return delta == no_line ? 0 : line;
		}
	}
	*used_out = table_bytes;
	return 0;
}

static int64_t read_signed(const uint8_t *table, size_t table_bytes, size_t at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; at < table_bytes && shift < 60; shift += 6) {
		uint8_t byte = table[at++];

		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* From 3.11: the first byte of an entry has the top bit set, a kind, and the length in units. */
static uint32_t line_by_locations(const uint8_t *table, size_t table_bytes, uint32_t first_line,
				  int64_t offset, size_t *used_out)
{
	enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };
	const int64_t unit_bytes = 2;
	uint32_t line = first_line; /* modulo 2^32: a corrupt table may overflow it */
	int64_t end = 0;
	size_t at = 0;

	while (at < table_bytes) {
		unsigned kind = table[at] >> 3 & 15;

		end += ((table[at] & 7) + 1) * unit_bytes;
		if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
			line += kind - ONE_LINE_0;
		else if (kind == NO_COLUMNS || kind == LONG)
			line += (uint32_t)read_signed(table, table_bytes, at + 1);
		for (at++; at < table_bytes && !(table[at] & 0x80);)
			at++;
		if (offset < end) {
			*used_out = at;
			return kind == NO_LOCATION ? 0 : line;
		}
	}
	*used_out = table_bytes;
	return 0;
}

uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t table_bytes,
		     uint32_t first_line, int64_t offset, size_t *used_out)
{
	*used_out = 0;
	if (offset < 0)
		return first_line;
	switch (format) {
	case PYTHON_LNOTAB:
		return line_by_lnotab(table, table_bytes, first_line, offset, used_out);
	case PYTHON_LINETABLE:
		return line_by_linetable(table, table_bytes, first_line, offset, used_out);
	case PYTHON_LOCATIONS:
		break;
	}
	return line_by_locations(table, table_bytes, first_line, offset, used_out);
}
