/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share: bytes to take values from, and a folder for files. One thread.
 *
 * A target is a file with LLVMFuzzerTestOneInput(). tools/fuzz.sh builds it with clang's fuzzer and
 * sanitizers and lets it run; every build links it with replay.c, which feeds it the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; whatever the bytes are, it neither crashes nor hangs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct feed {
	const uint8_t *at, *end;
};

/* 0 when nothing is left. */
uint64_t feed_number(struct feed *feed); /* LEB128 */
uint8_t feed_byte(struct feed *feed);

/* As many of the next bytes as there are, and at most that many, in *bytes_out. */
const uint8_t *feed_bytes(struct feed *feed, size_t most, size_t *bytes_out);

/* A path in a folder of this process's own, which goes when it ends. Valid for ever. */
const char *fuzz_path(const char *name);

/* Makes the file that the path names anew. */
void fuzz_write_file(const char *path, const void *data, size_t bytes);

/*
 * A log of rows: for each its kind (a byte), then its columns in order, as a number, a length and
 * bytes, or a length and numbers. Rows of one kind that follow each other are one chunk.
 */
void fuzz_write_log(const char *path, struct feed *feed);

#endif
