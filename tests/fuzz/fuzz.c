/* SPDX-License-Identifier: Apache-2.0 */
/* See fuzz.h. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/write/writer.h"

#define ROWS_MAX    4096
#define CONTENT_MAX 65536
#define TEXT_MAX    300
#define PATHS_MAX   32
#define PATH_BYTES  256

static char folder[64];
static char paths[PATHS_MAX][PATH_BYTES];
static size_t path_count;

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			perror(#condition);                                                        \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

uint8_t feed_byte(struct feed *feed)
{
	return feed->at < feed->end ? *feed->at++ : 0;
}

uint64_t feed_number(struct feed *feed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = feed_byte(feed);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 70);
	return value;
}

const uint8_t *feed_bytes(struct feed *feed, size_t most, size_t *bytes_out)
{
	const uint8_t *bytes = feed->at;
	size_t left = (size_t)(feed->end - feed->at);

	*bytes_out = most < left ? most : left;
	feed->at += *bytes_out;
	return bytes;
}

static void remove_folder(void)
{
	for (size_t i = 0; i < path_count; i++)
		unlink(paths[i]);
	rmdir(folder);
}

const char *fuzz_path(const char *name)
{
	char *path = paths[path_count];

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "%s/xtrace-fuzz.XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		MUST(mkdtemp(folder));
		atexit(remove_folder);
	}
	MUST(path_count < PATHS_MAX);
	path_count++;
	snprintf(path, PATH_BYTES, "%s/%s", folder, name);
	return path;
}

void fuzz_write_file(const char *path, const void *data, size_t bytes)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	close(fd);
}

void fuzz_put_row(struct xt_table *table, struct feed *feed)
{
	static uint64_t list[TEXT_MAX];
	const struct xt_kind_spec *spec = &xt_kind_specs[table->kind];

	for (unsigned column = 1; column < XT_TABLE_COLUMNS_MAX; column++) {
		uint8_t encoding = spec->columns[column].encoding;
		size_t length;

		if (!spec->columns[column].name)
			continue;
		if (encoding == XT_ENC_BYTES) {
			const uint8_t *text =
				feed_bytes(feed, feed_number(feed) % TEXT_MAX, &length);

			xt_table_put_bytes(table, column, text, length);
		} else if (encoding == XT_ENC_LIST) {
			length = feed_number(feed) % TEXT_MAX;
			for (size_t i = 0; i < length; i++)
				list[i] = feed_number(feed);
			xt_table_put_list(table, column, list, length);
		} else {
			xt_table_put(table, column, feed_number(feed));
		}
	}
	xt_table_end_row(table);
}

/* Marks the log as a CPU log. */
static void put_cpu_kind(struct xt_writer *writer)
{
	static const char key[] = "log.kind", value[] = "cpu";
	struct xt_table table;

	MUST(!xt_table_init(&table, XT_KIND_META, 1, CONTENT_MAX));
	xt_table_put_bytes(&table, XT_META_KEY, key, strlen(key));
	xt_table_put_bytes(&table, XT_META_VALUE, value, strlen(value));
	xt_table_end_row(&table);
	MUST(!xt_writer_add(writer, &table));
	xt_table_free(&table);
}

static void write_log(const char *path, struct feed *feed, bool is_cpu)
{
	struct xt_log_header header = {.pid = 4711,
				       .start_monotonic_ns = 1000,
				       .start_realtime_ns = UINT64_C(1700000000000000000),
				       .clock = XT_CLOCK_MONOTONIC,
				       .log_id = 1 + is_cpu};
	struct xt_table table = {0};
	struct xt_writer *writer;

	unlink(path);
	MUST(!xt_writer_create(path, &header, &writer));
	if (is_cpu)
		put_cpu_kind(writer);
	while (feed->at < feed->end) {
		uint8_t kind = feed_byte(feed);

		if (kind == XT_KIND_END || kind >= XT_KIND_COUNT || !xt_kind_specs[kind].name)
			continue;
		if (table.row_capacity &&
		    (table.kind != (enum xt_kind)kind || !xt_table_has_room(&table, TEXT_MAX))) {
			MUST(!xt_writer_add(writer, &table));
			xt_table_free(&table);
			table = (struct xt_table){0};
		}
		if (!table.row_capacity)
			MUST(!xt_table_init(&table, (enum xt_kind)kind, ROWS_MAX, CONTENT_MAX));
		fuzz_put_row(&table, feed);
	}
	if (table.row_capacity)
		MUST(!xt_writer_add(writer, &table));
	xt_table_free(&table);
	MUST(!xt_writer_add_end(writer) && !xt_writer_flush(writer));
	xt_writer_close(writer);
}

void fuzz_write_log(const char *path, struct feed *feed)
{
	write_log(path, feed, false);
}

void fuzz_write_cpu_log(const char *path, struct feed *feed)
{
	write_log(path, feed, true);
}
