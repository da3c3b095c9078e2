/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/runtime/loader.h"
#include "inject/unwind/stack_walk.h"
#include "support.h"
#include "xtrace/reader.h"

_Atomic uint32_t fake_correlation_ids;

int callbacks_set_up(void)
{
	char why[512];
	bool found;

	loader_watch_begin();
	if (stack_walk_open("/nonexistent", why, sizeof(why)))
		goto fail;
	loader_watch_narrow();
	stack_walk_close();
	loader_watch_narrow();
	if (stack_walk_open("/nonexistent", why, sizeof(why)) || stack_walk_begin())
		goto fail;
	loader_watch_narrow();
	found = loader_watch_end();
	if (!found) {
		fprintf(stderr, "the loader's counter was not found\n");
		return -1;
	}
	callbacks_active = true;
	return 0;
fail:
	fprintf(stderr, "%s\n", why);
	return -1;
}

/* Slots as the writer keeps them. */
static _Thread_local struct {
	struct {
		uint32_t flags, count;
		uint64_t frames[TAKEN_FRAMES_MAX];
	} slots[XT_STACK_SLOT_COUNT];
	uint64_t read_pos;
} * reader;

static void keep_stack(const struct xt_record_stack *record)
{
	uint32_t count = record->frame_count;

	assert_true(record->stack_slot < XT_STACK_SLOT_COUNT);
	if (count > TAKEN_FRAMES_MAX)
		count = TAKEN_FRAMES_MAX;
	reader->slots[record->stack_slot].flags = record->flags;
	reader->slots[record->stack_slot].count = count;
	memcpy(reader->slots[record->stack_slot].frames, record->frames, count * sizeof(uint64_t));
}

static void keep_call(struct taken_call *call, const struct xt_record_call *record)
{
	memset(call, 0, sizeof(*call));
	call->correlation_id = record->correlation_id;
	call->stack_slot = record->stack_slot;
	if (record->stack_slot == XT_STACK_SLOT_NONE)
		return;
	assert_true(record->stack_slot < XT_STACK_SLOT_COUNT);
	call->flags = reader->slots[record->stack_slot].flags;
	call->frame_count = reader->slots[record->stack_slot].count;
	memcpy(call->frames, reader->slots[record->stack_slot].frames, sizeof(call->frames));
}

bool ring_take(struct taken_call *call)
{
	struct thread_buffer *tb = current_thread_buffer;

	assert_non_null(tb);
	if (!reader)
		reader = calloc(1, sizeof(*reader));
	assert_non_null(reader);
	while (reader->read_pos < ring_written(tb)) {
		uint32_t place = reader->read_pos & (RING_DATA_BYTES - 1);
		const struct xt_record *record = (const void *)(tb->data + place);

		if (record->type == XT_RECORD_PAD) {
			reader->read_pos += RING_DATA_BYTES - place;
			continue;
		}
		reader->read_pos += record->bytes;
		if (record->type == XT_RECORD_STACK) {
			keep_stack((const struct xt_record_stack *)record);
			continue;
		}
		if (record->type == XT_RECORD_MODULE)
			continue;
		assert_int_equal(record->type, XT_RECORD_CALL);
		keep_call(call, (const struct xt_record_call *)record);
		ring_free(tb, reader->read_pos);
		return true;
	}
	return false;
}

void ring_skip(void)
{
	struct taken_call call;

	while (ring_take(&call))
		;
}

void folder_make(char path[PATH_MAX])
{
	const char *parent = getenv("TMPDIR");

	snprintf(path, PATH_MAX, "%s/xtrace-test.XXXXXX", parent && *parent ? parent : "/tmp");
	assert_non_null(mkdtemp(path));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

void folder_remove(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int dump(const char *argument1, const char *argument2, const char *argument3, char *output,
	 size_t output_bytes)
{
	size_t length = 0;
	int ends[2], status;
	ssize_t n;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		execl(PYTHON, PYTHON, "-B", XTRACE_DUMP, argument1, argument2, argument3,
		      (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while ((n = read(ends[0], output + length, output_bytes - length - 1)) > 0)
		length += (size_t)n;
	output[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void assert_log_is_good(const char *path)
{
	char output[8192];

	if (dump("--check", path, NULL, output, sizeof(output)))
		fail_msg("%s", output);
}

static struct xt_reader *open_log(const char *path)
{
	struct xt_reader *log = NULL;

	assert_int_equal(xt_reader_open(path, &log), XT_OPEN_OK);
	return log;
}

uint64_t log_account(const char *path, const char *name)
{
	struct xt_reader *log = open_log(path);
	const struct xt_chunk *chunk;
	uint64_t value = 0;

	while ((chunk = xt_reader_next(log, 1u << XT_KIND_ACCOUNT)))
		for (uint32_t i = 0; i < xt_chunk_rows(chunk); i++) {
			struct xt_bytes text = xt_chunk_bytes(chunk, XT_ACCOUNT_NAME, i);

			if (text.length == strlen(name) && !memcmp(text.data, name, text.length))
				value = xt_chunk_u64(chunk, XT_ACCOUNT_VALUE)[i];
		}
	xt_reader_close(log);
	return value;
}

uint64_t log_rows(const char *path, enum xt_kind kind)
{
	struct xt_reader *log = open_log(path);
	const struct xt_chunk *chunk;
	uint64_t rows = 0;

	while ((chunk = xt_reader_next(log, 1u << kind)))
		rows += xt_chunk_rows(chunk);
	xt_reader_close(log);
	return rows;
}

uint64_t log_zeros(const char *path, enum xt_kind kind, unsigned column)
{
	const struct xt_chunk *chunk;
	struct xt_reader *log;
	uint64_t count = 0;

	assert_int_equal(xt_reader_open(path, &log), XT_OPEN_OK);
	while ((chunk = xt_reader_next(log, 1u << kind)))
		for (uint32_t i = 0; i < xt_chunk_rows(chunk); i++)
			count += !xt_chunk_u64(chunk, column)[i];
	xt_reader_close(log);
	return count;
}

uint64_t log_modules_named(const char *path, const char *part)
{
	const struct xt_chunk *chunk;
	struct xt_reader *log;
	uint64_t count = 0;

	assert_int_equal(xt_reader_open(path, &log), XT_OPEN_OK);
	while ((chunk = xt_reader_next(log, 1u << XT_KIND_MODULE)))
		for (uint32_t i = 0; i < xt_chunk_rows(chunk); i++) {
			struct xt_bytes name = xt_chunk_bytes(chunk, XT_MODULE_PATH, i);

			count += memmem(name.data, name.length, part, strlen(part)) != NULL;
		}
	xt_reader_close(log);
	return count;
}
