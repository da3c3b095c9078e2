/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects may change or be freed meanwhile. Sizes are checked, and the caller reads the chain
 * of frames that refer to them once more afterwards.
 */
#include "sampler/python_code_read.h"

#include <stdlib.h>
#include <string.h>

#include "python/python_characters.h"
#include "sampler/process_read.h"

#define CHARACTERS_MAX	  (UINT64_C(1) << 30)
#define LINES_BYTES_MAX	  (UINT64_C(1) << 26)
#define HEAD_BYTES	  96  /* of a string, up to its text */
#define FLAGS_BEHIND_NAME 144 /* of a type object, in all versions */
#define FLAG_OF_BYTES	  (UINT64_C(1) << 27)
#define FLAG_OF_STR	  (UINT64_C(1) << 28)
#define STATE_MASK	  31u
#define KIND_MASK	  7u
#define COMPACT_BIT	  3
#define ASCII_BIT	  4

static uint64_t member(const uint8_t *object, uint32_t offset, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, object + offset, bytes);
	return value;
}

size_t python_identity_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {layout->object_type + 8,     layout->code_name + 8,
				 layout->code_file + 8,	      layout->code_line_table + 8,
				 layout->code_first_line + 4, layout->code_first_traceable + 4,
				 layout->code_version + 4};
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		bytes = ends[i] > bytes ? ends[i] : bytes;
	return bytes < PYTHON_IDENTITY_BYTES_MAX ? bytes : PYTHON_IDENTITY_BYTES_MAX;
}

void python_identity_fill(struct python_code_identity *out, const uint8_t *bytes,
			  const struct python_layout *layout)
{
	memset(out, 0, sizeof(*out)); /* compared with memcmp() */
	out->type = member(bytes, layout->object_type, 8);
	out->name = member(bytes, layout->code_name, 8);
	out->file = member(bytes, layout->code_file, 8);
	out->line_table = member(bytes, layout->code_line_table, 8);
	out->first_line = (uint32_t)member(bytes, layout->code_first_line, 4);
	if (layout->code_first_traceable)
		out->first_traceable = (uint32_t)member(bytes, layout->code_first_traceable, 4);
	if (layout->code_version)
		out->version = (uint32_t)member(bytes, layout->code_version, 4);
}

static bool has_flag(const struct python_place *place, uint64_t object, uint64_t flag)
{
	const struct python_layout *layout = &place->layout;
	uint64_t type, flags;

	return object % 8 == 0 &&
	       process_memory_read(place->pid, &type, object + layout->object_type, 8) &&
	       process_memory_read(place->pid, &flags, type + layout->type_name + FLAGS_BEHIND_NAME,
				   8) &&
	       flags & flag;
}

static bool is_code_type(const struct python_place *place, uint64_t type)
{
	char text[5];
	uint64_t name;

	return process_memory_read(place->pid, &name, type + place->layout.type_name, 8) &&
	       process_memory_read(place->pid, text, name, sizeof(text)) &&
	       !memcmp(text, "code", sizeof(text));
}

static bool make_copy(struct python_code_copy *copy, pid_t pid, uint64_t from, size_t byte_count)
{
	free(copy->bytes);
	*copy = (struct python_code_copy){
		.from = from, .bytes = malloc(byte_count), .byte_count = byte_count};
	return copy->bytes && process_memory_read(pid, copy->bytes, from, byte_count);
}

/* A string in the process. */
struct string {
	uint64_t length; /* in characters */
	uint64_t text;	 /* address */
	unsigned character_bytes;
	bool is_compact; /* the text follows the head */
};

static bool open_string(struct string *out, const struct python_place *place, uint64_t object)
{
	const struct python_layout *layout = &place->layout;
	uint8_t head[HEAD_BYTES];
	uint32_t state;

	if (layout->str_compact_bytes + 8 > HEAD_BYTES || !has_flag(place, object, FLAG_OF_STR) ||
	    !process_memory_read(place->pid, head, object, layout->str_ascii_bytes))
		return false;
	out->length = member(head, layout->str_length, 8);
	state = (uint32_t)member(head, layout->str_state, 4) >> layout->str_kind_bit;
	out->character_bytes = state & KIND_MASK;
	out->is_compact = state >> COMPACT_BIT & 1;
	out->text = object +
		    (state >> ASCII_BIT & 1 ? layout->str_ascii_bytes : layout->str_compact_bytes);
	if (!out->is_compact &&
	    !process_memory_read(place->pid, &out->text, object + layout->str_compact_bytes, 8))
		return false;
	return out->length <= CHARACTERS_MAX &&
	       (out->character_bytes == 1 || out->character_bytes == 2 ||
		out->character_bytes == 4);
}

