/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts by version. tools/check-pythons.sh compares each with a real interpreter.
 */
#include "python/python_layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TYPE_KEYS_SINCE_3_12 880

/* By minor version; all releases of a minor version have the same layout. */
static const struct python_layout tabled[] = {
	[9] = {.division = PYTHON_EACH_UNMARKED,
	       .line_format = PYTHON_LNOTAB,
	       .runtime_finalizing = 16,
	       .state_frame = 24,
	       .state_thread_id = 176,
	       .frame_previous = 24,
	       .frame_code = 32,
	       .frame_instruction = 104,
	       .instruction_bytes = 1,
	       .code_name = 112,
	       .code_file = 104,
	       .code_first_line = 40,
	       .code_line_table = 120,
	       .runtime_interpreters = 32,
	       .frame_locals = 360,
	       .runtime_head = 32,
	       .interpreter_next = 0,
	       .interpreter_threads = 8,
	       .state_pthread = 176,
	       .dict_place = PYTHON_DICT_AT_OFFSET},
	[10] = {.division = PYTHON_EACH_MARKED,
		.line_format = PYTHON_LINETABLE,
		.runtime_finalizing = 16,
		.state_frame = 24,
		.state_cframe = 48,
		.cframe_previous = 8,
		.state_thread_id = 176,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 96,
		.instruction_bytes = 2,
		.code_name = 112,
		.code_file = 104,
		.code_first_line = 40,
		.code_line_table = 120,
		.runtime_interpreters = 32,
		.frame_locals = 352,
		.runtime_head = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.state_pthread = 176,
		.dict_place = PYTHON_DICT_AT_OFFSET},
	[11] = {.division = PYTHON_BY_FLAG,
		.line_format = PYTHON_LOCATIONS,
		.runtime_finalizing = 24,
		.state_cframe = 56,
		.state_thread_id = 152,
		.cframe_frame = 8,
		.cframe_previous = 16,
		.frame_previous = 48,
		.frame_code = 32,
		.frame_instruction = 56,
		.frame_is_entry = 68,
		.frame_owner = 69,
		.code_name = 128,
		.code_file = 112,
		.code_first_line = 72,
		.code_line_table = 136,
		.code_instructions = 184,
		.code_first_traceable = 168,
		.runtime_interpreters = 40,
		.frame_locals = 72,
		.type_keys = 872,
		.runtime_head = 40,
		.interpreter_next = 0,
		.interpreter_threads = 16,
		.state_pthread = 152,
		.state_native_id = 160,
		.dict_place = PYTHON_DICT_AND_VALUES},
	[12] = {.division = PYTHON_BY_SHIM,
		.line_format = PYTHON_LOCATIONS,
		.runtime_finalizing = 24,
		.state_cframe = 56,
		.state_status = 24,
		.cframe_frame = 0,
		.cframe_previous = 8,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 70,
		.code_name = 128,
		.code_file = 112,
		.code_first_line = 68,
		.code_line_table = 136,
		.code_instructions = 192,
		.code_first_traceable = 176,
		.code_version = 92,
		.state_interpreter = 16,
		.interpreter_id = 8,
		.frame_locals = 72,
		.type_keys = TYPE_KEYS_SINCE_3_12,
		.runtime_head = 40,
		.interpreter_next = 0,
		.interpreter_threads = 72,
		.state_pthread = 136,
		.state_native_id = 144,
		.dict_place = PYTHON_DICT_OR_VALUES},
};
#define FIRST_PUBLISHED 13

/* Distance from a code object's first line to its version, in the published layout. */
#define VERSION_BEHIND_FIRST_LINE 24

/* Distance from the first traceable instruction to the end of the fixed part. */
#define FIRST_TRACEABLE_BEFORE_END 16

/* Indexes of the published values in the interpreter's table of 64-bit words. */
struct places {
	uint8_t version, free_threaded, finalizing, runtime_head, interpreter_id, interpreter_next,
		interpreter_threads, state_interpreter, state_frame, state_pthread, state_native_id,
		state_status, frame_previous, frame_code, frame_instruction, frame_owner,
		frame_tlbc_index, frame_locals, code_file, code_name, code_line_table,
		code_first_line, code_instructions, code_tlbc, object_type, type_name, bytes_size,
		bytes_data, str_state, str_length, str_ascii_bytes;
};

