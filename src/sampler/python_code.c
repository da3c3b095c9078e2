/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/python_code.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "python/python_lines.h"
#include "sampler/process_read.h"
#include "sampler/python_code_read.h"

#define CODES_MAX     262144
#define FUNCTIONS_MAX 1048576 /* a program may compile code in a loop */
#define PARTS_OF_CODE (1 + PYTHON_COPIES)

static void free_codes(struct python_codes *codes)
{
	for (size_t i = 0; i < codes->count; i++) {
		python_code_free_copies(codes->list[i]);
		free(codes->list[i]);
	}
	codes->count = 0;
	xt_hash_free(&codes->by_address);
}

void python_codes_begin(struct python_codes *codes)
{
	if (codes->count >= CODES_MAX)
		free_codes(codes);
	codes->round++;
	codes->used_count = 0;
}

static struct python_code *add_code(struct python_codes *codes, uint64_t address)
{
	struct python_code *code;

	if (grow(&codes->list, &codes->capacity, codes->count + 1, sizeof(struct python_code *)))
		return NULL;
	code = calloc(1, sizeof(*code));
	if (!code)
		return NULL;
	code->address = address;
	codes->list[codes->count++] = code;
	return code;
}

static struct python_code *find_code(struct python_codes *codes, uint64_t address)
{
	uint32_t hash = xt_hash_u64(address);
	struct xt_hash_slot *slot;
	struct python_code *code;

	if (!xt_hash_reserve(&codes->by_address, codes->count + 1))
		return NULL;
	for (slot = xt_hash_first(&codes->by_address, hash); slot->item;
	     slot = xt_hash_next(&codes->by_address, slot))
		if (codes->list[slot->item - 1]->address == address)
			return codes->list[slot->item - 1];
	code = add_code(codes, address);
	if (code)
		*slot = (struct xt_hash_slot){.hash = hash, .item = (uint32_t)codes->count};
	return code;
}

struct python_code *python_codes_use(struct python_codes *codes, uint64_t address)
{
	struct python_code *code = find_code(codes, address);

	if (!code || code->used_in == codes->round)
		return code;
	if (codes->used_count == PYTHON_CODES_USED_MAX)
		return NULL;
	code->used_in = codes->round;
	codes->used[codes->used_count++] = code;
	return code;
}

static struct python_function *make_function(const struct python_code_texts *texts,
					     uint32_t first_line)
{
	struct python_function *function =
		malloc(sizeof(*function) + texts->name_bytes + texts->file_bytes + 2);
	char *text = (char *)(function + 1);

	if (!function)
		return NULL;
	memcpy(text, texts->name, texts->name_bytes + 1);
	memcpy(text + texts->name_bytes + 1, texts->file, texts->file_bytes + 1);
	*function = (struct python_function){
		.name = text, .file = text + texts->name_bytes + 1, .first_line = first_line};
	return function;
}

/* Writes what identifies a function. Returns the number of bytes. */
static size_t make_key(const struct python_code_texts *texts, uint32_t first_line, uint8_t *key)
{
	size_t name_bytes = texts->name_bytes + 1, file_bytes = texts->file_bytes + 1;

	memcpy(key, texts->name, name_bytes);
	memcpy(key + name_bytes, texts->file, file_bytes);
	memcpy(key + name_bytes + file_bytes, &first_line, sizeof(first_line));
	return name_bytes + file_bytes + sizeof(first_line);
}

/* Equal functions get the same number, even if their code is compiled again. */
static bool number_function(struct python_codes *codes, const struct python_code_texts *texts,
			    uint32_t first_line, uint32_t *number_out)
{
	static uint8_t key[PYTHON_NAME_MAX + PYTHON_FILE_MAX + 16];
	size_t key_bytes = make_key(texts, first_line, key);
	uint32_t id = interner_find(&codes->function_keys, key, key_bytes);
	struct python_function *function;
	bool is_new;

	*number_out = id - 1;
	if (id)
		return true;
	if (codes->function_count == FUNCTIONS_MAX ||
	    grow(&codes->functions, &codes->function_capacity, codes->function_count + 1,
		 sizeof(struct python_function *)))
		return false;
	function = make_function(texts, first_line);
	id = function ? interner_id(&codes->function_keys, key, key_bytes, &is_new) : 0;
	if (!id) {
		free(function);
		return false;
	}
	*number_out = id - 1;
	codes->functions[codes->function_count++] = function;
	return true;
}

static bool load(struct python_codes *codes, struct python_code *code,
		 const struct python_place *place)
{
	static struct python_code_texts texts;

	code->is_known = python_code_read(code, place, &codes->code_type, &texts) &&
			 number_function(codes, &texts, code->identity.first_line, &code->function);
	return code->is_known;
}

