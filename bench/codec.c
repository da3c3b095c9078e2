/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures encoding and decoding of rows: reads a log, then reads it again and writes its calls and
 * kernels to another log.
 *
 * 	codec LOG SCRATCH
 *
 * Prints as JSON: rows, bytes as 64-bit numbers, bytes in the log, and nanoseconds per row in each
 * direction. The encoding time is the difference of the two passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log/base/table.h"
#include "log/write/writer.h"
#include "xtrace/reader.h"

#define KINDS (1u << XT_KIND_CALL | 1u << XT_KIND_KERNEL)

struct sums {
	uint64_t rows, values;
};

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "codec: %s\n", what);
	exit(1);
}

static void write_chunk(struct xt_writer *writer, struct xt_table *table,
			const struct xt_chunk *chunk)
{
	uint32_t row_count = xt_chunk_rows(chunk);

	if (row_count > table->row_capacity)
		fail("a chunk has too many rows");
	/* Fills whole columns at a time, so that encoding dominates. */
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
		if (table->values[c])
			memcpy(table->values[c], xt_chunk_u64(chunk, c),
			       row_count * sizeof(uint64_t));
	table->row_count = row_count;
	if (xt_writer_add(writer, table) || xt_writer_flush(writer))
		fail("cannot write");
}

/* Only reads if writer is NULL. */
static double pass(const char *path, struct xt_writer *writer, struct xt_table *tables,
		   struct sums *sums)
{
	double begin_ns = cpu_ns();
	struct xt_reader *reader;
	const struct xt_chunk *chunk;

	*sums = (struct sums){0};
	if (xt_reader_open(path, &reader))
		fail("cannot read the log");
	while ((chunk = xt_reader_next(reader, KINDS))) {
		const struct xt_kind_spec *spec = &xt_kind_specs[xt_chunk_kind(chunk)];

		sums->rows += xt_chunk_rows(chunk);
		for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
			sums->values += spec->columns[c].name ? xt_chunk_rows(chunk) : 0;
		if (writer)
			write_chunk(writer, &tables[xt_chunk_kind(chunk)], chunk);
	}
	xt_reader_close(reader);
	return cpu_ns() - begin_ns;
}

int main(int argc, char **argv)
{
	static struct xt_table tables[XT_KIND_COUNT];
	struct xt_log_header header = {.pid = 1, .clock = XT_CLOCK_MONOTONIC};
	struct xt_writer *writer;
	struct sums sums;
	double read_ns, both_ns;

	if (argc != 3) {
		fprintf(stderr, "usage: codec LOG SCRATCH\n");
		return 2;
	}
	if (xt_table_init(&tables[XT_KIND_CALL], XT_KIND_CALL, 64 << 10, 0) ||
	    xt_table_init(&tables[XT_KIND_KERNEL], XT_KIND_KERNEL, 64 << 10, 0) ||
	    xt_writer_create(argv[2], &header, &writer))
		fail("cannot write");
	pass(argv[1], NULL, NULL, &sums); /* warms up */
	read_ns = pass(argv[1], NULL, NULL, &sums);
	both_ns = pass(argv[1], writer, tables, &sums);
	printf("{\"rows\": %llu, \"plain_bytes\": %llu, \"log_bytes\": %llu, \"read_ns\": %.2f, "
	       "\"write_ns\": %.2f}\n",
	       (unsigned long long)sums.rows, (unsigned long long)sums.values * sizeof(uint64_t),
	       (unsigned long long)xt_writer_file_bytes(writer), read_ns / (double)sums.rows,
	       (both_ns - read_ns) / (double)sums.rows);
	xt_writer_close(writer);
	xt_table_free(&tables[XT_KIND_CALL]);
	xt_table_free(&tables[XT_KIND_KERNEL]);
	unlink(argv[2]);
	return 0;
}
