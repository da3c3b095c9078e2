/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, files and lines of the code objects of another process. A code object may be freed and
 * another one allocated at its address, so each is compared again whenever it is used. Sampler
 * thread only.
 */
#ifndef XT_SAMPLER_PYTHON_CODE_H
#define XT_SAMPLER_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "log/base/interner.h"
#include "sampler/python_find.h"
#include "sampler/python_process.h"

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
	struct python_code **list; /* owned */
	size_t count, capacity;
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

/* Begins a round. Code returned before may now be freed. */
void python_codes_begin(struct python_codes *codes);

/* The code at an address, to be checked in this round. NULL: too many, or no memory. */
struct python_code *python_codes_use(struct python_codes *codes, uint64_t address);

/*
 * Compares the code of this round with the process, and reads what is new or changed. False if
 * something is not what it should be: the chain changed, or the memory is not readable.
 */
bool python_codes_check(struct python_codes *codes, const struct python_place *place,
			bool has_versions);

/* The line of an instruction, at `offset` bytes from the first one. 0: none. */
uint32_t python_code_line(struct python_code *code, const struct python_layout *layout,
			  int64_t offset);

void python_codes_free(struct python_codes *codes);

#endif