static size_t bytes_to_check(const struct python_code *code, const struct python_layout *layout,
			     bool has_versions)
{
	size_t bytes = python_identity_bytes(layout);

	for (int i = 0; i < PYTHON_COPIES && !has_versions; i++)
		bytes += code->copies[i].byte_count;
	return bytes;
}

static bool has_scratch(struct python_codes *codes, size_t bytes)
{
	void *scratch;

	if (bytes <= codes->scratch_bytes)
		return true;
	scratch = realloc(codes->scratch, bytes * 2);
	if (!scratch)
		return false;
	codes->scratch = scratch;
	codes->scratch_bytes = bytes * 2;
	return true;
}

/* Whether a code object is what it was. now: the parts as read now. */
static bool is_current(const struct python_code *code, const struct python_layout *layout,
		       const struct process_memory_part *now, bool has_versions)
{
	struct python_code_identity identity;

	python_identity_fill(&identity, now[0].to, layout);
	if (memcmp(&identity, &code->identity, sizeof(identity)) != 0 ||
	    (has_versions && !identity.version))
		return false;
	for (int i = 0; i < PYTHON_COPIES && !has_versions; i++)
		if (!python_copy_is_current(&code->copies[i], i, now[1 + i].to, layout))
			return false;
	return true;
}

/* Lists the parts that identify a code object. Returns where the next ones go. */
static uint8_t *list_parts(const struct python_code *code, const struct python_layout *layout,
			   bool has_versions, uint8_t *to, struct process_memory_part *parts)
{
	*parts = (struct process_memory_part){to, code->address, python_identity_bytes(layout)};
	to += parts++->bytes;
	for (int i = 0; i < PYTHON_COPIES && !has_versions; i++) {
		*parts = (struct process_memory_part){to, code->copies[i].from,
						      code->copies[i].byte_count};
		to += parts++->bytes;
	}
	return to;
}

/* Compares known code objects with one system call. Unsets is_known of those that changed. */
static bool check_some(struct python_codes *codes, struct python_code **list, uint32_t count,
		       const struct python_place *place, bool has_versions)
{
	struct process_memory_part parts[PROCESS_MEMORY_PARTS_MAX];
	const uint32_t parts_each = has_versions ? 1 : PARTS_OF_CODE;
	uint32_t part_count = 0;
	size_t bytes = 0;
	uint8_t *to;
	bool is_read;

	for (uint32_t i = 0; i < count; i++)
		if (list[i]->is_known)
			bytes += bytes_to_check(list[i], &place->layout, has_versions);
	if (!bytes)
		return true;
	if (!has_scratch(codes, bytes))
		return false;
	to = codes->scratch;
	for (uint32_t i = 0; i < count; i++)
		if (list[i]->is_known) {
			to = list_parts(list[i], &place->layout, has_versions, to,
					&parts[part_count]);
			part_count += parts_each;
		}
	/* If a text was freed and unmapped, each code object is read on its own. */
	is_read = process_memory_read_parts(place->pid, parts, part_count);
	part_count = 0;
	for (uint32_t i = 0; i < count; i++)
		if (list[i]->is_known) {
			list[i]->is_known = is_read && is_current(list[i], &place->layout,
								  &parts[part_count], has_versions);
			part_count += parts_each;
		}
	return true;
}

bool python_codes_check(struct python_codes *codes, const struct python_place *place,
			bool has_versions)
{
	const uint32_t at_once = PROCESS_MEMORY_PARTS_MAX / (has_versions ? 1 : PARTS_OF_CODE);

	for (uint32_t i = 0; i < codes->used_count; i += at_once) {
		uint32_t count = codes->used_count - i < at_once ? codes->used_count - i : at_once;

		if (!check_some(codes, &codes->used[i], count, place, has_versions))
			return false;
	}
	for (uint32_t i = 0; i < codes->used_count; i++)
		if (!codes->used[i]->is_known && !load(codes, codes->used[i], place))
			return false;
	return true;
}

uint32_t python_code_line(struct python_code *code, const struct python_layout *layout,
			  int64_t offset)
{
	const struct python_code_copy *lines = &code->copies[PYTHON_COPY_LINES];
	const size_t head_bytes = layout->bytes_data - layout->bytes_size;
	size_t used;

	if (offset == code->last_offset)
		return code->last_line;
	code->last_line = python_line(layout->line_format, lines->bytes + head_bytes,
				      lines->byte_count - head_bytes, code->identity.first_line,
				      offset, &used);
	code->last_offset = offset;
	return code->last_line;
}

void python_codes_free(struct python_codes *codes)
{
	free_codes(codes);
	free(codes->list);
	for (size_t i = 0; i < codes->function_count; i++)
		free(codes->functions[i]);
	free(codes->functions);
	interner_free(&codes->function_keys);
	free(codes->scratch);
	*codes = (struct python_codes){0};
}
