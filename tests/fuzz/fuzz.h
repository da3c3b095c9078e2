/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the fuzz targets: values from the input, and temporary files. One thread.
 *
 * A target is a file with LLVMFuzzerTestOneInput(). tools/fuzz.sh builds it with clang's fuzzer and
 * sanitizers and runs it. Other builds link it with replay.c, which feeds it the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

struct xt_table;

/* Must neither crash nor hang for any input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct feed {
	const uint8_t *at, *end;
};

/* Take values from the input. They return 0 at its end. */
uint64_t feed_number(struct feed *feed); /* LEB128 */
uint8_t feed_byte(struct feed *feed);

/* Takes up to most bytes from the input. *bytes_out is their number. */
const uint8_t *feed_bytes(struct feed *feed, size_t most, size_t *bytes_out);

/*
 * Returns a path in a folder of this process, which is deleted at exit. The string is never freed.
 */
const char *fuzz_path(const char *name);

/* Creates or replaces the file at path. */
void fuzz_write_file(const char *path, const void *data, size_t bytes);

/*
 * Writes a log from the input. Each row is its kind (a byte), then its columns in order: a number,
 * a length and bytes, or a length and numbers. Adjacent rows of one kind become one chunk.
 */
void fuzz_write_log(const char *path, struct feed *feed);

/* The same, as a CPU log. */
void fuzz_write_cpu_log(const char *path, struct feed *feed);

/* Adds a row with the columns of such a log to a table with room for it. */
void fuzz_put_row(struct xt_table *table, struct feed *feed);

#endif
