/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking one chunk: zstd frame to columns of 64-bit values. The buffers of struct xt_chunk
 * are used again for the next chunk and only ever grow, up to what the format's limits allow.
 */
#ifndef XT_LOG_DECODE_H
#define XT_LOG_DECODE_H

#include "log/write/table.h"
#include "xtrace/reader.h"

/* The largest frame that a chunk within the limits can need: zstd's bound for 16 MiB. */
#define XT_CHUNK_STORED_BYTES_MAX (XT_CHUNK_RAW_BYTES_MAX + (XT_CHUNK_RAW_BYTES_MAX >> 8) + 64)

struct xt_chunk_column {
	bool present;
	uint64_t *values; /* scalars, or the elements of all lists */
	size_t values_capacity;
	uint32_t *offsets; /* rows + 1 of them: where each text or list begins and ends */
	size_t offsets_capacity;
	const uint8_t *content; /* the bytes of all rows, inside raw */
	uint64_t filled_value;	/* values[0 .. filled_count) are all this: CONST again is free */
	size_t filled_count;
};

struct xt_chunk {
	enum xt_kind kind;
	uint32_t row_count;
	uint8_t *raw; /* the content of the frame */
	size_t raw_capacity;
	uint64_t *zeros; /* for columns that are not there */
	size_t zeros_count;
	struct ZSTD_DCtx_s *dctx;
	struct xt_chunk_column columns[XT_TABLE_COLUMNS_MAX];
};

/*
 * Unpacks the content of a chunk of a known kind, whose header has been checked. stored is its
 * zstd frame, header->stored_bytes long. 0, -EBADMSG if the content is damaged, -ENOMEM.
 * Afterwards chunk is as the accessors in xtrace/reader.h want it; on an error it is unusable
 * until the next success.
 */
int xt_chunk_unpack(struct xt_chunk *chunk, const struct xt_chunk_header *header,
		    const uint8_t *stored);

/* Frees the buffers, not the chunk itself. */
void xt_chunk_release(struct xt_chunk *chunk);

#endif
