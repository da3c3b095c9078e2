/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Truncated, damaged and malicious crash buffers: recovery ends without a crash, the log keeps its
 * content, and what is added is well formed.
 */
#include "recover_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_abi/cupti_abi.h"
#include "log/recover/recover.h"
#include "log/write/writer.h"

static char log_path[600], crash_buffer_path[610], template_path[610];
static struct made_crash_buffer made;
static struct blob log_before;
static struct xt_recovered got;
static int template_fd = -1;

static int set_up(void **state)
{
	(void)state;
	snprintf(log_path, sizeof(log_path), "%s", test_path("one.xtr"));
	snprintf(crash_buffer_path, sizeof(crash_buffer_path), "%s%s", log_path,
		 XT_CRASH_BUFFER_SUFFIX);
	snprintf(template_path, sizeof(template_path), "%s.template", log_path);
	make_crash_buffer(&made, 130000);
	unlink(crash_buffer_path);
	file_write(template_path, made.bytes.data, made.bytes.bytes);
	template_fd = open(template_path, O_RDWR);
	assert_true(template_fd >= 0);
	make_log(log_path);
	log_before = file_read(log_path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(template_fd);
	blob_free(&made.bytes);
	blob_free(&log_before);
	return 0;
}

/* The log has its old content and the rows that recovery reported, and can be read. */
static void expect_in_order(int error)
{
	struct blob log = file_read(log_path);
	struct xt_reader *reader = open_blob(&log);
	const struct xt_chunk *chunk;
	uint64_t calls = 0, kernels = 0;

	assert_true(log.bytes >= log_before.bytes);
	assert_memory_equal(log.data, log_before.data, log_before.bytes);
	if (error)
		assert_int_equal(log.bytes, log_before.bytes);
	while ((chunk = xt_reader_next(reader, 0))) {
		calls += xt_chunk_kind(chunk) == XT_KIND_CALL ? xt_chunk_rows(chunk) : 0;
		kernels += xt_chunk_kind(chunk) == XT_KIND_KERNEL ? xt_chunk_rows(chunk) : 0;
	}
	assert_int_equal(calls, 2 + (error ? 0 : got.rows[XT_KIND_CALL] + got.open_calls));
	assert_int_equal(kernels, 1 + (error ? 0 : got.rows[XT_KIND_KERNEL]));
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 0);
	assert_int_equal(xt_reader_damage(reader)->closed, !error);
	xt_reader_close(reader);
	blob_free(&log);
}

/* Recovers from the present template. */
static int recover(void)
{
	int error;

	unlink(crash_buffer_path);
	assert_int_equal(link(template_path, crash_buffer_path), 0);
	file_write(log_path, log_before.data, log_before.bytes);
	error = xt_recover(log_path, &got);
	assert_true(!error || error == -EBADMSG || error == -E2BIG);
	assert_int_equal(access(crash_buffer_path, F_OK), error ? 0 : -1);
	expect_in_order(error);
	return error;
}

static void put(uint64_t offset, const void *data, size_t bytes)
{
	assert_int_equal(pwrite(template_fd, data, bytes, (off_t)offset), bytes);
}

static void restore(uint64_t offset, size_t bytes)
{
	put(offset, made.bytes.data + offset, bytes);
}

static void survives_truncated_crash_buffer(void **state)
{
	/* At the boundaries of structures, and at random places between them. */
	uint64_t lengths[2048], seed = test_seed();
	size_t count = 0;

	(void)state;
	for (uint64_t i = 0; i < 48; i++)
		lengths[count++] = i;
	for (int area = 0; area < MADE_AREAS; area++) {
		static const uint64_t places[] = {0, 64, 80, 272, 448, 512, 4096, 20480};

		for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++)
			for (int64_t d = -1; d < 24; d++)
				lengths[count++] = made.offsets[area] + places[p] +
						   (uint64_t)(d * (d > 1 ? 8 : 1));
	}
	while (count < 1500)
		lengths[count++] = random_next(&seed) % made.bytes.bytes;
	for (size_t i = 0; i < count; i++) {
		if (lengths[i] >= made.bytes.bytes)
			continue;
		assert_int_equal(ftruncate(template_fd, (off_t)lengths[i]), 0);
		recover();
		restore(lengths[i], made.bytes.bytes - lengths[i]);
	}
	assert_int_equal(recover(), 0);
	assert_int_equal(got.rows[XT_KIND_CALL], MADE_CALLS);
}

static void flip(uint64_t offset, uint64_t bytes, uint64_t *seed)
{
	for (uint64_t at = offset; at < offset + bytes; at++) {
		uint8_t changed = made.bytes.data[at] ^ (uint8_t)(1 + random_next(seed) % 255);

		put(at, &changed, 1);
		recover();
		restore(at, 1);
	}
}

