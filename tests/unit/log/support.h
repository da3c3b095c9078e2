/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of the log: cmocka, files, random numbers with a seed, and logs built by hand
 * with any error.
 */
#ifndef XT_TEST_LOG_SUPPORT_H
#define XT_TEST_LOG_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>

#include "xtrace/log_format.h"
#include "xtrace/reader.h"

/* A growing block of memory. The test frees data. */
struct blob {
	uint8_t *data;
	size_t bytes;
	size_t capacity;
};

void blob_put(struct blob *blob, const void *data, size_t bytes);
void blob_free(struct blob *blob);

/* A temporary directory, and a path in it (valid until the next call). */
const char *test_dir(void);
const char *test_path(const char *name);
/* cmocka group teardown: removes the directory. */
int test_dir_remove(void **state);

struct blob file_read(const char *path);
void file_write(const char *path, const void *data, size_t bytes);

/* A fixed seed, or XT_TEST_SEED. Prints it. */
uint64_t test_seed(void);
/* SplitMix64. */
uint64_t random_next(uint64_t *state);
/* A value with a random number of bits, so that all lengths of LEB128 occur. */
uint64_t random_value(uint64_t *state);

/* Logs built by hand. */
struct column {
	uint8_t number;
	uint8_t encoding;
	const void *data;
	uint32_t data_bytes;
};
void craft_log_header(struct blob *log);
/* Compresses content into one zstd frame, as the format requires. */
void craft_chunk(struct blob *log, unsigned kind, uint32_t sequence, uint32_t row_count,
		 const void *content, size_t content_bytes);
/* Stores the bytes as they are, with any raw_bytes. */
void craft_chunk_stored(struct blob *log, unsigned kind, uint32_t sequence, uint32_t row_count,
			uint32_t raw_bytes, const void *stored, size_t stored_bytes);
void craft_column(struct blob *content, const struct column *column);

/* A CLOCK chunk of one row (value, value): the intact neighbour of a damaged chunk. */
void craft_clock(struct blob *log, uint32_t sequence, uint64_t value);

struct xt_reader *open_blob(const struct blob *log);
/* Expects that CLOCK chunk as the next chunk. */
void expect_clock(struct xt_reader *reader, uint64_t value);

#endif
