/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a code object and its texts from another process. Sampler thread only.
 */
#ifndef XT_SAMPLER_PYTHON_CODE_READ_H
#define XT_SAMPLER_PYTHON_CODE_READ_H

#include "sampler/python_code.h"

#define PYTHON_IDENTITY_BYTES_MAX 512
#define PYTHON_NAME_MAX		  1024 /* bytes of UTF-8 */
#define PYTHON_FILE_MAX		  4096

struct python_code_texts {
	char name[PYTHON_NAME_MAX + 1], file[PYTHON_FILE_MAX + 1];
	size_t name_bytes, file_bytes;
};

/* How many bytes of a code object, from its start, its identity is read from. */
size_t python_identity_bytes(const struct python_layout *layout);
void python_identity_fill(struct python_code_identity *out, const uint8_t *bytes,
			  const struct python_layout *layout);

/*
 * Reads the code object at code->address: its identity, copies and texts. False if it is none.
 * *code_type is the type of code objects, or 0 before the first read.
 */
bool python_code_read(struct python_code *code, const struct python_place *place,
		      uint64_t *code_type, struct python_code_texts *texts);

/* Whether the bytes that are now in the place of a copy mean the same. */
bool python_copy_is_current(const struct python_code_copy *copy, int kind, const uint8_t *now,
			    const struct python_layout *layout);

void python_code_free_copies(struct python_code *code);

#endif
