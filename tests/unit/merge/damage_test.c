/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change each byte of the golden log, and truncate it at each byte. Every output must end normally
 * and report an error if the reader lost something.
 *
 * --all changes each byte in nine ways (each bit, and all bits) instead of one.
 */
#include "merge/sums/exporter.h"
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/merge.h"
#include "xtrace/reader.h"

#define PATH_BYTES    64
#define LOG_BYTES_MAX 65536
#define WAYS	      9

static bool in_all_ways;
static char directory[32];
static char log_path[PATH_BYTES], paths[OUTPUTS_MAX][PATH_BYTES];
static uint8_t golden[LOG_BYTES_MAX];
static size_t golden_bytes;

static void write_log(const uint8_t *data, size_t bytes)
{
	FILE *file = fopen(log_path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static void remove_output(const struct output_option *output)
{
	char path[PATH_BYTES + 256];
	struct dirent *entry;
	DIR *folder;

	if (!unlink(output->path))
		return;
	folder = opendir(output->path);
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", output->path, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	if (folder)
		closedir(folder);
	rmdir(output->path);
}

/* True if the reader reports any damage. */
static bool is_damaged(void)
{
	struct xt_reader *reader;
	const struct xt_damage *damage;
	bool damaged;

	if (xt_reader_open(log_path, &reader) != XT_OPEN_OK)
		return true;
	while (xt_reader_next(reader, 0))
		;
	damage = xt_reader_damage(reader);
	damaged = damage->chunks_damaged || damage->chunks_missing || damage->bytes_skipped ||
		  damage->truncated || !damage->closed;
	xt_reader_close(reader);
	return damaged;
}

/*
 * Write one output per merge, in rotation. The choice has little influence on how the log is read.
 */
static enum exit_status merge_log(unsigned turn)
{
	struct report report = {.quiet = true};
	struct options options = {.settings = {.weight = (enum weight)(turn % WEIGHTS),
					       .by = (enum by)(turn % (BY_RANK + 1)),
					       .tables.top_count = 5}};
	struct inputs inputs;
	enum exit_status status;
	char *argument = log_path;

	for (size_t e = 0; exporters[e]; e++) {
		if (exporters[e]->absent)
			continue;
		options.outputs.list[options.outputs.count] =
			(struct output_option){exporters[e], paths[options.outputs.count]};
		options.outputs.count++;
	}
	options.outputs.list[0] = options.outputs.list[turn % options.outputs.count];
	options.outputs.count = 1;
	if (!inputs_find(&inputs, &argument, 1, &report))
		merge_run(&options, &inputs, &report);
	status = report.status;
	inputs_free(&inputs);
	report_free(&report);
	remove_output(&options.outputs.list[0]);
	return status;
}

static void check_log(const uint8_t *data, size_t bytes, unsigned turn)
{
	write_log(data, bytes);
	if (is_damaged())
		assert_int_not_equal(merge_log(turn), STATUS_OK);
	else
		merge_log(turn);
}

static void survives_changed_bytes(void **state)
{
	(void)state;
	for (size_t at = 0; at < golden_bytes; at++) {
		for (unsigned way = 0; way < (in_all_ways ? WAYS : 1); way++) {
			unsigned bit = in_all_ways ? way : (unsigned)at % WAYS;
			uint8_t mask = bit < 8 ? (uint8_t)(1u << bit) : 0xff;

			golden[at] ^= mask;
			check_log(golden, golden_bytes, (unsigned)at + way);
			golden[at] ^= mask;
		}
	}
}

static void survives_truncation(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < golden_bytes; bytes++)
		check_log(golden, bytes, (unsigned)bytes);
}

static int begin(void **state)
{
	FILE *file = fopen(GOLDEN, "rb");

	(void)state;
	/* Prefer a folder in memory, because a database waits for the disk. */
	snprintf(directory, sizeof(directory), "%s/xtrace-damage-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	golden_bytes = file ? fread(golden, 1, sizeof(golden), file) : 0;
	if (!golden_bytes || golden_bytes == sizeof(golden) || !mkdtemp(directory))
		return -1;
	fclose(file);
	/* Each input prints warnings even with --quiet, which makes thousands of lines. */
	if (!freopen("/dev/null", "w", stderr))
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/x.xtr", directory);
	for (size_t i = 0; i < OUTPUTS_MAX; i++)
		snprintf(paths[i], PATH_BYTES, "%s/%zu", directory, i);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(log_path);
	return rmdir(directory);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_changed_bytes),
		cmocka_unit_test(survives_truncation),
	};

	in_all_ways = argc == 2 && !strcmp(argv[1], "--all");
	return cmocka_run_group_tests(tests, begin, end);
}
