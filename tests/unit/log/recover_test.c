/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery from a crash buffer adds each event once, wherever the process was interrupted.
 */
#include "recover_maker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/recover/recover.h"
#include "log/write/writer.h"

#define CUPTI_13	 130000
#define AT_CUPTI_KERNELS 2 /* from the buffer that CUPTI has not completed */

static char log_path[600], crash_buffer_path[610];
static struct made_crash_buffer made;
static struct xt_recovered got;

static void lay_out(void)
{
	make_log(log_path);
	file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(log_path, sizeof(log_path), "%s", test_path("one.xtr"));
	snprintf(crash_buffer_path, sizeof(crash_buffer_path), "%s%s", log_path,
		 XT_CRASH_BUFFER_SUFFIX);
	make_crash_buffer(&made, CUPTI_13);
	unlink(crash_buffer_path);
	lay_out();
	return 0;
}

/* The same files, unchanged. */
static void make_again(void)
{
	blob_free(&made.bytes);
	make_crash_buffer(&made, CUPTI_13);
}

static int tear_down(void **state)
{
	(void)state;
	blob_free(&made.bytes);
	return 0;
}

#define ROWS_MAX 128

struct found {
	unsigned count;
	uint64_t rows[ROWS_MAX][XT_TABLE_COLUMNS_MAX];
	char texts[ROWS_MAX][32]; /* the first text of a row */
};

/* All rows of a kind, in order. */
static struct found find(enum xt_kind kind)
{
	struct found found = {0};
	const struct xt_chunk *chunk;
	struct xt_reader *reader;

	assert_int_equal(xt_reader_open(log_path, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, 1u << kind))) {
		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++, found.count++) {
			assert_true(found.count < ROWS_MAX);
			for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
				uint8_t encoding = xt_kind_specs[kind].columns[c].encoding;
				struct xt_bytes text;

				if (encoding == XT_ENC_BYTES) {
					text = xt_chunk_bytes(chunk, c, r);
					snprintf(found.texts[found.count], 32, "%.*s",
						 (int)text.length, text.length ? text.data : "");
				} else if (encoding && encoding != XT_ENC_LIST) {
					found.rows[found.count][c] = xt_chunk_u64(chunk, c)[r];
				}
			}
		}
	}
	xt_reader_close(reader);
	return found;
}

static const char *string_of(uint64_t id)
{
	static struct found strings;

	strings = find(XT_KIND_STRING);
	for (unsigned i = 0; i < strings.count; i++)
		if (strings.rows[i][XT_STRING_ID] == id)
			return strings.texts[i];
	return "";
}

static uint64_t account_of(const char *name)
{
	struct found accounts = find(XT_KIND_ACCOUNT);
	uint64_t value = 0;

	for (unsigned i = 0; i < accounts.count; i++)
		if (!strcmp(accounts.texts[i], name))
			value = accounts.rows[i][XT_ACCOUNT_VALUE];
	return value;
}

static bool is_closed(void)
{
	struct xt_reader *reader;
	bool closed;

	assert_int_equal(xt_reader_open(log_path, &reader), XT_OPEN_OK);
	while (xt_reader_next(reader, 0))
		;
	closed = xt_reader_damage(reader)->closed;
	assert_int_equal(xt_reader_damage(reader)->chunks_damaged, 0);
	assert_int_equal(xt_reader_damage(reader)->chunks_missing, 0);
	xt_reader_close(reader);
	return closed;
}

#define NEW_STACK 2 /* the log has stack 1 */

