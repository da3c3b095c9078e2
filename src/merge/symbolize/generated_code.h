/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the Python code that torch.compile generates: which lines call a kernel, and what the
 * comments before them tell about its source.
 */
#ifndef XT_MERGE_GENERATED_CODE_H
#define XT_MERGE_GENERATED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GENERATED_TEXT_BYTES 512

/* Zeros are the start of a file. */
struct generated_code {
	uint32_t line;			   /* number of the current line, from 1 */
	char handle[GENERATED_TEXT_BYTES]; /* "extern_kernels.addmm:2"; "": none */
	char nodes[GENERATED_TEXT_BYTES];  /* "linear, gelu"; "": none */
	unsigned lines_left;		   /* in which the call of these comments may follow */
};

/*
 * Returns whether the path is that of a file in the cache of torch.compile. Such a name begins with
 * 'c' and a hash. Its folder has the first two characters of the hash.
 */
bool generated_code_is_file(const char *path);

/*
 * Reads the next line, without its newline. Returns whether it is the call of a kernel. handle and
 * nodes then describe this call.
 */
bool generated_code_next(struct generated_code *code, const char *text, size_t length);

#endif
