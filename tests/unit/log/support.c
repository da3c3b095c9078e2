/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "log/base/varint.h"

void blob_put(struct blob *blob, const void *data, size_t bytes)
{
	if (blob->bytes + bytes > blob->capacity) {
		blob->capacity = (blob->bytes + bytes) * 2;
		blob->data = realloc(blob->data, blob->capacity);
		assert_non_null(blob->data);
	}
	if (bytes)
		memcpy(blob->data + blob->bytes, data, bytes);
	blob->bytes += bytes;
}

void blob_free(struct blob *blob)
{
	free(blob->data);
	*blob = (struct blob){0};
}

static char directory[512];

const char *test_dir(void)
{
	const char *base = getenv("TMPDIR");

	if (!directory[0]) {
		snprintf(directory, sizeof(directory), "%s/xtrace-test.XXXXXX",
			 base ? base : "/tmp");
		assert_non_null(mkdtemp(directory));
	}
	return directory;
}

const char *test_path(const char *name)
{
	static char path[sizeof(directory) + 128];

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	return path;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)type;
	(void)at;
	return remove(path);
}

int test_dir_remove(void **state)
{
	(void)state;
	if (directory[0])
		nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	directory[0] = 0;
	return 0;
}

struct blob file_read(const char *path)
{
	struct blob blob = {0};
	uint8_t block[65536];
	size_t got;
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	while ((got = fread(block, 1, sizeof(block), file)) > 0)
		blob_put(&blob, block, got);
	assert_false(ferror(file));
	fclose(file);
	return blob;
}

void file_write(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

uint64_t test_seed(void)
{
	const char *text = getenv("XT_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 20240607;

	print_message("XT_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t random_value(uint64_t *state)
{
	return random_next(state) >> (random_next(state) % 64);
}

void craft_log_header(struct blob *log)
{
	struct xt_log_header header = {
		.version_major = XT_LOG_VERSION_MAJOR,
		.version_minor = XT_LOG_VERSION_MINOR,
		.byte_order = XT_LOG_BYTE_ORDER,
		.header_bytes = sizeof(header),
		.pid = 4711,
		.clock = XT_CLOCK_MONOTONIC,
	};

	memcpy(header.magic, XT_LOG_MAGIC, sizeof(header.magic));
	header.check = xt_check32(&header, offsetof(struct xt_log_header, check));
	blob_put(log, &header, sizeof(header));
}

void craft_chunk_stored(struct blob *log, unsigned kind, uint32_t sequence, uint32_t row_count,
			uint32_t raw_bytes, const void *stored, size_t stored_bytes)
{
	struct xt_chunk_header header = {
		.magic = XT_CHUNK_MAGIC,
		.kind = (uint16_t)kind,
		.stored_bytes = (uint32_t)stored_bytes,
		.raw_bytes = raw_bytes,
		.row_count = row_count,
		.sequence = sequence,
	};

	header.check = xt_check32(&header, offsetof(struct xt_chunk_header, check));
	blob_put(log, &header, sizeof(header));
	blob_put(log, stored, stored_bytes);
}

void craft_chunk(struct blob *log, unsigned kind, uint32_t sequence, uint32_t row_count,
		 const void *content, size_t content_bytes)
{
	size_t bound = ZSTD_compressBound(content_bytes);
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	void *stored = malloc(bound);
	size_t stored_bytes;

	assert_non_null(cctx);
	assert_non_null(stored);
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
	stored_bytes = ZSTD_compress2(cctx, stored, bound, content, content_bytes);
	assert_false(ZSTD_isError(stored_bytes));
	craft_chunk_stored(log, kind, sequence, row_count, (uint32_t)content_bytes, stored,
			   stored_bytes);
	free(stored);
	ZSTD_freeCCtx(cctx);
}

void craft_column(struct blob *content, const struct column *column)
{
	struct xt_column_header header = {
		.column = column->number,
		.encoding = column->encoding,
		.data_bytes = column->data_bytes,
	};

	blob_put(content, &header, sizeof(header));
	blob_put(content, column->data, column->data_bytes);
}

void craft_clock(struct blob *log, uint32_t sequence, uint64_t value)
{
	uint8_t data[XT_VARINT_BYTES_MAX];
	uint32_t data_bytes = (uint32_t)(xt_uvar_put(data, value) - data);
	struct blob content = {0};

	for (uint8_t c = XT_CLOCK_MONOTONIC_NS; c <= XT_CLOCK_REALTIME_NS; c++)
		craft_column(&content, &(struct column){c, XT_ENC_CONST, data, data_bytes});
	craft_chunk(log, XT_KIND_CLOCK, sequence, 1, content.data, content.bytes);
	blob_free(&content);
}

struct xt_reader *open_blob(const struct blob *log)
{
	struct xt_reader *reader;

	assert_int_equal(xt_reader_open_memory(log->data, log->bytes, &reader), XT_OPEN_OK);
	return reader;
}

void expect_clock(struct xt_reader *reader, uint64_t value)
{
	const struct xt_chunk *chunk = xt_reader_next(reader, 0);

	assert_non_null(chunk);
	assert_int_equal(xt_chunk_kind(chunk), XT_KIND_CLOCK);
	assert_int_equal(xt_chunk_rows(chunk), 1);
	assert_int_equal(xt_chunk_u64(chunk, XT_CLOCK_MONOTONIC_NS)[0], value);
	assert_int_equal(xt_chunk_u64(chunk, XT_CLOCK_REALTIME_NS)[0], value);
}