static void expect_calls(void)
{
	static const struct {
		uint64_t correlation, thread, duration_ns, stack;
	} expected[] = {
		{1, 1, 100, 1}, {2, 1, 100, 1},		{3, 1, 50, NEW_STACK},
		{4, 1, 50, 1},	{5, 1, 100, NEW_STACK}, {6, 2, 400, XT_STACK_LOST},
	};
	struct found calls = find(XT_KIND_CALL);

	assert_int_equal(calls.count, 6);
	for (unsigned i = 0; i < calls.count; i++) {
		assert_int_equal(calls.rows[i][XT_CALL_CORRELATION], expected[i].correlation);
		assert_int_equal(calls.rows[i][XT_CALL_THREAD], expected[i].thread);
		assert_int_equal(calls.rows[i][XT_CALL_DURATION_NS], expected[i].duration_ns);
		/* An interrupted recovery may have left a stack without a reference. */
		if (expected[i].stack == NEW_STACK)
			assert_true(calls.rows[i][XT_CALL_STACK] >= NEW_STACK);
		else
			assert_int_equal(calls.rows[i][XT_CALL_STACK], expected[i].stack);
	}
	assert_int_equal(calls.rows[2][XT_CALL_RESULT], UINT32_MAX);
	assert_int_equal(calls.rows[4][XT_CALL_RESULT], 0);
}

#define WHOLE_GRAPH_9 (UINT64_C(9) << 32 | XT_NODE_WHOLE_GRAPH)

static void expect_kernels(void)
{
	static const struct {
		uint64_t correlation, stream, start_ns, duration_ns;
		const char *name;
	} expected[] = {
		{1, 1, 1500, 100, "k_one"},
		{3, 1, 2460, 10, "k_three"},
		{3, 2, 2460, 20, "k_three"},
		{4, 1, 2560, 0, "[unnamed]"},
		{24, 1, 2600, 100, XT_WHOLE_GRAPH_NAME},
		{5, 1, 2850, 40, "k_three"},
		{8, 1, 2855, 34, "k_three"},
	};
	struct found kernels = find(XT_KIND_KERNEL), shapes = find(XT_KIND_SHAPE);

	assert_int_equal(kernels.count, 1 + MADE_KERNELS);
	for (unsigned i = 0; i < kernels.count; i++) {
		const uint64_t *row = kernels.rows[i], *shape = NULL;

		assert_int_equal(row[XT_KERNEL_CORRELATION], expected[i].correlation);
		assert_int_equal(row[XT_KERNEL_STREAM], expected[i].stream);
		assert_int_equal(row[XT_KERNEL_START_NS], expected[i].start_ns);
		assert_int_equal(row[XT_KERNEL_DURATION_NS], expected[i].duration_ns);
		for (unsigned s = 0; s < shapes.count; s++)
			if (shapes.rows[s][XT_SHAPE_ID] == row[XT_KERNEL_SHAPE])
				shape = shapes.rows[s];
		assert_non_null(shape);
		assert_string_equal(string_of(shape[XT_SHAPE_NAME]), expected[i].name);
		if (row[XT_KERNEL_CORRELATION] == 24)
			assert_true(row[XT_KERNEL_GRAPH_NODE] == WHOLE_GRAPH_9);
		else
			assert_int_equal(shape[XT_SHAPE_GRID_X], expected[i].correlation);
	}
}

