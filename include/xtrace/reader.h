/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a log, chunk by chunk, in one pass and in bounded memory.
 *
 * The reader treats every byte as hostile: whatever the file holds, it returns intact chunks,
 * counts what it had to skip, and never reads outside its buffers. It needs no other room of the
 * house and no CUDA. One reader belongs to one thread at a time; several readers may run at once.
 */
#ifndef XTRACE_READER_H
#define XTRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

struct xt_reader;

struct xt_bytes {
	const char *data; /* not terminated; NULL only if length is 0 */
	size_t length;
};

/* What was wrong with the file, as far as it has been read. */
struct xt_damage {
	uint64_t chunks_read;
	uint64_t chunks_damaged;		 /* header intact, content not */
	uint64_t damaged_by_kind[XT_KIND_COUNT]; /* … of the kinds that this reader knows */
	uint64_t chunks_missing;		 /* gaps in the sequence */
	uint64_t chunks_unknown; /* of kinds this reader does not know: skipped, not damage */
	uint64_t bytes_skipped;	 /* outside intact chunks */
	bool truncated;		 /* the file ends inside a chunk */
	bool closed;		 /* the last intact chunk is XT_KIND_END */
};

enum xt_open_error {
	XT_OPEN_OK = 0,
	XT_OPEN_ERRNO,	    /* the file could not be read: see errno */
	XT_OPEN_EMPTY,	    /* no byte: its process ended before it wrote the header */
	XT_OPEN_NOT_A_LOG,  /* no magic, or shorter than a header */
	XT_OPEN_NEWER,	    /* written by a newer major version */
	XT_OPEN_BAD_HEADER, /* the magic is right, the rest of the header is damaged */
};

/*
 * Opens the log at path. On success *reader_out is to be closed with xt_reader_close().
 * Otherwise *reader_out is NULL, the error is returned, and nothing is to be closed.
 */
enum xt_open_error xt_reader_open(const char *path, struct xt_reader **reader_out);

/* As xt_reader_open(), over memory that must outlive the reader. For tests and fuzzing. */
enum xt_open_error xt_reader_open_memory(const void *data, size_t data_bytes,
					 struct xt_reader **reader_out);

/* Accepts NULL. */
void xt_reader_close(struct xt_reader *reader);

const struct xt_log_header *xt_reader_header(const struct xt_reader *reader);
const struct xt_damage *xt_reader_damage(const struct xt_reader *reader);

/* A decoded chunk. It, and all that its accessors return, is valid until the next call of
 * xt_reader_next() or xt_reader_close(). */
struct xt_chunk;

/*
 * The next intact chunk of a known kind, or NULL at the end of the file. If wanted_kinds is not
 * 0, chunks whose bit (1 << kind) is not in it are passed over without being unpacked (their
 * content is not checked then).
 */
const struct xt_chunk *xt_reader_next(struct xt_reader *reader, uint32_t wanted_kinds);

/*
 * As xt_reader_next(), but into a chunk of the caller's, which stays valid until it is read into again
 * or freed: chunks can be unpacked by one thread while others are used by another. False at the
 * end of the file; the chunk then holds nothing.
 */
struct xt_chunk *xt_chunk_new(void);	    /* NULL if memory ran out */
void xt_chunk_free(struct xt_chunk *chunk); /* accepts NULL */
bool xt_reader_read(struct xt_reader *reader, uint32_t wanted_kinds, struct xt_chunk *chunk);

/*
 * True if reading ended because the log expands beyond the limits of docs/internals/LOG_FORMAT.md. The rest
 * of the file was not read. Writes the reason to why, for an error message. XTRACE_LOG_LIMITS=0 in
 * the environment lifts the limits.
 */
#define XT_REFUSAL_BYTES 256
bool xt_reader_refused(const struct xt_reader *reader, char why[XT_REFUSAL_BYTES]);

/* Rows of work, calls and clocks in all chunks that were passed so far, unpacked or not. */
uint64_t xt_reader_event_rows(const struct xt_reader *reader);

/* How far into the file the reader is, for progress bars: bytes read and bytes in all. */
void xt_reader_position(const struct xt_reader *reader, uint64_t *done_bytes,
			uint64_t *total_bytes);

enum xt_kind xt_chunk_kind(const struct xt_chunk *chunk);
uint32_t xt_chunk_rows(const struct xt_chunk *chunk);

/*
 * A scalar column as xt_chunk_rows() values. Never NULL: a column that the chunk does not have,
 * as an older writer would leave it out, is all zeros.
 */
const uint64_t *xt_chunk_u64(const struct xt_chunk *chunk, unsigned column);

/* One row of a bytes column; empty if the chunk does not have that column. */
struct xt_bytes xt_chunk_bytes(const struct xt_chunk *chunk, unsigned column, uint32_t row);

/* One row of a list column; *length_out is 0 if the chunk does not have that column. */
const uint64_t *xt_chunk_list(const struct xt_chunk *chunk, unsigned column, uint32_t row,
			      uint32_t *length_out);

#endif
