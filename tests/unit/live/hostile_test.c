/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid logs with random content: every column of every kind of chunk gets edge values. Following
 * them must end normally, and no counter may decrease.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/follow.h"
#include "log/write/writer.h"

#define LOGS	  60
#define CHUNKS	  60
#define ROWS_MAX  40
#define TEXT_MAX  40
#define BUDGET_NS UINT64_C(10000000000)

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return random_next(&random_state) % below;
}

static uint64_t draw_value(void)
{
	static const uint64_t edges[] = {UINT64_C(1) << 20, UINT32_MAX, UINT64_C(1) << 32,
					 INT64_MAX, UINT64_MAX};

	switch (draw(8)) {
	case 0:
		return edges[draw(sizeof(edges) / sizeof(*edges))] - draw(2);
	case 1:
		return draw(UINT64_C(100000000000));
	case 2:
		return draw(1000);
	default:
		return draw(8);
	}
}

static void put_row(struct xt_table *table)
{
	static const char *const texts[] = {"log.allocated", "7 0:5 63:18446744073709551615",
					    "99999999999 1:", "cuMemcpyAsync", "callbacks.ns"};
	const struct xt_kind_spec *spec = &xt_kind_specs[table->kind];
	uint64_t list[TEXT_MAX];

	for (unsigned column = 1; column < XT_TABLE_COLUMNS_MAX; column++) {
		const char *text = texts[draw(sizeof(texts) / sizeof(*texts))];
		size_t length = draw(TEXT_MAX);

		for (size_t i = 0; i < length; i++)
			list[i] = draw_value();
		if (!spec->columns[column].name)
			continue;
		if (spec->columns[column].encoding == XT_ENC_BYTES)
			xt_table_put_bytes(table, column, text, strlen(text));
		else if (spec->columns[column].encoding == XT_ENC_LIST)
			xt_table_put_list(table, column, list, length);
		else
			xt_table_put(table, column, draw_value());
	}
	xt_table_end_row(table);
}

static void add_chunk(struct xt_writer *writer)
{
	enum xt_kind kind = (enum xt_kind)(1 + draw(XT_KIND_COUNT - 1));
	struct xt_table table;

	if (!xt_kind_specs[kind].name || kind == XT_KIND_END)
		return;
	assert_int_equal(xt_table_init(&table, kind, ROWS_MAX, ROWS_MAX * TEXT_MAX * 20), 0);
	for (uint64_t rows = 1 + draw(ROWS_MAX - 1); rows--;)
		put_row(&table);
	assert_int_equal(xt_writer_add(writer, &table), 0);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_table_free(&table);
}

static uint64_t before_ns[LIVE_GPUS][IDLE_CLASSES + 1];

static void check_counters(const struct live_totals *totals)
{
	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (!totals->gpus[g])
			continue;
		for (int c = 0; c < IDLE_CLASSES; c++) {
			assert_true(totals->gpus[g]->idle.ns[c] >= before_ns[g][c]);
			before_ns[g][c] = totals->gpus[g]->idle.ns[c];
		}
		assert_true(totals->gpus[g]->busy.covered_ns >= before_ns[g][IDLE_CLASSES]);
		before_ns[g][IDLE_CLASSES] = totals->gpus[g]->busy.covered_ns;
	}
}

static void random_logs_are_followed_to_their_end(void **state)
{
	struct xt_log_header header = {.pid = 7, .log_id = 1};

	(void)state;
	random_state = test_seed();
	for (unsigned l = 0; l < LOGS; l++) {
		struct xt_writer *writer;
		struct live_log *log;

		memset(before_ns, 0, sizeof(before_ns));
		assert_int_equal(xt_writer_create(test_path("hostile"), &header, &writer), 0);
		assert_int_equal(xt_writer_flush(writer), 0);
		assert_int_equal(live_log_open(&log, test_path("hostile"), NULL), 0);
		for (unsigned c = 0; c < CHUNKS; c++) {
			add_chunk(writer);
			assert_int_equal(live_log_read(log, BUDGET_NS), 0);
			live_log_advance(log, true);
			check_counters(&log->totals);
		}
		live_log_advance(log, false);
		check_counters(&log->totals);
		live_log_close(log);
		xt_writer_close(writer);
		unlink(test_path("hostile"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_logs_are_followed_to_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