static void recovers_each_event_once(void **state)
{
	struct found rows;

	(void)state;
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_true(got.found);
	assert_int_equal(got.rows[XT_KIND_CALL], MADE_CALLS);
	assert_int_equal(got.open_calls, MADE_OPEN_CALLS);
	assert_int_equal(got.rows[XT_KIND_KERNEL], MADE_KERNELS);
	assert_int_equal(got.rows[XT_KIND_COPY], 2);
	assert_int_equal(got.rows[XT_KIND_SET], 1);
	assert_int_equal(got.rows[XT_KIND_MEMORY], 1);
	assert_int_equal(got.rows[XT_KIND_RANGE], 1);
	assert_int_equal(got.rows[XT_KIND_GRAPH_NODE], 2);
	assert_int_equal(got.unnamed, 1);
	assert_int_equal(got.unfinished, 3); /* no end; not started; times of another clock */
	assert_int_equal(got.areas_damaged + got.areas_unknown, 0);
	assert_int_equal(access(crash_buffer_path, F_OK), -1);
	assert_true(is_closed());
	expect_calls();
	expect_kernels();

	rows = find(XT_KIND_THREAD);
	assert_int_equal(rows.count, 2);
	assert_int_equal(rows.rows[1][XT_THREAD_TID], 4702);
	rows = find(XT_KIND_STACK); /* of slot 2: once, although three calls use it */
	assert_int_equal(rows.count, 2);
	assert_int_equal(rows.rows[1][XT_STACK_FLAGS], XT_STACK_TRUNCATED);
	rows = find(XT_KIND_PYTHON_FRAME);
	assert_int_equal(rows.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rows.rows[i][XT_PYTHON_FRAME_ID], i + 1);
		assert_int_equal(rows.rows[i][XT_PYTHON_FRAME_LINE], i ? 3 : 12);
		assert_int_not_equal(rows.rows[i][XT_PYTHON_FRAME_NAME], 0);
		assert_int_not_equal(rows.rows[i][XT_PYTHON_FRAME_FILE],
				     rows.rows[i][XT_PYTHON_FRAME_NAME]);
	}
	rows = find(XT_KIND_RANGE);
	assert_int_equal(rows.count, 1);
	assert_string_equal(string_of(rows.rows[0][XT_RANGE_TEXT]), "step");
	assert_string_equal(string_of(rows.rows[0][XT_RANGE_DOMAIN]), "domain");
	assert_string_equal(string_of(rows.rows[0][XT_RANGE_VALUES]), "payload=[lost]\n");
	rows = find(XT_KIND_GRAPH_NODE);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.rows[0][XT_GRAPH_NODE_ID], 77);
	assert_int_equal(rows.rows[0][XT_GRAPH_NODE_STACK], 2);
	rows = find(XT_KIND_GRAPH_NODE_NAME);
	assert_int_equal(rows.rows[0][XT_GRAPH_NODE_NAME_NODE], 77);
	assert_string_equal(string_of(rows.rows[0][XT_GRAPH_NODE_NAME_STRING]), "k_three");
	rows = find(XT_KIND_GRAPH_UPDATE);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.rows[0][XT_GRAPH_UPDATE_NODE], 77);
	assert_int_equal(rows.rows[0][XT_GRAPH_UPDATE_EXEC], 9);
	assert_int_equal(rows.rows[0][XT_GRAPH_UPDATE_STACK], 2);
	rows = find(XT_KIND_COPY);
	assert_int_equal(rows.count, 2);
	assert_int_equal(rows.rows[0][XT_COPY_BYTES], 4096);
	rows = find(XT_KIND_MEMORY);
	assert_int_equal(rows.rows[0][XT_MEMORY_ADDRESS], 0x7f00);
}

static void writes_consistent_account(void **state)
{
	(void)state;
	assert_int_equal(xt_recover(log_path, &got), 0);
	/* The rings saw 7. Ring 1 lost 1, 1 had not returned, 1 was not committed yet. */
	assert_int_equal(account_of("calls.written"), 6);
	assert_int_equal(account_of("calls.lost.ring_full"), 1);
	assert_int_equal(account_of("calls.lost.no_ring"), 1);
	assert_int_equal(account_of("calls.lost.killed"), 1);
	assert_int_equal(account_of("calls.seen"), 9);
	assert_int_equal(account_of("kernels.written"), 1 + MADE_KERNELS);
	assert_int_equal(account_of("copies.written"), 2);
	assert_int_equal(account_of("threads.seen"), 2);
	assert_int_equal(account_of("recovered.calls"), MADE_CALLS);
	assert_int_equal(account_of("recovered.open_calls"), MADE_OPEN_CALLS);
	assert_int_equal(account_of("recovered.kernels"), MADE_KERNELS);
}

/* The call was counted as returned but not committed: it is recovered as an open call. */
static void recovers_call_killed_while_returning(void **state)
{
	struct xt_ring_header *ring = made_ring(&made, MADE_RING_1);

	(void)state;
	ring->open_count = 0;
	ring->counters[XT_RING_CALLS_SEEN]++;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.open_calls, 1);
	expect_calls();
	assert_int_equal(account_of("calls.lost.killed"), 1); /* of the other thread, unchanged */
	assert_int_equal(account_of("calls.seen"), 9);
	/* The call was committed, but its counter was not updated yet. */
	ring->open_calls[0].correlation_id = 4;
	ring->open_calls[0].enter_ns = 2500;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.open_calls, 0);
	assert_int_equal(got.rows[XT_KIND_CALL], MADE_CALLS);
}