static void survives_every_flipped_byte(void **state)
{
	uint64_t seed = test_seed();
	uint64_t place = made.free_pos % MADE_RING_BYTES;
	uint64_t data = made.offsets[MADE_RING_1] + XT_RING_DATA_OFFSET;
	uint64_t first = made.records_bytes < MADE_RING_BYTES - place ? made.records_bytes
								      : MADE_RING_BYTES - place;

	(void)state;
	flip(0, 40 + (MADE_AREAS + 1) * sizeof(struct xt_crash_buffer_area), &seed);
	flip(offsetof(struct xt_crash_buffer_header, record_bytes), sizeof(uint32_t) * 64, &seed);
	flip(made.offsets[MADE_RING_1], 24, &seed);
	flip(made.offsets[MADE_RING_1] + 64, 64, &seed);
	flip(made.offsets[MADE_RING_1] + 272, 16 * 8, &seed);
	flip(made.offsets[MADE_RING_1] + 448, 8, &seed);
	flip(made.offsets[MADE_RING_1] + 512, 16, &seed);
	flip(data + place, first, &seed);
	flip(data, made.records_bytes - first, &seed);
	flip(made.offsets[MADE_COMPLETED], 32, &seed);
	flip(made.offsets[MADE_COMPLETED] + XT_ACTIVITY_DATA_OFFSET, made.valid_bytes, &seed);
	flip(made.offsets[MADE_AT_CUPTI], 32, &seed);
	flip(made.offsets[MADE_AT_CUPTI] + XT_ACTIVITY_DATA_OFFSET, 4 * 216, &seed);
	flip(made.offsets[MADE_NAMES], 8, &seed);
	flip(made.offsets[MADE_NAMES] + XT_NAMES_DATA_OFFSET, made.names_bytes, &seed);
}

/* Puts extreme values into each word that is a size or an offset. */
static void rejects_hostile_values(void **state)
{
	static const uint64_t values[] = {
		0,
		1,
		7,
		8,
		4095,
		4096,
		65535,
		1u << 20,
		(1u << 24) + 8,
		0x7ffffff8,
		0x7fffffff,
		0x80000000,
		0xfffffff8,
		0xffffffff,
		UINT64_C(1) << 32,
		INT64_MAX,
		INT64_MIN,
		UINT64_MAX - 7,
		UINT64_MAX,
		UINT64_MAX - 20479,
	};
	const uint64_t area_entries = offsetof(struct xt_crash_buffer_header, areas);
	const uint64_t ring = made.offsets[MADE_RING_1], names = made.offsets[MADE_NAMES];
	const uint64_t stack = ring + XT_RING_DATA_OFFSET +
			       (made.free_pos + sizeof(struct xt_record_call)) % MADE_RING_BYTES;
	const struct {
		uint64_t offset;
		size_t bytes;
	} words[] = {
		{offsetof(struct xt_crash_buffer_header, area_count), 4},
		{offsetof(struct xt_crash_buffer_header, cupti_version), 4},
		{offsetof(struct xt_crash_buffer_header, record_bytes) + 40, 4},
		{area_entries, 8},
		{area_entries + 8, 8},
		{area_entries + 16, 4},
		{area_entries + 24 * MADE_COMPLETED + 8, 8},
		{area_entries + 24 * MADE_NAMES + 8, 8},
		{ring, 4},
		{ring + 16, 8},
		{ring + offsetof(struct xt_ring_header, write_pos), 8},
		{ring + offsetof(struct xt_ring_header, open_count), 4},
		{ring + offsetof(struct xt_ring_header, open_calls) + 8, 4},
		{ring + offsetof(struct xt_ring_header, open_calls) + 16, 8},
		{ring + offsetof(struct xt_ring_header, counters), 8},
		{ring + offsetof(struct xt_ring_header, free_pos), 8},
		{stack, 2},
		{stack + 2, 2},
		{stack + 4, 4},
		{stack + 8, 4},
		{made.offsets[MADE_COMPLETED], 4},
		{made.offsets[MADE_COMPLETED] + 16, 8},
		{made.offsets[MADE_COMPLETED] + XT_ACTIVITY_DATA_OFFSET, 4},
		{made.offsets[MADE_COMPLETED] + XT_ACTIVITY_DATA_OFFSET + 16, 8},
		{made.offsets[MADE_COMPLETED] + XT_ACTIVITY_DATA_OFFSET + 24, 8},
		{made.offsets[MADE_AT_CUPTI] + 8, 8},
		{names, 8},
		{names + XT_NAMES_DATA_OFFSET + 12, 4},
	};

	(void)state;
	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			put(words[w].offset, &values[v], words[w].bytes);
			recover();
		}
		restore(words[w].offset, words[w].bytes);
	}
}

