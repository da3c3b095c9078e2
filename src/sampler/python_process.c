/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target may run while its memory is read. So a read takes three steps: the chain of frames,
 * the code objects of these frames, and the chain again. If the chain was equal both times, its
 * frames kept their code objects alive in between. A code object may be freed and another one
 * allocated at its address, so each is compared again whenever it is used. Sampler thread only.
 */
#include "sampler/python_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/base/hash_table.h"
#include "log/base/monotonic.h"
#include "python/python_layout.h"
#include "sampler/process_read.h"
#include "sampler/python_frames.h"

#define PYTHON_CODES_USED_MAX 1024

/* Parts of a code object. If its version is unique, they identify it. */
struct python_code_identity {
	uint64_t type, name, file, line_table;
	uint32_t first_line, first_traceable, version;
};

/* A part of an object, to compare it later. */
struct python_code_copy {
	uint64_t from;
	uint8_t *bytes; /* owned */
	size_t byte_count;
	bool is_exact; /* it is all that the text depends on */
};

enum { PYTHON_COPY_NAME, PYTHON_COPY_FILE, PYTHON_COPY_LINES, PYTHON_COPIES };

struct python_code {
	uint64_t address;
	bool is_known; /* the members below are valid */
	struct python_code_identity identity;
	struct python_code_copy copies[PYTHON_COPIES];
	uint32_t function;
	uint32_t used_in; /* the round that used it last */
	/* The line found last: the same instruction is often sampled again. */
	int64_t last_offset;
	uint32_t last_line;
};

/* Zeros have no code. */
struct python_codes {
	LIST(struct python_code *); /* owned */
	struct xt_hash_table by_address;
	struct python_function **functions; /* owned, with their texts */
	size_t function_count, function_capacity;
	struct interner function_keys;
	uint64_t code_type; /* the type of code objects; 0: none seen yet */
	uint32_t round;
	struct python_code *used[PYTHON_CODES_USED_MAX];
	uint32_t used_count;
	uint8_t *scratch;
	size_t scratch_bytes;
};

#define PYTHON_IDENTITY_BYTES_MAX 512
#define PYTHON_NAME_MAX		  1024 /* bytes of UTF-8 */
#define PYTHON_FILE_MAX		  4096

struct python_code_texts {
	char name[PYTHON_NAME_MAX + 1], file[PYTHON_FILE_MAX + 1];
	size_t name_bytes, file_bytes;
};

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

/* How many bytes of a code object, from its start, its identity is read from. */
static size_t python_identity_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {layout->object_type + 8,     layout->code_name + 8,
				 layout->code_file + 8,	      layout->code_line_table + 8,
				 layout->code_first_line + 4, layout->code_first_traceable + 4,
				 layout->code_version + 4};

	return python_end(ends, sizeof(ends) / sizeof(*ends), PYTHON_IDENTITY_BYTES_MAX);
}

static void python_identity_fill(struct python_code_identity *out, const uint8_t *bytes,
				 const struct python_layout *layout)
{
	memset(out, 0, sizeof(*out)); /* compared with memcmp() */
	out->type = python_member(bytes, layout->object_type, 8);
	out->name = python_member(bytes, layout->code_name, 8);
	out->file = python_member(bytes, layout->code_file, 8);
	out->line_table = python_member(bytes, layout->code_line_table, 8);
	out->first_line = (uint32_t)python_member(bytes, layout->code_first_line, 4);
	if (layout->code_first_traceable)
		out->first_traceable =
			(uint32_t)python_member(bytes, layout->code_first_traceable, 4);
	if (layout->code_version)
		out->version = (uint32_t)python_member(bytes, layout->code_version, 4);
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
	out->length = python_member(head, layout->str_length, 8);
	state = (uint32_t)python_member(head, layout->str_state, 4) >> layout->str_kind_bit;
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

/* Cuts long texts as the injected library does (python_read.c): a file keeps its end. */
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
		copy->is_exact = python_member(copy->bytes, 0, 8) == string.length;
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
	return python_member(copy->bytes, 0, 8) == size;
}

/*
 * Reads the code object at code->address: its identity, copies and texts. False if it is none.
 * *code_type is the type of code objects, or 0 before the first read.
 */