static void recovers_only_once(void **state)
{
	struct blob once, twice;

	(void)state;
	assert_int_equal(xt_recover(log_path, &got), 0);
	once = file_read(log_path);
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_false(got.found);
	/* Killed before the crash buffer was deleted. */
	file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_true(got.found);
	assert_int_equal(got.rows[XT_KIND_CALL] + got.open_calls + got.rows[XT_KIND_KERNEL] +
				 got.rows[XT_KIND_COPY] + got.rows[XT_KIND_MEMORY],
			 0);
	assert_int_equal(access(crash_buffer_path, F_OK), -1);
	twice = file_read(log_path);
	assert_int_equal(once.bytes, twice.bytes);
	assert_memory_equal(once.data, twice.data, once.bytes);
	blob_free(&once);
	blob_free(&twice);
}

/* Kills a recovery at every byte of its write. */
static void resumes_interrupted_recovery(void **state)
{
	struct blob before = file_read(log_path), after;

	(void)state;
	assert_int_equal(xt_recover(log_path, &got), 0);
	after = file_read(log_path);
	assert_true(after.bytes > before.bytes);
	assert_memory_equal(after.data, before.data, before.bytes);
	for (size_t bytes = before.bytes; bytes <= after.bytes; bytes++) {
		file_write(log_path, after.data, bytes);
		file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
		assert_int_equal(xt_recover(log_path, &got), 0);
		assert_true(is_closed());
		expect_calls();
		assert_int_equal(find(XT_KIND_KERNEL).count, 1 + MADE_KERNELS);
		assert_int_equal(find(XT_KIND_COPY).count, 2);
		assert_int_equal(find(XT_KIND_SET).count, 1);
		assert_int_equal(find(XT_KIND_MEMORY).count, 1);
		assert_int_equal(find(XT_KIND_RANGE).count, 1);
		assert_int_equal(find(XT_KIND_GRAPH_NODE).count, 1);
	}
	blob_free(&before);
	blob_free(&after);
}

static void leaves_running_process_alone(void **state)
{
	struct blob before = file_read(log_path), after;
	struct xt_writer *process;

	(void)state;
	assert_int_equal(xt_writer_append(log_path, &process), 0);
	assert_int_equal(xt_recover(log_path, &got), -EBUSY);
	after = file_read(log_path);
	assert_int_equal(before.bytes, after.bytes);
	assert_int_equal(access(crash_buffer_path, F_OK), 0);
	xt_writer_close(process);
	assert_int_equal(xt_recover(log_path, &got), 0);
	blob_free(&before);
	blob_free(&after);
}

/* A frame has the module that its slot meant when the stack was defined. */
static void resolves_modules_of_frames(void **state)
{
	static const uint64_t expected[] = {2, 1, 0};
	struct found modules;
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	const uint64_t *ids = NULL;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(xt_recover(log_path, &got), 0);
	modules = find(XT_KIND_MODULE);
	assert_int_equal(modules.count, 2);
	assert_int_equal(modules.rows[1][XT_MODULE_ID], 2);
	assert_int_equal(modules.rows[1][XT_MODULE_START], 0x400000);
	assert_int_equal(modules.rows[1][XT_MODULE_END], 0x500000);
	assert_int_equal(modules.rows[1][XT_MODULE_BIAS], 0x1000);
	assert_string_equal(modules.texts[1], "\x12\xab");
	assert_int_equal(xt_reader_open(log_path, &reader), XT_OPEN_OK);
	while ((chunk = xt_reader_next(reader, 1u << XT_KIND_STACK))) {
		ids = xt_chunk_list(chunk, XT_STACK_MODULES, xt_chunk_rows(chunk) - 1, &count);
		assert_int_equal(xt_chunk_u64(chunk, XT_STACK_ID)[xt_chunk_rows(chunk) - 1] == 2,
				 count == 3);
		if (count == 3)
			assert_memory_equal(ids, expected, sizeof(expected));
	}
	assert_int_equal(count, 3);
	xt_reader_close(reader);
}