static size_t put_text(char *out, size_t out_bytes, const uint8_t *text, uint64_t count,
		       unsigned character_bytes)
{
	size_t used = 0;

	for (uint64_t i = 0; i < count && out_bytes - used >= 4; i++) {
		uint32_t c = 0;

		memcpy(&c, text + i * character_bytes, character_bytes);
		used += python_put_character((uint8_t *)out + used, c);
	}
	out[used] = '\0';
	return used;
}

/* Cuts long texts as the injected library does (python_text.c): a file keeps its end. */
static bool read_text(struct python_code_copy *copy, const struct python_place *place,
		      uint64_t object, bool keeps_end, char *out, size_t out_bytes,
		      size_t *bytes_out)
{
	static const uint8_t utf8_bytes_max[] = {[1] = 2, [2] = 3, [4] = 4};
	const uint32_t length_at = place->layout.str_length;
	struct string string;
	uint64_t first = 0, count, fitting;
	size_t before;

	if (!open_string(&string, place, object))
		return false;
	count = string.length;
	fitting = out_bytes / utf8_bytes_max[string.character_bytes];
	if (keeps_end && count > fitting) {
		first = count - fitting;
		count = fitting;
	}
	count = count < out_bytes ? count : out_bytes; /* each takes a byte at least */
	if (string.is_compact && !first) {
		before = string.text - (object + length_at);
		if (!make_copy(copy, place->pid, object + length_at,
			       before + count * string.character_bytes))
			return false;
		copy->is_exact = member(copy->bytes, 0, 8) == string.length;
	} else {
		before = 0;
		if (!make_copy(copy, place->pid, string.text + first * string.character_bytes,
			       count * string.character_bytes + 1))
			return false;
	}
	*bytes_out = put_text(out, out_bytes, copy->bytes + before, count, string.character_bytes);
	return true;
}

static bool read_lines(struct python_code_copy *copy, const struct python_place *place,
		       uint64_t object)
{
	const struct python_layout *layout = &place->layout;
	uint64_t size;

	if (!has_flag(place, object, FLAG_OF_BYTES) ||
	    !process_memory_read(place->pid, &size, object + layout->bytes_size, 8) ||
	    size > LINES_BYTES_MAX ||
	    !make_copy(copy, place->pid, object + layout->bytes_size,
		       layout->bytes_data - layout->bytes_size + size))
		return false;
	copy->is_exact = true;
	return member(copy->bytes, 0, 8) == size;
}

bool python_code_read(struct python_code *code, const struct python_place *place,
		      uint64_t *code_type, struct python_code_texts *texts)
{
	uint8_t bytes[PYTHON_IDENTITY_BYTES_MAX];
	struct python_code_identity *identity = &code->identity;

	code->is_known = false;
	code->last_offset = INT64_MIN;
	if (code->address % 8 || !process_memory_read(place->pid, bytes, code->address,
						      python_identity_bytes(&place->layout)))
		return false;
	python_identity_fill(identity, bytes, &place->layout);
	if (!*code_type && is_code_type(place, identity->type))
		*code_type = identity->type;
	return identity->type == *code_type &&
	       read_text(&code->copies[PYTHON_COPY_NAME], place, identity->name, false, texts->name,
			 PYTHON_NAME_MAX, &texts->name_bytes) &&
	       read_text(&code->copies[PYTHON_COPY_FILE], place, identity->file, true, texts->file,
			 PYTHON_FILE_MAX, &texts->file_bytes) &&
	       read_lines(&code->copies[PYTHON_COPY_LINES], place, identity->line_table);
}

/* Hashes are computed later, and strings are interned later: these do not change the text. */
bool python_copy_is_current(const struct python_code_copy *copy, int kind, const uint8_t *now,
			    const struct python_layout *layout)
{
	size_t state_at = layout->str_state - layout->str_length;
	size_t text_at = layout->bytes_data - layout->bytes_size;
	uint32_t mask = STATE_MASK << layout->str_kind_bit;

	if (!copy->is_exact || memcmp(copy->bytes, now, 8) != 0)
		return false;
	if (kind != PYTHON_COPY_LINES) {
		if ((member(copy->bytes, (uint32_t)state_at, 4) ^
		     member(now, (uint32_t)state_at, 4)) &
		    mask)
			return false;
		text_at = layout->str_ascii_bytes - layout->str_length;
	}
	return !memcmp(copy->bytes + text_at, now + text_at, copy->byte_count - text_at);
}

void python_code_free_copies(struct python_code *code)
{
	for (int i = 0; i < PYTHON_COPIES; i++) {
		free(code->copies[i].bytes);
		code->copies[i] = (struct python_code_copy){0};
	}
}
