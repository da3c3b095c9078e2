/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log chunk by chunk, in one pass and in bounded memory.
 *
 * The reader trusts no byte. For any content of the file, it returns intact chunks, counts what it
 * skips, and never reads outside its buffers. It needs no other module and no CUDA. One thread at a
 * time may use a reader; several readers may run at once.
 */
#ifndef XTRACE_READER_H
#define XTRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

#define XT_PURE __attribute__((pure))

struct xt_reader;

struct xt_bytes {
	const char *data; /* not terminated; NULL only if length is 0 */
	size_t length;
};

/* Damage found so far. */
struct xt_damage {
	uint64_t chunks_read;
	uint64_t chunks_damaged;		 /* intact header, damaged contents */
	uint64_t damaged_by_kind[XT_KIND_COUNT]; /* of the kinds that this reader knows */
	uint64_t chunks_missing;		 /* gaps in the sequence */
	uint64_t chunks_unknown;		 /* of unknown kinds: skipped, no damage */
	uint64_t bytes_skipped;			 /* outside intact chunks */
	bool truncated;				 /* the file ends inside a chunk */
	bool closed;				 /* the last intact chunk is XT_KIND_END */
	bool lacks_memory;			 /* some of the damage may be none */
};

enum xt_open_error {
	XT_OPEN_OK = 0,
	XT_OPEN_ERRNO,	    /* the file cannot be read: see errno */
	XT_OPEN_EMPTY,	    /* 0 bytes: the process ended before it wrote the header */
	XT_OPEN_NOT_A_LOG,  /* no magic, or shorter than a header */
	XT_OPEN_NEWER,	    /* written by a newer major version */
	XT_OPEN_BAD_HEADER, /* the magic is right, the rest is damaged */
	XT_OPEN_BYTE_ORDER, /* written on a processor of the other byte order */
	XT_OPEN_MACHINE,    /* of a processor that is not in enum xt_machine */
};

/*
 * Opens the log at path. On success, close *reader_out with xt_reader_close(). On an error
 * *reader_out is NULL.
 */
enum xt_open_error xt_reader_open(const char *path, struct xt_reader **reader_out);

/* Opens a log in memory, which must outlive the reader. For tests and fuzzing. */
enum xt_open_error xt_reader_open_memory(const void *data, size_t data_bytes,
					 struct xt_reader **reader_out);

/* Accepts NULL. */
void xt_reader_close(struct xt_reader *reader);

const struct xt_log_header *xt_reader_header(const struct xt_reader *reader);
const struct xt_damage *xt_reader_damage(const struct xt_reader *reader);

/*
 * A decoded chunk. It and the results of its accessors are valid until the next xt_reader_next() or
 * xt_reader_close().
 */
struct xt_chunk;

/*
 * The next intact chunk of a known kind, or NULL at the end of the file. If wanted_kinds is not 0,
 * skips chunks whose bit (1 << kind) is not set, without unpacking or checking them.
 */
const struct xt_chunk *xt_reader_next(struct xt_reader *reader, uint32_t wanted_kinds);

/*
 * Like xt_reader_next(), but decodes into the caller's chunk. It stays valid until it is reused or
 * freed, so one thread can unpack chunks while another uses them. False at the end of the file; the
 * chunk is then empty.
 */
struct xt_chunk *xt_chunk_new(void);	    /* NULL if out of memory */
void xt_chunk_free(struct xt_chunk *chunk); /* accepts NULL */
bool xt_reader_read(struct xt_reader *reader, uint32_t wanted_kinds, struct xt_chunk *chunk);

/*
 * The three steps of xt_reader_read(), so that several threads can decode the chunks of one log:
 * 1. Fetch a chunk, under a lock.
 * 2. Decode it, on any thread. xt_chunk_decode() returns false if it is damaged: skip it then.
 * 3. Count it, under the same lock, in the order of the log.
 */
bool xt_reader_fetch(struct xt_reader *reader, uint32_t wanted_kinds, struct xt_chunk *chunk);
bool xt_chunk_decode(struct xt_chunk *chunk);
void xt_reader_count(struct xt_reader *reader, const struct xt_chunk *chunk, bool is_intact);

/*
 * Like xt_chunk_decode(), for chunks that another thread uses: packs scalar columns, because moving
 * columns between the caches of processors takes longer than packing them. Read them with
 * xt_chunk_block() only. Each decoding thread has a scratch of its own.
 */
struct xt_scratch;
struct xt_scratch *xt_scratch_new(void);	  /* NULL if out of memory */
void xt_scratch_free(struct xt_scratch *scratch); /* accepts NULL */
bool xt_chunk_decode_packed(struct xt_chunk *chunk, struct xt_scratch *scratch);

/*
 * Continues at the end of a log that is still being written: the next read returns the chunks that
 * were appended since. False if there is no way to continue: the file is shorter than what was
 * read, or reading was refused.
 */
bool xt_reader_follow(struct xt_reader *reader);

/*
 * Ends a log that is still being written at an offset from xt_reader_position(), between two reads.
 * Call it before the first read. 0: at the end of the file.
 */
void xt_reader_cut(struct xt_reader *reader, uint64_t end_offset);

/*
 * True if reading stopped because the log expands beyond the limits of
 * docs/internals/LOG_FORMAT.md. Writes the reason to `why`, for a message. XTRACE_LOG_LIMITS=0 in
 * the environment removes the limits.
 */
#define XT_REFUSAL_BYTES 256
bool xt_reader_refused(const struct xt_reader *reader, char why[XT_REFUSAL_BYTES]);

/* Rows of work, calls and clocks in all chunks so far, unpacked or not. */
uint64_t xt_reader_event_rows(const struct xt_reader *reader);

/* The reader's progress: bytes read, and bytes in total. */
void xt_reader_position(const struct xt_reader *reader, uint64_t *done_bytes,
			uint64_t *total_bytes);

XT_PURE enum xt_kind xt_chunk_kind(const struct xt_chunk *chunk);
XT_PURE uint32_t xt_chunk_rows(const struct xt_chunk *chunk);

/*
 * A scalar column as xt_chunk_rows() values. Never NULL: a column that the chunk lacks, because an
 * older version wrote it, is all zeros.
 */
XT_PURE const uint64_t *xt_chunk_u64(const struct xt_chunk *chunk, unsigned column);

/*
 * Up to XT_BLOCK_ROWS values of a scalar column, from a row that is a multiple of XT_BLOCK_ROWS on.
 * Returns them, either in the chunk or unpacked to `buffer`.
 */
#define XT_BLOCK_ROWS 256
const uint64_t *xt_chunk_block(const struct xt_chunk *chunk, unsigned column, uint32_t row,
			       uint64_t buffer[XT_BLOCK_ROWS]);

/* True if all rows of a scalar column are stored as one 0, or the chunk lacks the column. */
XT_PURE bool xt_chunk_is_zero(const struct xt_chunk *chunk, unsigned column);

/* One row of a bytes column; empty if the chunk lacks that column. */
XT_PURE struct xt_bytes xt_chunk_bytes(const struct xt_chunk *chunk, unsigned column, uint32_t row);

/* One row of a list column; *length_out is 0 if the chunk lacks that column. */
const uint64_t *xt_chunk_list(const struct xt_chunk *chunk, unsigned column, uint32_t row,
			      uint32_t *length_out);

#endif