/* With an undefined slot, the stack is unknown. It must not become a stack without modules. */
static void drops_stack_with_undefined_module(void **state)
{
	struct found calls;

	(void)state;
	made_ring(&made, MADE_RING_1)->slot_module_id[1] = 0;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	calls = find(XT_KIND_CALL);
	assert_int_equal(calls.rows[2][XT_CALL_CORRELATION], 3);
	assert_int_equal(calls.rows[2][XT_CALL_STACK], 0);
	assert_int_equal(find(XT_KIND_STACK).count, 1);
}

/* The position of the n-th record of that type in thread 1's ring. */
static uint64_t place_of_record(enum xt_record_type type, unsigned n)
{
	uint64_t data = made.offsets[MADE_RING_1] + XT_RING_DATA_OFFSET;
	uint64_t at = made.free_pos & (MADE_RING_BYTES - 1);
	const struct xt_record *record = (const void *)(made.bytes.data + data + at);

	while (record->type != type || n--) {
		assert_true(record->bytes > 0 && at < MADE_RING_BYTES);
		at += record->bytes;
		record = (const void *)(made.bytes.data + data + at);
	}
	return data + at;
}

/* A later definition does not tell what the slot meant when the stack was walked. */
static void drops_stack_with_late_module(void **state)
{
	struct xt_record_module *module;

	(void)state;
	made_ring(&made, MADE_RING_1)->slot_module_id[1] = 0;
	module = (void *)(made.bytes.data + place_of_record(XT_RECORD_MODULE, 1));
	module->module_slot = 1;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(find(XT_KIND_CALL).rows[2][XT_CALL_STACK], 0);
	assert_int_equal(find(XT_KIND_STACK).count, 1);
}

/* Records that no tracer writes end the recovery of a ring. */
static void rejects_invalid_module_records(void **state)
{
	static const struct {
		enum xt_record_type type;
		size_t offset, bytes;
		uint32_t value;
	} cases[] = {
		{XT_RECORD_MODULE, offsetof(struct xt_record_module, module_slot), 4, 0},
		{XT_RECORD_MODULE, offsetof(struct xt_record_module, module_slot), 4,
		 XT_MODULE_SLOT_COUNT},
		{XT_RECORD_MODULE, offsetof(struct xt_record_module, build_id_bytes), 4, 65},
		{XT_RECORD_MODULE, offsetof(struct xt_record_module, path_bytes), 4, 4097},
		{XT_RECORD_MODULE, offsetof(struct xt_record_module, path_bytes), 4, 2},
		{XT_RECORD_STACK, sizeof(struct xt_record_stack) + 3 * sizeof(uint64_t), 2,
		 XT_MODULE_SLOT_COUNT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_again();
		unlink(log_path);
		memcpy(made.bytes.data + place_of_record(cases[i].type, 0) + cases[i].offset,
		       &cases[i].value, cases[i].bytes);
		lay_out();
		assert_int_equal(xt_recover(log_path, &got), 0);
		assert_int_equal(got.areas_damaged, 1);
	}
}

static void reads_records_of_unknown_cupti(void **state)
{
	static const uint32_t sizes[][2] = {{10, 216}, {1, 96},	  {22, 96},
					    {2, 88},   {49, 128}, {51, 56}};

	(void)state;
	/* With unchanged record sizes, the walk over a buffer ends at its last byte. */
	made_header(&made)->cupti_version = 190000;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.rows[XT_KIND_KERNEL], MADE_KERNELS);
	/* With other sizes, it stops and invents nothing. */
	made_buffer(&made, MADE_COMPLETED)->valid_bytes -= 8;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.areas_unknown, 1);
	assert_int_equal(got.rows[XT_KIND_KERNEL], AT_CUPTI_KERNELS);
	made_buffer(&made, MADE_COMPLETED)->valid_bytes += 8;
	/* The sizes that the tracer stored are right for any version. */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		made_header(&made)->record_bytes[sizes[i][0]] = sizes[i][1];
	made_header(&made)->cupti_version = 3;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.rows[XT_KIND_KERNEL], MADE_KERNELS);
	assert_int_equal(got.rows[XT_KIND_COPY], 2);
}