static const struct places published[] = {
	[13] = {.version = 1,
		.free_threaded = 2,
		.finalizing = 4,
		.runtime_head = 5,
		.interpreter_id = 7,
		.interpreter_next = 8,
		.interpreter_threads = 9,
		.state_interpreter = 22,
		.state_frame = 23,
		.state_pthread = 24,
		.state_native_id = 25,
		.state_status = 27,
		.frame_previous = 29,
		.frame_code = 30,
		.frame_instruction = 31,
		.frame_locals = 32,
		.frame_owner = 33,
		.code_file = 35,
		.code_name = 37,
		.code_line_table = 38,
		.code_first_line = 39,
		.code_instructions = 43,
		.object_type = 45,
		.type_name = 47,
		.bytes_size = 65,
		.bytes_data = 66,
		.str_state = 68,
		.str_length = 69,
		.str_ascii_bytes = 70},
	[14] = {.version = 1,
		.free_threaded = 2,
		.finalizing = 4,
		.runtime_head = 5,
		.interpreter_id = 7,
		.interpreter_next = 8,
		.interpreter_threads = 9,
		.state_interpreter = 25,
		.state_frame = 26,
		.state_pthread = 27,
		.state_native_id = 28,
		.state_status = 30,
		.frame_previous = 32,
		.frame_code = 33,
		.frame_instruction = 34,
		.frame_locals = 35,
		.frame_owner = 36,
		.frame_tlbc_index = 38,
		.code_file = 40,
		.code_name = 42,
		.code_line_table = 43,
		.code_first_line = 44,
		.code_instructions = 48,
		.code_tlbc = 49,
		.object_type = 51,
		.type_name = 53,
		.bytes_size = 75,
		.bytes_data = 76,
		.str_state = 78,
		.str_length = 79,
		.str_ascii_bytes = 80},
};

static void fill_dicts(uint32_t minor, struct python_layout *layout)
{
	layout->keys_are_sized = minor < 11;
	layout->keys_count = minor < 11 ? 32 : 24;
	layout->keys_indices = minor < 11 ? 40 : 32;
}

static void fill_tabled(uint32_t minor, struct python_layout *layout)
{
	*layout = tabled[minor];
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
	const struct places *at = &published[minor];
	bool is_free_threaded = table[at->free_threaded] != 0;

	*layout = (struct python_layout){
		.division = PYTHON_BY_SHIM,
		.line_format = PYTHON_LOCATIONS,
		.runtime_finalizing = (uint16_t)table[at->finalizing],
		.state_frame = (uint16_t)table[at->state_frame],
		.state_status = (uint16_t)table[at->state_status],
		.state_interpreter = (uint16_t)table[at->state_interpreter],
		.interpreter_id = (uint16_t)table[at->interpreter_id],
		.runtime_head = (uint16_t)table[at->runtime_head],
		.interpreter_next = (uint16_t)table[at->interpreter_next],
		.interpreter_threads = (uint16_t)table[at->interpreter_threads],
		.state_pthread = (uint16_t)table[at->state_pthread],
		.state_native_id = (uint16_t)table[at->state_native_id],
		.frame_previous = (uint16_t)table[at->frame_previous],
		.frame_code = (uint16_t)table[at->frame_code],
		.frame_instruction = (uint16_t)table[at->frame_instruction],
		.frame_owner = (uint16_t)table[at->frame_owner],
		.code_name = (uint16_t)table[at->code_name],
		.code_file = (uint16_t)table[at->code_file],
		.code_first_line = (uint16_t)table[at->code_first_line],
		.code_line_table = (uint16_t)table[at->code_line_table],
		.code_instructions = (uint16_t)table[at->code_instructions],
		.object_type = (uint16_t)table[at->object_type],
		.type_name = (uint16_t)table[at->type_name],
		.bytes_size = (uint16_t)table[at->bytes_size],
		.bytes_data = (uint16_t)table[at->bytes_data],
		.str_length = (uint16_t)table[at->str_length],
		.str_state = (uint16_t)table[at->str_state],
		/* The interned state precedes the kind: two bits, or a byte. */
		.str_kind_bit = minor >= 14 && is_free_threaded ? 8 : 2,
		.str_ascii_bytes = (uint16_t)table[at->str_ascii_bytes],
		.str_compact_bytes = (uint16_t)(table[at->str_ascii_bytes] + 16),
	};
	if (is_free_threaded && at->code_tlbc) {
		layout->code_tlbc = (uint16_t)table[at->code_tlbc];
		layout->frame_tlbc_index = (uint16_t)table[at->frame_tlbc_index];
	}
	layout->code_version = layout->code_first_line + VERSION_BEHIND_FIRST_LINE;
	layout->code_first_traceable =
		(layout->code_tlbc ? layout->code_tlbc : layout->code_instructions) -
		FIRST_TRACEABLE_BEFORE_END;
	if (is_free_threaded) /* objects and dicts have another layout there */
		return;
	layout->frame_locals = (uint16_t)table[at->frame_locals];
	layout->type_keys = TYPE_KEYS_SINCE_3_12;
	layout->values_start = 8;
	layout->dict_place = PYTHON_DICT_AND_EMBEDDED;
	fill_dicts(minor, layout);
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
	if (memcmp(table, "xdebugpy", 8) != 0 || table[published[minor].version] != version) {
		snprintf(why, why_bytes, "it does not publish its layout at the expected place");
		return -EINVAL;
	}
	fill_published(minor, table, layout);
	return 0;
}
