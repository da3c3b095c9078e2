/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts by version, which tools/check-pythons.sh compares with real interpreters, and the line
 * table formats since CPython 3.9. Lines and characters are read in the program's threads, too.
 */
#include "python/python_layout.h"

#include <errno.h>
#include <stdio.h>

#define PYTHON_FIRST_KNOWN PYTHON_VERSION(3, 9)

#define PYTHON_LAST_KNOWN PYTHON_VERSION(3, 14)

#define TYPE_KEYS_SINCE_3_12 880

/* A member of the layout, and its number in each of several versions. */
struct member {
	size_t place; /* in struct python_layout */
	uint16_t numbers[4];
};
#define AT(member)     offsetof(struct python_layout, member)
#define COUNT(members) (sizeof(members) / sizeof(*(members)))

/* Offsets in 3.9, 3.10, 3.11 and 3.12. All releases of a minor version have the same layout. */
#define FIRST_TABLED 9
static const struct member tabled[] = {
	{AT(state_frame), {24, 24, 0, 0}},
	{AT(state_cframe), {0, 48, 56, 56}},
	{AT(state_thread_id), {176, 176, 152, 0}},
	{AT(state_status), {0, 0, 0, 24}},
	{AT(state_interpreter), {0, 0, 0, 16}},
	{AT(interpreter_id), {0, 0, 0, 8}},
	{AT(cframe_frame), {0, 0, 8, 0}},
	{AT(cframe_previous), {0, 8, 16, 8}},
	{AT(frame_previous), {24, 24, 48, 8}},
	{AT(frame_code), {32, 32, 32, 0}},
	{AT(frame_instruction), {104, 96, 56, 56}},
	{AT(frame_is_entry), {0, 0, 68, 0}},
	{AT(frame_owner), {0, 0, 69, 70}},
	{AT(instruction_bytes), {1, 2, 0, 0}},
	{AT(code_version), {0, 0, 0, 92}},
	{AT(runtime_finalizing), {16, 16, 24, 24}},
	{AT(runtime_interpreters), {32, 32, 40, 0}},
	{AT(code_name), {112, 112, 128, 128}},
	{AT(code_file), {104, 104, 112, 112}},
	{AT(code_first_line), {40, 40, 72, 68}},
	{AT(code_line_table), {120, 120, 136, 136}},
	{AT(code_instructions), {0, 0, 184, 192}},
	{AT(code_first_traceable), {0, 0, 168, 176}},
	{AT(frame_locals), {360, 352, 72, 72}},
	{AT(type_keys), {0, 0, 872, TYPE_KEYS_SINCE_3_12}},
	{AT(runtime_head), {32, 32, 40, 40}},
	{AT(interpreter_threads), {8, 8, 16, 72}},
	{AT(state_pthread), {176, 176, 152, 136}},
	{AT(state_native_id), {0, 0, 160, 144}},
};

/* In 3.13 and 3.14, indexes of the published offsets in the interpreter's table of 64-bit words. */
#define FIRST_PUBLISHED 13
static const struct member published[] = {
	{AT(state_frame), {23, 26}},	   {AT(state_status), {27, 30}},
	{AT(state_interpreter), {22, 25}}, {AT(interpreter_id), {7, 7}},
	{AT(frame_previous), {29, 32}},	   {AT(frame_code), {30, 33}},
	{AT(frame_instruction), {31, 34}}, {AT(frame_owner), {33, 36}},
	{AT(runtime_finalizing), {4, 4}},  {AT(code_name), {37, 42}},
	{AT(code_file), {35, 40}},	   {AT(code_first_line), {39, 44}},
	{AT(code_line_table), {38, 43}},   {AT(code_instructions), {43, 48}},
	{AT(object_type), {45, 51}},	   {AT(type_name), {47, 53}},
	{AT(bytes_size), {65, 75}},	   {AT(bytes_data), {66, 76}},
	{AT(str_length), {69, 79}},	   {AT(str_state), {68, 78}},
	{AT(str_ascii_bytes), {70, 80}},   {AT(frame_locals), {32, 35}},
	{AT(runtime_head), {5, 5}},	   {AT(interpreter_next), {8, 8}},
	{AT(interpreter_threads), {9, 9}}, {AT(state_pthread), {24, 27}},
	{AT(state_native_id), {25, 28}},
};
#define VERSION_INDEX	       1
#define IS_FREE_THREADED_INDEX 2
#define FRAME_TLBC_INDEX_3_14  38
#define CODE_TLBC_INDEX_3_14   49