static void change(void *field, uint64_t value, size_t bytes)
{
	memcpy(field, &value, bytes);
	put((uint64_t)((uint8_t *)field - made.bytes.data), field, bytes);
}

/* Intact parts are recovered, and damaged ones are counted. */
static void counts_damage(void **state)
{
	struct xt_crash_buffer_header *header = made_header(&made);
	const struct xt_crash_buffer_area first = header->areas[0];

	(void)state;
	change(&header->areas[0].offset, header->areas[1].offset, 8); /* two areas at one offset */
	assert_int_equal(recover(), 0);
	assert_int_equal(got.areas_damaged, 1);
	change(&header->areas[0].offset, first.offset, 8);
	change(&made_ring(&made, MADE_RING_2)->thread_id, 1, 4); /* two rings of one thread */
	assert_int_equal(recover(), 0);
	assert_int_equal(got.areas_damaged, 1);
	assert_int_equal(got.rows[XT_KIND_CALL], MADE_CALLS - 1);
	change(&made_ring(&made, MADE_RING_2)->thread_id, 2, 4);
	change(&made_ring(&made, MADE_RING_1)->open_count, 9, 4);
	assert_int_equal(recover(), 0);
	assert_int_equal(got.areas_damaged, 1);
	assert_int_equal(got.open_calls, 0);
	assert_int_equal(got.rows[XT_KIND_CALL], MADE_CALLS);
	change(&made_ring(&made, MADE_RING_1)->open_count, 1, 4);
	change(&made_ring(&made, MADE_RING_1)->write_pos, made.free_pos + 40 + 8, 8);
	assert_int_equal(recover(), 0); /* a truncated stack */
	assert_int_equal(got.areas_damaged, 1);
	assert_int_equal(got.rows[XT_KIND_CALL], 1); /* of the other thread */
	assert_int_equal(got.rows[XT_KIND_KERNEL], MADE_KERNELS);
}

/* If the log uses the last possible ids, nothing can be recovered, but the log stays readable. */
static void survives_hostile_log(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct blob log = file_read(log_path);
		size_t at = 64 + random_next(&seed) % (log_before.bytes - 64);
		int error;

		blob_free(&log);
		unlink(crash_buffer_path);
		assert_int_equal(link(template_path, crash_buffer_path), 0);
		log_before.data[at] ^= 0x55;
		file_write(log_path, log_before.data, log_before.bytes);
		log_before.data[at] ^= 0x55;
		error = xt_recover(log_path, &got);
		assert_true(!error || error == -EBADMSG);
		log = file_read(log_path);
		xt_reader_close(open_blob(&log));
		blob_free(&log);
	}
}

#define EQUAL_IN_BUFFER	 200000u
#define EQUAL_IN_LOG	 40000u
#define EQUAL_TABLE_ROWS 4000u
#define EQUAL_NS	 2006u
#define EQUAL_BYTES	 ((offsetof(struct cupti_activity_memory, stream_id) + 4 + 7) & ~(size_t)7)

static void add_equal_rows(void)
{
	static const uint64_t values[XT_TABLE_COLUMNS_MAX] = {
		[XT_MEMORY_CORRELATION] = 5,
		[XT_MEMORY_TIME_NS] = EQUAL_NS,
		[XT_MEMORY_OPERATION] = XT_CUPTI_MEMORY_ALLOC,
		[XT_MEMORY_KIND] = XT_CUPTI_MEMORY_DEVICE,
	};
	struct xt_writer *writer;
	struct xt_table table;

	assert_int_equal(xt_table_init(&table, XT_KIND_MEMORY, EQUAL_TABLE_ROWS, 64), 0);
	assert_int_equal(xt_writer_append(log_path, &writer), 0);
	for (unsigned i = 1; i <= EQUAL_IN_LOG; i++) {
		for (unsigned c = 1; c < XT_TABLE_COLUMNS_MAX; c++)
			if (xt_kind_specs[XT_KIND_MEMORY].columns[c].encoding)
				xt_table_put(&table, c, values[c]);
		xt_table_end_row(&table);
		if (i % EQUAL_TABLE_ROWS)
			continue;
		assert_int_equal(xt_writer_add(writer, &table), 0);
		xt_table_clear(&table);
	}
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
	xt_table_free(&table);
	blob_free(&log_before);
	log_before = file_read(log_path);
}

/*
 * Many equal records and rows: the time must grow with their number, not with its square. It takes
 * about 0.1 s of processor time; with the square it would take 40 s.
 */
