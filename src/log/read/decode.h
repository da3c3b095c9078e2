/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the reader.
 *
 * Decodes one chunk: from a zstd frame to columns of 64-bit values. The buffers of struct xt_chunk
 * are reused for the next chunk. They grow up to the limits of the format.
 *
 * Packed columns have as few bytes as their values differ in. Chunks that another thread reads are
 * kept so: moving columns between the caches of processors takes longer than packing them. Rows are
 * packed in blocks. A block has the bits that its values share, and the low bytes of each value.
 */
#ifndef XT_LOG_DECODE_H
#define XT_LOG_DECODE_H

#include "log/base/table.h"
#include "xtrace/reader.h"

/* The largest frame of a valid chunk: zstd's compression bound for 16 MiB. */
#define XT_CHUNK_STORED_BYTES_MAX (XT_CHUNK_RAW_BYTES_MAX + (XT_CHUNK_RAW_BYTES_MAX >> 8) + 64)

struct xt_packed_block {
	uint64_t shared; /* bits that all values have; their low bytes are 0 */
	uint32_t offset; /* in bytes */
	uint8_t width;	 /* low bytes of a value: 0, 1, 2, 4 or 8 */
};

struct xt_packed_column {
	struct xt_packed_block *blocks;
	uint8_t *bytes;
	size_t row_capacity;
};

/* Returns 0 or -ENOMEM. Replaces what the column had. */
int xt_packed_column_fill(struct xt_packed_column *column, const uint64_t *values, size_t count);

/* The same for a column whose values are all equal. */
int xt_packed_column_fill_one(struct xt_packed_column *column, uint64_t value, size_t count);

/* Unpacks the first `count` values of a block; at most XT_BLOCK_ROWS. */
void xt_packed_column_block(const struct xt_packed_column *column, size_t block, size_t count,
			    uint64_t *out);

void xt_packed_column_free(struct xt_packed_column *column);

struct xt_chunk_column {
	bool present;
	bool is_zero;	  /* all rows are 0; values is then unused */
	uint64_t *values; /* scalars, or the elements of all lists */
	size_t values_capacity;
	uint32_t *offsets; /* rows + 1 offsets: where each text or list begins and ends */
	size_t offsets_capacity;
	const uint8_t *content;		/* the bytes of all rows, inside raw */
	struct xt_packed_column packed; /* instead of values, in a packed chunk */
	/* values[0 .. filled_count) have filled_value, so an equal CONST column costs nothing */
	uint64_t filled_value;
	size_t filled_count;
};

/* The buffers of a thread that decodes packed chunks, instead of those of the chunk. */
struct xt_scratch {
	uint8_t *raw;
	size_t raw_capacity;
	uint64_t *values; /* of one column */
	size_t values_capacity;
	struct ZSTD_DCtx_s *dctx;
};

struct xt_chunk {
	struct xt_chunk_header header;
	uint64_t end_offset; /* in the log */
	uint8_t *stored;     /* used only by xt_reader_fetch() */
	size_t stored_capacity;
	uint8_t *raw; /* the content of the frame */
	size_t raw_capacity;
	uint64_t *zeros; /* for missing columns */
	size_t zeros_count;
	struct ZSTD_DCtx_s *dctx;
	struct xt_scratch *scratch; /* while a packed chunk is decoded */
	bool is_packed;
	bool lacks_memory; /* to decode it: it may be intact */
	struct xt_chunk_column columns[XT_TABLE_COLUMNS_MAX];
};

/*
 * Decodes the content of a chunk whose header is set and was checked, and whose kind is known.
 * `stored` is its zstd frame, header.stored_bytes long. Returns 0, -EBADMSG if the content is
 * damaged, or -ENOMEM. On success the accessors in xtrace/reader.h work. On an error the chunk is
 * unusable until the next success.
 */
int xt_chunk_unpack(struct xt_chunk *chunk, const uint8_t *stored);

/* Keeps a copy of the frame for xt_chunk_decode(). Returns 0 or -ENOMEM. */
int xt_chunk_store(struct xt_chunk *chunk, const uint8_t *stored);

/* Frees the buffers, not the chunk itself. */
void xt_chunk_release(struct xt_chunk *chunk);

/* For the writer, which appends to a log. */
struct xt_log_tail {
	uint64_t end_offset; /* end of the last intact chunk, or of the header */
	uint32_t sequence;   /* number of the next chunk; leaves a gap if a torn tail is cut off */
	uint32_t intact_sequence; /* the same without a gap */
};

/* Like xt_reader_open(), but the caller keeps owning fd. */
enum xt_open_error xt_reader_open_fd(int fd, struct xt_reader **reader_out);

/* Where to append. Read to the end with wanted_kinds 0 first. */
struct xt_log_tail xt_reader_tail(const struct xt_reader *reader);

#endif