/* Distance from a code object's first line to its version, in the published layout. */
#define VERSION_BEHIND_FIRST_LINE 24

/* Distance from the first traceable instruction to the end of the fixed part. */
#define FIRST_TRACEABLE_BEFORE_END 16

static uint16_t *member_of(struct python_layout *layout, const struct member *member)
{
	return (uint16_t *)((char *)layout + member->place);
}

static void fill_dicts(uint32_t minor, struct python_layout *layout)
{
	layout->keys_are_sized = minor < 11;
	layout->keys_count = minor < 11 ? 32 : 24;
	layout->keys_indices = minor < 11 ? 40 : 32;
}

static void fill_tabled(uint32_t minor, struct python_layout *layout)
{
	static const struct python_layout formats[] = {
		[9] = {PYTHON_EACH_UNMARKED, PYTHON_LNOTAB, .dict_place = PYTHON_DICT_AT_OFFSET},
		[10] = {PYTHON_EACH_MARKED, PYTHON_LINETABLE, .dict_place = PYTHON_DICT_AT_OFFSET},
		[11] = {PYTHON_BY_FLAG, PYTHON_LOCATIONS, .dict_place = PYTHON_DICT_AND_VALUES},
		[12] = {PYTHON_BY_SHIM, PYTHON_LOCATIONS, .dict_place = PYTHON_DICT_OR_VALUES},
	};

	*layout = formats[minor];
	for (size_t m = 0; m < COUNT(tabled); m++)
		*member_of(layout, &tabled[m]) = tabled[m].numbers[minor - FIRST_TABLED];
	layout->object_type = 8;
	layout->type_name = 24;
	layout->bytes_size = 16;
	layout->bytes_data = 32;
	layout->str_length = 16;
	layout->str_state = 32;
	layout->str_kind_bit = 2;
	/* Up to 3.11, a string could have a second representation, which takes space. */
	layout->str_ascii_bytes = minor < 12 ? 48 : 40;
	layout->str_compact_bytes = minor < 12 ? 72 : 56;
	fill_dicts(minor, layout);
}

static void fill_published(uint32_t minor, const uint64_t *table, struct python_layout *layout)
{
	bool is_free_threaded = table[IS_FREE_THREADED_INDEX] != 0;

	*layout = (struct python_layout){
		.division = PYTHON_BY_SHIM,
		.line_format = PYTHON_LOCATIONS,
		/* The interned state precedes the kind: two bits, or a byte. */
		.str_kind_bit = minor >= 14 && is_free_threaded ? 8 : 2,
	};
	for (size_t m = 0; m < COUNT(published); m++)
		*member_of(layout, &published[m]) =
			(uint16_t)table[published[m].numbers[minor - FIRST_PUBLISHED]];
	layout->str_compact_bytes = layout->str_ascii_bytes + 16;
	if (is_free_threaded && minor >= 14) {
		layout->code_tlbc = (uint16_t)table[CODE_TLBC_INDEX_3_14];
		layout->frame_tlbc_index = (uint16_t)table[FRAME_TLBC_INDEX_3_14];
	}
	layout->code_version = layout->code_first_line + VERSION_BEHIND_FIRST_LINE;
	layout->code_first_traceable =
		(layout->code_tlbc ? layout->code_tlbc : layout->code_instructions) -
		FIRST_TRACEABLE_BEFORE_END;
	if (is_free_threaded) { /* objects and dicts have another layout there */
		layout->frame_locals = 0;
		return;
	}
	layout->type_keys = TYPE_KEYS_SINCE_3_12;
	layout->values_start = 8;
	layout->dict_place = PYTHON_DICT_AND_EMBEDDED;
	fill_dicts(minor, layout);
}