#define EQUAL_CPU_SECONDS 10
static void takes_linear_time_for_equal_records(void **state)
{
	static const enum made_area areas[] = {MADE_COMPLETED, MADE_AT_CUPTI};
	const struct xt_activity_header buffer = {
		.state = XT_ACTIVITY_COMPLETED,
		.data_bytes = EQUAL_IN_BUFFER * EQUAL_BYTES,
		.valid_bytes = EQUAL_IN_BUFFER * EQUAL_BYTES,
	};
	const struct cupti_activity_memory record = {.kind = XT_CUPTI_ACTIVITY_MEMORY2,
						     .operation = XT_CUPTI_MEMORY_ALLOC,
						     .memory_kind = XT_CUPTI_MEMORY_DEVICE,
						     .correlation_id = 5,
						     .timestamp_ns = EQUAL_NS};
	struct xt_crash_buffer_header *header = made_header(&made);
	uint8_t *records = calloc(EQUAL_IN_BUFFER, EQUAL_BYTES);
	uint64_t end = made.bytes.bytes;
	clock_t began;

	(void)state;
	assert_non_null(records);
	for (size_t i = 0; i < EQUAL_IN_BUFFER; i++)
		memcpy(records + i * EQUAL_BYTES, &record, EQUAL_BYTES);
	change(&header->record_bytes[XT_CUPTI_ACTIVITY_MEMORY2], EQUAL_BYTES, 4);
	for (size_t i = 0; i < sizeof(areas) / sizeof(*areas); i++) {
		struct xt_crash_buffer_area *area = &header->areas[areas[i]];
		uint64_t bytes = XT_ACTIVITY_DATA_OFFSET + EQUAL_IN_BUFFER * EQUAL_BYTES;

		change(&area->offset, end, 8);
		change(&area->bytes, bytes, 8);
		put(end, &buffer, sizeof(buffer));
		put(end + XT_ACTIVITY_DATA_OFFSET, records, EQUAL_IN_BUFFER * EQUAL_BYTES);
		end += bytes;
	}
	free(records);
	add_equal_rows();
	began = clock();
	assert_int_equal(recover(), 0);
	assert_true(clock() - began < EQUAL_CPU_SECONDS * CLOCKS_PER_SEC);
	assert_int_equal(got.areas_damaged, 0);
	assert_int_equal(got.rows[XT_KIND_MEMORY], 2 * EQUAL_IN_BUFFER - EQUAL_IN_LOG);
}

static bool has_gap(void)
{
	struct xt_reader *reader;
	bool missing;

	assert_int_equal(xt_reader_open(log_path, &reader), XT_OPEN_OK);
	while (xt_reader_next(reader, 0))
		;
	missing = xt_reader_damage(reader)->chunks_missing > 0;
	xt_reader_close(reader);
	return missing;
}

/* A log that lost chunks after they were written is incomplete, wherever it was cut. */
static void reports_log_that_was_cut_off(void **state)
{
	(void)state;
	made_header(&made)->log_bytes = log_before.bytes;
	file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_false(got.log_is_cut);
	assert_false(has_gap());
	for (size_t bytes = sizeof(struct xt_log_header); bytes < log_before.bytes; bytes++) {
		file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
		file_write(log_path, log_before.data, bytes);
		assert_int_equal(xt_recover(log_path, &got), 0);
		assert_true(got.log_is_cut);
		assert_true(has_gap());
	}
}

/* Recovery appends after the last chunk, which is unknown here. */
static void keeps_log_that_expands_too_much(void **state)
{
	struct blob after;

	(void)state;
	for (uint32_t sequence = 100; sequence < 102; sequence++)
		craft_chunk(&log_before, XT_KIND_MODULE, sequence, XT_CHUNK_ROWS_MAX, NULL, 0);
	file_write(log_path, log_before.data, log_before.bytes);
	assert_int_equal(link(template_path, crash_buffer_path), 0);
	assert_int_equal(xt_recover(log_path, &got), -EFBIG);
	assert_int_equal(access(crash_buffer_path, F_OK), 0);
	after = file_read(log_path);
	assert_int_equal(after.bytes, log_before.bytes);
	assert_memory_equal(after.data, log_before.data, after.bytes);
	blob_free(&after);
}

static void does_nothing_without_crash_buffer(void **state)
{
	(void)state;
	unlink(crash_buffer_path);
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_false(got.found);
	assert_int_equal(xt_recover("/nonexistent/log.xtr", &got), 0);
	assert_false(got.found);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(survives_truncated_crash_buffer),
		TEST(survives_every_flipped_byte),
		TEST(rejects_hostile_values),
		TEST(counts_damage),
		TEST(survives_hostile_log),
		TEST(takes_linear_time_for_equal_records),
		TEST(does_nothing_without_crash_buffer),
		TEST(reports_log_that_was_cut_off),
		TEST(keeps_log_that_expands_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, test_dir_remove);
}