static bool python_code_read(struct python_code *code, const struct python_place *place,
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

/*
 * Whether the bytes that are now in the place of a copy mean the same. Hashes are computed later,
 * and strings are interned later: these do not change the text.
 */
static bool python_copy_is_current(const struct python_code_copy *copy, int kind,
				   const uint8_t *now, const struct python_layout *layout)
{
	size_t state_at = layout->str_state - layout->str_length;
	size_t text_at = layout->bytes_data - layout->bytes_size;
	uint32_t mask = STATE_MASK << layout->str_kind_bit;

	if (!copy->is_exact || memcmp(copy->bytes, now, 8) != 0)
		return false;
	if (kind != PYTHON_COPY_LINES) {
		if ((python_member(copy->bytes, state_at, 4) ^ python_member(now, state_at, 4)) &
		    mask)
			return false;
		text_at = layout->str_ascii_bytes - layout->str_length;
	}
	return !memcmp(copy->bytes + text_at, now + text_at, copy->byte_count - text_at);
}

static void python_code_free_copies(struct python_code *code)
{
	for (int i = 0; i < PYTHON_COPIES; i++) {
		free(code->copies[i].bytes);
		code->copies[i] = (struct python_code_copy){0};
	}
}

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

/* Begins a round. Code returned before may now be freed. */
static void python_codes_begin(struct python_codes *codes)
{
	if (codes->count >= CODES_MAX)
		free_codes(codes);
	codes->round++;
	codes->used_count = 0;
}

static struct python_code *add_code(struct python_codes *codes, uint64_t address)
{
	struct python_code *code;

	if (grow(codes->list, codes->capacity, codes->count + 1))
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

/* The code at an address, to be checked in this round. NULL: too many, or no memory. */
static struct python_code *python_codes_use(struct python_codes *codes, uint64_t address)
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
	    grow(codes->functions, codes->function_capacity, codes->function_count + 1))
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

/* Lists the parts that identify a code object. Returns their number. */
static uint32_t list_parts(const struct python_code *code, const struct python_layout *layout,
			   bool has_versions, struct process_memory_part *parts)
{
	uint32_t count = 0;

	parts[count++] = (struct process_memory_part){.from = code->address,
						      .bytes = python_identity_bytes(layout)};
	for (int i = 0; i < PYTHON_COPIES && !has_versions; i++)
		parts[count++] = (struct process_memory_part){.from = code->copies[i].from,
							      .bytes = code->copies[i].byte_count};
	return count;
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
			part_count += list_parts(list[i], &place->layout, has_versions,
						 &parts[part_count]);
	if (!part_count)
		return true;
	for (uint32_t p = 0; p < part_count; p++)
		bytes += parts[p].bytes;
	if (grow(codes->scratch, codes->scratch_bytes, bytes))
		return false;
	to = codes->scratch;
	for (uint32_t p = 0; p < part_count; p++) {
		parts[p].to = to;
		to += parts[p].bytes;
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

/*
 * Compares the code of this round with the process, and reads what is new or changed. False if
 * something is not what it should be: the chain changed, or the memory is not readable.
 */
static bool python_codes_check(struct python_codes *codes, const struct python_place *place,
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

/* The line of an instruction, at `offset` bytes from the first one. 0: none. */
static uint32_t python_code_line(struct python_code *code, const struct python_layout *layout,
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

static void python_codes_free(struct python_codes *codes)
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

#define REFRESH_NS	   10000000
#define PAUSE_MIN_NS	   12000
#define PAUSE_RANGE_NS	   16384 /* a power of two */
#define PAUSED_READS	   2
#define READS_MAX	   3 /* of a chain that changes while it is read */
#define OWNED_BY_GENERATOR 1

struct python_process {
	struct python_place place;
	struct python_states states;
	struct python_codes codes;
	struct python_frames frames;
	struct python_frames again; /* a later read, if the chain changed */
	struct python_code *link_codes[PYTHON_LINKS_MAX];
	uint32_t first_frames[PYTHON_LINKS_MAX]; /* number of frames inside of each link */
	uint64_t refreshed_ns;
	uint64_t random;
};

int python_process_open(struct python_process **out, pid_t pid,
			const struct process_modules *modules, char *why, size_t why_bytes)
{
	struct python_process *process = calloc(1, sizeof(*process));
	int rc;

	*out = NULL;
	if (!process)
		return -ENOMEM;
	rc = python_find_in(&process->place, pid, modules, why, why_bytes);
	if (rc) {
		free(process);
		return rc;
	}
	process->random = monotonic_ns() | 1;
	python_process_refresh(process);
	*out = process;
	return 0;
}

void python_process_close(struct python_process *process)
{
	if (!process)
		return;
	python_states_free(&process->states);
	python_codes_free(&process->codes);
	free(process);
}

const char *python_process_version(const struct python_process *process)
{
	return process->place.version;
}

const char *python_process_path(const struct python_process *process)
{
	return process->place.path;
}

void python_process_refresh(struct python_process *process)
{
	uint64_t now = monotonic_ns();

	if (now - process->refreshed_ns < REFRESH_NS)
		return;
	process->refreshed_ns = now;
	python_states_refresh(&process->states, &process->place);
}

/*
 * A thread that entered several interpreters has several states with frames. From 3.12 on, the one
 * in which it runs is marked; it then holds the lock of that interpreter. Otherwise none is chosen.
 */
static enum python_read choose_state(struct python_process *process, pid_t tid,
				     struct python_state *out)
{
	size_t count, with_frames = 0;
	const struct python_state *states = python_states_of(&process->states, tid, &count);
	struct python_start start;
	bool has_active = false;

	if (!states)
		return PYTHON_READ_NONE;
	*out = states[0];
	for (size_t i = 0; i < count && count > 1; i++) {
		if (!python_frames_start(&process->place, &states[i], &start))
			return PYTHON_READ_FAILED;
		if (!start.is_of_thread || !start.innermost || (has_active && !start.is_active))
			continue;
		with_frames += !start.is_active;
		has_active |= start.is_active;
		*out = states[i];
	}
	return with_frames > 1 && !has_active ? PYTHON_READ_FAILED : PYTHON_READ_OK;
}

/* Tells the processor that this thread spins. */
static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

/*
 * Spins for a random time: a thread in a loop must not be read at the same place of the loop both
 * times.
 */
static void pause_briefly(struct python_process *process)
{
	uint64_t end;

	process->random ^= process->random << 13;
	process->random ^= process->random >> 7;
	process->random ^= process->random << 17;
	end = monotonic_ns() + PAUSE_MIN_NS + (process->random & (PAUSE_RANGE_NS - 1));
	while (monotonic_ns() < end)
		relax();
}

static bool is_still_current(struct python_process *process, bool has_pause)
{
	for (int i = 0; has_pause && i < PAUSED_READS - 1; i++) {
		pause_briefly(process);
		if (!python_frames_are_current(&process->frames, &process->place))
			return false;
	}
	if (has_pause)
		pause_briefly(process);
	return python_frames_are_current(&process->frames, &process->place);
}

/* The instruction in bytes from the first one of its code. See python_walk.c. */
static bool instruction_offset(const struct python_place *place, const struct python_link *link,
			       uint64_t code, int64_t *out)
{
	const struct python_layout *layout = &place->layout;
	uint64_t first = code + layout->code_instructions, copies;

	if (layout->instruction_bytes) {
		*out = (int64_t)(int32_t)link->instruction * layout->instruction_bytes;
		return true;
	}
	if (layout->code_tlbc &&
	    (!process_memory_read(place->pid, &copies, code + layout->code_tlbc, sizeof(copies)) ||
	     !process_memory_read(place->pid, &first, copies + 8 + 8 * (uint64_t)link->tlbc_index,
				  sizeof(first))))
		return false;
	*out = (int64_t)(link->instruction - first);
	return true;
}

static uint64_t code_of(const struct python_link *link)
{
	return link->code & ~UINT64_C(3);
}

/* Resolves the code of the frames from `first` on. */
static bool resolve_codes(struct python_process *process, uint32_t first)
{
	const struct python_frames *frames = &process->frames;
	/* Versions are unique within one interpreter that is not started again. */
	bool has_versions = process->place.layout.code_version && process->place.is_program &&
			    process->states.interpreter_count == 1;

	python_codes_begin(&process->codes);
	for (uint32_t i = first; i < frames->count; i++) {
		const struct python_link *link = &frames->links[i];

		if (link->is_shim)
			continue;
		process->link_codes[i] = python_codes_use(&process->codes, code_of(link));
		if (!process->link_codes[i])
			return false;
	}
	return python_codes_check(&process->codes, &process->place, has_versions);
}

/* Adds a frame unless it is incomplete: python_walk.c has the reasons. */
static bool add_frame(struct python_process *process, uint32_t index, struct python_stack *out)
{
	const struct python_link *link = &process->frames.links[index];
	struct python_code *code = process->link_codes[index];
	const struct python_layout *layout = &process->place.layout;
	int64_t offset;

	if (!instruction_offset(&process->place, link, code->address, &offset))
		return false;
	if (layout->code_first_traceable && link->owner != OWNED_BY_GENERATOR &&
	    offset < (int64_t)code->identity.first_traceable * 2)
		return true;
	out->frames[out->frame_count++] = (struct python_frame_read){
		.function = code->function, .line = python_code_line(code, layout, offset)};
	return true;
}

/* Frames since `first` belong to the activation whose native frame contains the anchor. */
static void set_anchors(struct python_stack *out, uint32_t first, uint64_t anchor)
{
	for (uint32_t i = first; i < out->frame_count; i++)
		out->frames[i].anchor = anchor;
}

/* Fills in the frames from the link `first` on. */
static bool fill_stack(struct python_process *process, uint32_t first, struct python_stack *out)
{
	const struct python_frames *frames = &process->frames;
	uint32_t without_anchor = 0;

	if (!resolve_codes(process, first))
		return false;
	for (uint32_t i = first; i < frames->count; i++) {
		const struct python_link *link = &frames->links[i];

		process->first_frames[i] = out->frame_count;
		if (!link->is_shim && !add_frame(process, i, out))
			return false;
		if (!link->is_shim && !link->cframe)
			continue;
		set_anchors(out, without_anchor, link->is_shim ? link->address : link->cframe);
		without_anchor = out->frame_count;
	}
	set_anchors(out, without_anchor, 0);
	out->innermost = first ? 0 : frames->start.innermost;
	out->is_truncated = !frames->is_whole;
	out->time_ns = frames->time_ns;
	return true;
}

/* A read that follows a frame which ends meanwhile fails; the next one may not. */
static bool read_chain(struct python_process *process, const struct python_state *state,
		       struct python_frames *frames)
{
	for (int i = 0; i < READS_MAX; i++) {
		if (python_frames_read(frames, &process->place, state, XT_PYTHON_FRAMES_MAX))
			return true;
		if (!frames->start.is_of_thread)
			return false;
	}
	return false;
}

/* Removes the frames of the links before `first`. */
static void drop_inner(const struct python_process *process, uint32_t first,
		       struct python_stack *out)
{
	uint32_t dropped =
		first < process->frames.count ? process->first_frames[first] : out->frame_count;

	out->frame_count -= dropped;
	memmove(out->frames, out->frames + dropped, out->frame_count * sizeof(*out->frames));
}

/*
 * Reads the chain twice more. Frames at its outer end that are the same in all reads were alive all
 * the time, and so were their code objects.
 */
static void find_common_frames(struct python_process *process, const struct python_state *state,
			       struct python_stack *out)
{
	const struct python_frames *frames = &process->frames;
	uint32_t common, last;

	out->frame_count = 0;
	out->is_truncated = false;
	if (!frames->is_whole || !read_chain(process, state, &process->again))
		return;
	common = python_frames_common(frames, &process->again);
	if (!common || !fill_stack(process, frames->count - common, out) ||
	    !read_chain(process, state, &process->again)) {
		out->frame_count = 0;
		return;
	}
	last = python_frames_common(frames, &process->again);
	if (last < common)
		drop_inner(process, frames->count - last, out);
}

/* The first read may itself be torn between two moments. Then the next one is the first. */
static void keep_common_frames(struct python_process *process, const struct python_state *state,
			       struct python_stack *out)
{
	find_common_frames(process, state, out);
	for (int i = 1; i < READS_MAX && !out->frame_count; i++) {
		if (!read_chain(process, state, &process->frames))
			return;
		find_common_frames(process, state, out);
	}
}

enum python_read python_process_read(struct python_process *process, pid_t tid, bool has_pause,
				     struct python_stack *out)
{
	struct python_state state;
	enum python_read found;

	out->frame_count = 0;
	out->is_truncated = false;
	out->innermost = 0;
	found = choose_state(process, tid, &state);
	if (found == PYTHON_READ_NONE) {
		python_process_refresh(process);
		found = choose_state(process, tid, &state);
	}
	if (found != PYTHON_READ_OK)
		return found;
	if (!read_chain(process, &state, &process->frames)) {
		python_process_refresh(process);
		return process->frames.start.is_of_thread ? PYTHON_READ_CHANGED
							  : PYTHON_READ_FAILED;
	}
	if (!process->frames.count)
		return PYTHON_READ_NONE;
	if (!python_frames_note_time(&process->frames, &process->place)) {
		keep_common_frames(process, &state, out);
		return PYTHON_READ_CHANGED;
	}
	if (!fill_stack(process, 0, out)) {
		out->frame_count = 0;
		if (python_frames_are_current(&process->frames, &process->place))
			return PYTHON_READ_FAILED;
		keep_common_frames(process, &state, out);
		return PYTHON_READ_CHANGED;
	}
	if (!is_still_current(process, has_pause)) {
		keep_common_frames(process, &state, out);
		return PYTHON_READ_CHANGED;
	}
	return out->frame_count ? PYTHON_READ_OK : PYTHON_READ_NONE;
}

const struct python_function *python_process_function(const struct python_process *process,
						      uint32_t function)
{
	return function < process->codes.function_count ? process->codes.functions[function] : NULL;
}

bool python_process_is_gil(const struct python_process *process, uint64_t futex_address)
{
	return python_states_is_gil(&process->states, &process->place, futex_address);
}

pid_t python_process_gil_holder(const struct python_process *process)
{
	return python_states_gil_holder(&process->states, &process->place);
}

bool python_process_is_loop(const struct python_process *process, uint64_t address)
{
	const struct python_place *place = &process->place;

	return (address > place->loop_start && address <= place->loop_end) ||
	       (address > place->cold_start && address <= place->cold_end);
}