bool python_has_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *rest = slash ? slash + 1 : path;
	bool is_library = !strncmp(rest, "lib", 3);
	size_t numbers;

	rest += is_library ? 3 : 0;
	if (strncmp(rest, "python3", 7) != 0 && strncmp(rest, "pypy3", 5) != 0)
		return false;
	rest = strchr(rest, '3');
	numbers = strspn(rest, "0123456789.");
	rest += numbers;
	rest += strspn(rest, "tdm"); /* build flags */
	if (!is_library)
		return !rest[0];
	return numbers > 2 && (!strncmp(rest, ".so", 3) || !strncmp(rest, "-c.so", 5) ||
			       (rest[-1] == '.' && !strncmp(rest, "so", 2)));
}

uint32_t python_version_by_symbols(uint32_t py_version, bool has_iter_send, bool has_get_back)
{
	if (py_version)
		return py_version;
	if (has_iter_send)
		return PYTHON_VERSION(3, 10);
	return has_get_back ? PYTHON_VERSION(3, 9) : 0;
}

size_t python_end(const uint16_t *ends, size_t count, size_t most)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes = ends[i] > bytes ? ends[i] : bytes;
	return bytes < most ? bytes : most;
}

void python_version_name(uint32_t version, char *out, size_t out_bytes)
{
	if (!version)
		snprintf(out, out_bytes, "before 3.9");
	else if (version & 0xffff)
		snprintf(out, out_bytes, "%u.%u.%u", version >> 24, version >> 16 & 0xff,
			 version >> 8 & 0xff);
	else
		snprintf(out, out_bytes, "%u.%u", version >> 24, version >> 16 & 0xff);
}

int python_layout_find(uint32_t version, const void *runtime, struct python_layout *layout,
		       char *why, size_t why_bytes)
{
	const uint32_t first_candidate = 0xc0; /* earlier pre-releases differ */
	uint32_t minor = version >> 16 & 0xff;
	uint32_t release = version & 0xf0;
	const uint64_t *table = runtime;

	if (version < PYTHON_FIRST_KNOWN || (version & 0xffff0000) > PYTHON_LAST_KNOWN ||
	    (release && release < first_candidate)) {
		snprintf(why, why_bytes, "unsupported version; 3.9 to 3.14 are supported");
		return -EINVAL;
	}
	if (minor < FIRST_PUBLISHED) {
		fill_tabled(minor, layout);
		return 0;
	}
	if (memcmp(table, "xdebugpy", 8) != 0 || table[VERSION_INDEX] != version) {
		snprintf(why, why_bytes, "it does not publish its layout at the expected place");
		return -EINVAL;
	}
	fill_published(minor, table, layout);
	return 0;
}

/*
 * Line tables are sequences of instruction ranges. 3.9: pairs of address increment and line
 * increment.
 */
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

/* Lone surrogates of undecodable bytes become these bytes again. Others become question marks. */
unsigned python_put_character(uint8_t *out, uint32_t c)
{
	if (c >= 0xdc80 && c <= 0xdcff)
		c &= 0xff;
	else if (c >= 0xd800 && c <= 0xdfff)
		c = '?';
	else if (c >= 0x10000) {
		out[0] = (uint8_t)(0xf0 | (c >> 18 & 7));
		out[1] = 0x80 | (c >> 12 & 63);
		out[2] = 0x80 | (c >> 6 & 63);
		out[3] = 0x80 | (c & 63);
		return 4;
	} else if (c >= 0x800) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = 0x80 | (c >> 6 & 63);
		out[2] = 0x80 | (c & 63);
		return 3;
	} else if (c >= 0x80) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = 0x80 | (c & 63);
		return 2;
	}
	out[0] = (uint8_t)c;
	return 1;
}