static void ignores_records_of_zeroed_buffer(void **state)
{
	uint8_t *data = (uint8_t *)made_buffer(&made, MADE_COMPLETED) + XT_ACTIVITY_DATA_OFFSET;

	(void)state;
	made_buffer(&made, MADE_COMPLETED)->state = XT_ACTIVITY_IN_LOG;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.rows[XT_KIND_KERNEL], AT_CUPTI_KERNELS);
	/* Version 1 leaves it completed. If records are zeroed, the log has all of them. */
	made_buffer(&made, MADE_COMPLETED)->state = XT_ACTIVITY_COMPLETED;
	memset(data, 0, 100);
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.rows[XT_KIND_KERNEL], AT_CUPTI_KERNELS);
	assert_int_equal(got.areas_damaged, 0);
}

/* Killed after writing the log and before advancing the positions: every event exists twice. */
static void drops_events_already_written(void **state)
{
	struct blob recovered;

	(void)state;
	made_ring(&made, MADE_RING_1)->open_count = 0;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), 0);
	recovered = file_read(log_path);
	made_ring(&made, MADE_RING_1)->open_count = 1;
	/* Remove END, as in the process. */
	file_write(log_path, recovered.data, recovered.bytes - 40);
	file_write(crash_buffer_path, made.bytes.data, made.bytes.bytes);
	assert_int_equal(xt_recover(log_path, &got), 0);
	assert_int_equal(got.rows[XT_KIND_CALL] + got.rows[XT_KIND_KERNEL] +
				 got.rows[XT_KIND_COPY] + got.rows[XT_KIND_SET] +
				 got.rows[XT_KIND_MEMORY],
			 0);
	assert_int_equal(got.open_calls, 1);
	assert_int_equal(find(XT_KIND_CALL).count, 6);
	/* The log has later calls of this thread, so the present meaning of the slot is unknown. */
	assert_true(is_closed());
	blob_free(&recovered);
}

static void rejects_crash_buffer_of_other_log(void **state)
{
	struct blob before = file_read(log_path), after;

	(void)state;
	made_header(&made)->log_id++;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), -EBADMSG);
	made_header(&made)->log_id--;
	made_header(&made)->version = XT_CRASH_BUFFER_VERSION + 1;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), -EBADMSG);
	made_header(&made)->version = XT_CRASH_BUFFER_VERSION - 1;
	lay_out();
	assert_int_equal(xt_recover(log_path, &got), -EBADMSG);
	unlink(crash_buffer_path);
	assert_int_equal(mkdir(crash_buffer_path, 0700), 0);
	assert_int_equal(xt_recover(log_path, &got), -EBADMSG);
	assert_int_equal(rmdir(crash_buffer_path), 0);
	assert_int_equal(mkfifo(crash_buffer_path, 0600), 0);
	assert_int_equal(xt_recover(log_path, &got), -EBADMSG);
	unlink(crash_buffer_path);
	assert_int_equal(symlink(log_path, crash_buffer_path), 0);
	assert_int_equal(xt_recover(log_path, &got), -EBADMSG);
	assert_int_equal(access(crash_buffer_path, F_OK), 0);
	unlink(crash_buffer_path);
	after = file_read(log_path);
	assert_int_equal(before.bytes, after.bytes);
	assert_memory_equal(before.data, after.data, before.bytes);
	blob_free(&before);
	blob_free(&after);
}

static int finish(void **state)
{
	return test_dir_remove(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(recovers_each_event_once),
		TEST(writes_consistent_account),
		TEST(recovers_call_killed_while_returning),
		TEST(recovers_only_once),
		TEST(resumes_interrupted_recovery),
		TEST(leaves_running_process_alone),
		TEST(resolves_modules_of_frames),
		TEST(drops_stack_with_undefined_module),
		TEST(drops_stack_with_late_module),
		TEST(rejects_invalid_module_records),
		TEST(reads_records_of_unknown_cupti),
		TEST(ignores_records_of_zeroed_buffer),
		TEST(drops_events_already_written),
		TEST(rejects_crash_buffer_of_other_log),
	};

	return cmocka_run_group_tests(tests, NULL, finish);
}
