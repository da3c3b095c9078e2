/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the log reader. The first byte selects how to read the rest:
 * - as a whole file, or
 * - as the content of chunks (kind, rows, length, bytes), which are then compressed and numbered
 *   correctly.
 * Each log is read twice, the second time with packed columns. Both must find the same values.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fuzz.h"
#include "log/base/table.h"
#include "xtrace/reader.h"

#define FILE_BYTES_MAX (1u << 20)

static uint64_t seen; /* a sum of all values */

static void look_at_scalars(const struct xt_chunk *chunk, unsigned column)
{
	uint64_t buffer[XT_BLOCK_ROWS];

	for (uint32_t from = 0; from < xt_chunk_rows(chunk); from += XT_BLOCK_ROWS) {
		const uint64_t *block = xt_chunk_block(chunk, column, from, buffer);

		for (uint32_t i = 0; i < XT_BLOCK_ROWS && from + i < xt_chunk_rows(chunk); i++)
			seen += block[i] * (from + i + 1);
	}
}

static void look_at(const struct xt_chunk *chunk)
{
	const struct xt_kind_spec *spec;

	if (xt_chunk_kind(chunk) >= XT_KIND_COUNT)
		return;
	spec = &xt_kind_specs[xt_chunk_kind(chunk)];
	for (unsigned column = 1; column < XT_TABLE_COLUMNS_MAX; column++) {
		uint8_t encoding = spec->columns[column].encoding;

		if (encoding && encoding != XT_ENC_BYTES && encoding != XT_ENC_LIST) {
			look_at_scalars(chunk, column);
			continue;
		}
		for (uint32_t row = 0; encoding && row < xt_chunk_rows(chunk); row++) {
			if (encoding == XT_ENC_BYTES) {
				struct xt_bytes text = xt_chunk_bytes(chunk, column, row);

				for (size_t i = 0; i < text.length; i++)
					seen += ((const uint8_t *)text.data)[i];
			} else {
				uint32_t length;
				const uint64_t *list = xt_chunk_list(chunk, column, row, &length);

				for (uint32_t i = 0; i < length; i++)
					seen += list[i];
			}
		}
	}
}

/* Returns the sum of all values. scratch: pack columns; else NULL. */
static uint64_t read_once(const uint8_t *data, size_t bytes, struct xt_scratch *scratch)
{
	struct xt_chunk *chunk = xt_chunk_new();
	struct xt_reader *reader;
	bool is_intact;

	seen = 0;
	if (xt_reader_open_memory(data, bytes, &reader) != XT_OPEN_OK) {
		xt_chunk_free(chunk);
		return seen;
	}
	while (xt_reader_fetch(reader, 0, chunk)) {
		is_intact =
			scratch ? xt_chunk_decode_packed(chunk, scratch) : xt_chunk_decode(chunk);
		xt_reader_count(reader, chunk, is_intact);
		if (is_intact)
			look_at(chunk);
	}
	seen += xt_reader_damage(reader)->bytes_skipped;
	xt_reader_close(reader);
	xt_chunk_free(chunk);
	return seen;
}

static void read_all(const uint8_t *data, size_t bytes)
{
	struct xt_scratch *scratch = xt_scratch_new();

	if (scratch && read_once(data, bytes, NULL) != read_once(data, bytes, scratch))
		abort();
	xt_scratch_free(scratch);
}

static size_t put_chunk(uint8_t *out, size_t room, struct feed *feed, uint32_t sequence)
{
	struct xt_chunk_header header = {.magic = XT_CHUNK_MAGIC, .sequence = sequence};
	static ZSTD_CCtx *packer;
	const uint8_t *content;
	size_t content_bytes, stored;

	header.kind = feed_byte(feed);
	header.row_count = (uint32_t)feed_number(feed);
	content = feed_bytes(feed, feed_number(feed) % 65536, &content_bytes);
	if (!packer) {
		packer = ZSTD_createCCtx();
		ZSTD_CCtx_setParameter(packer, ZSTD_c_checksumFlag, 1);
	}
	if (room < sizeof(header) + ZSTD_compressBound(content_bytes))
		return 0;
	stored = ZSTD_compress2(packer, out + sizeof(header), room - sizeof(header), content,
				content_bytes);
	if (ZSTD_isError(stored))
		return 0;
	header.stored_bytes = (uint32_t)stored;
	header.raw_bytes = (uint32_t)content_bytes;
	header.check = xt_check32(&header, offsetof(struct xt_chunk_header, check));
	memcpy(out, &header, sizeof(header));
	return sizeof(header) + stored;
}

static void read_packed(struct feed *feed)
{
	struct xt_log_header header = {.version_major = XT_LOG_VERSION_MAJOR,
				       .byte_order = XT_LOG_BYTE_ORDER,
				       .header_bytes = sizeof(header)};
	static uint8_t file[FILE_BYTES_MAX];
	size_t bytes = sizeof(header), added = 1;
	uint8_t *exact;

	memcpy(header.magic, XT_LOG_MAGIC, sizeof(header.magic));
	header.check = xt_check32(&header, offsetof(struct xt_log_header, check));
	memcpy(file, &header, sizeof(header));
	for (uint32_t sequence = 0; feed->at < feed->end && added; sequence++) {
		added = put_chunk(file + bytes, sizeof(file) - bytes, feed, sequence);
		bytes += added;
	}
	exact = malloc(bytes);
	if (exact)
		read_all(memcpy(exact, file, bytes), bytes);
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct feed feed = {data, data + bytes};

	if (!bytes)
		return 0;
	if (feed_byte(&feed) % 2)
		read_packed(&feed);
	else
		read_all(data + 1, bytes - 1);
	return 0;
}
