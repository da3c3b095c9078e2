/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's threads, from start to the closed log: thousands of short threads, a hanging CUPTI,
 * forks at any moment. Each test runs in its own process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/cupti/cupti_owner.h"
#include "inject/cupti/activity.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/memory/crash_buffer.h"
#include "inject/writer/writer_thread.h"
#include "log/base/number_format.h"
#include "log/write/writer.h"
#include "support.h"

static char folder[PATH_MAX], path[PATH_MAX + 16], crash_buffer_path[PATH_MAX + 32];
static _Thread_local volatile int sink;

static uint32_t flush_at_once(uint32_t flag)
{
	(void)flag;
	return XT_CUPTI_SUCCESS;
}

static uint32_t flush_never_returns(uint32_t flag)
{
	for (;;)
		pause();
	return flag;
}

static uint32_t no_record(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record)
{
	(void)buffer, (void)valid_bytes, (void)record;
	return XT_CUPTI_ERROR_MAX_LIMIT_REACHED;
}

static void begin(uint32_t (*flush)(uint32_t))
{
	struct xt_log_header header = {
		.pid = (uint32_t)getpid(), .clock = XT_CLOCK_MONOTONIC, .log_id = 7};
	struct xt_writer *log;

	cupti.cuptiActivityFlushAll = flush;
	cupti.cuptiActivityGetNextRecord = no_record;
	cupti.found_by = "by the test";
	assert_int_equal(api_table_fill(API_LEVEL_LAUNCH), 0);
	assert_int_equal(xt_writer_create(path, &header, &log), 0);
	assert_int_equal(xt_writer_flush(log), 0);
	assert_int_equal(crash_buffer_create(crash_buffer_path, header.log_id, 13), 0);
	assert_int_equal(writer_thread_start(log, monotonic_ns(), &(struct xt_size_bound){0}), 0);
	cupti_owner_begin(&(struct cupti_owner_config){.is_subscribed = true});
	cupti_owner_ready();
	flusher_allow();
}

static NOINLINE void call(void)
{
	struct fake_call call;

	fake_enter(&call);
	fake_leave(&call);
	sink++;
}

#define SHORT_THREADS 2000
#define THREAD_CALLS  5
#define AT_ONCE	      8

static void *short_thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < THREAD_CALLS; i++)
		call();
	return NULL;
}

static int short_threads(void)
{
	begin(flush_at_once);
	for (int started = 0; started < SHORT_THREADS; started += AT_ONCE) {
		pthread_t threads[AT_ONCE];

		for (int i = 0; i < AT_ONCE; i++)
			if (pthread_create(&threads[i], NULL, short_thread, NULL))
				return 1;
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
		usleep(4000);
	}
	if (writer_thread_finish(UINT64_C(2000000000)))
		return 2;
	/* The writer frees thread buffers after a flush, four times a second. */
	if (thread_buffer_count() > SHORT_THREADS / 2)
		return 3;
	return access(crash_buffer_path, F_OK) ? 0 : 4;
}

static int hanging_flush(void)
{
	uint64_t start_ns, took_ns;
	size_t bytes, max_records;
	uint8_t *buffer;

	begin(flush_never_returns);
	call();
	/* CUPTI owns a buffer with records and never returns it. */
	activity_requested(&buffer, &bytes, &max_records);
	memset(buffer, 1, 1000);
	usleep(120000);
	start_ns = monotonic_ns();
	if (writer_thread_finish(UINT64_C(2000000000)) != -ETIMEDOUT)
		return 1;
	took_ns = monotonic_ns() - start_ns;
	if (took_ns > UINT64_C(2500000000))
		return 2;
	return access(crash_buffer_path, F_OK) ? 3 : 0;
}

static int look(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	(void)info, (void)bytes, (void)unused;
	return 1;
}

static void *ask_loader(void *unused)
{
	for (;;)
		loader_watch_poll();
	return unused;
}

/*
 * The writer may hold the loader's lock at any moment. A child that inherits it locked would hang
 * at its first dlopen() or exception.
 */
static int forks(void)
{
	pthread_t asker;

	pthread_atfork(loader_lock, loader_unlock, loader_unlock);
	if (pthread_create(&asker, NULL, ask_loader, NULL))
		return 1;
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			alarm(2);
			dl_iterate_phdr(look, NULL);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			return 2;
	}
	return 0;
}

static int run(int (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void records_short_threads(void **unused)
{
	(void)unused;
	assert_int_equal(run(short_threads), 0);
	assert_log_is_good(path);
	assert_int_equal(log_rows(path, XT_KIND_CALL), SHORT_THREADS * THREAD_CALLS);
	assert_int_equal(log_rows(path, XT_KIND_THREAD), SHORT_THREADS);
	assert_int_equal(log_account(path, "calls.seen"), SHORT_THREADS * THREAD_CALLS);
	assert_int_equal(log_account(path, "calls.written"), SHORT_THREADS * THREAD_CALLS);
	assert_int_equal(log_account(path, "threads.seen"), SHORT_THREADS);
}

/* Only the crash buffer has CUPTI's last records, so the log must not be closed. */
static void keeps_log_open_if_flush_hangs(void **unused)
{
	char output[8192];

	(void)unused;
	assert_int_equal(run(hanging_flush), 0);
	assert_int_equal(log_rows(path, XT_KIND_CALL), 1);
	assert_int_equal(dump("--check", path, NULL, output, sizeof(output)), 1);
	assert_non_null(strstr(output, "not closed"));
	assert_int_equal(dump("--check", "--allow-open", path, output, sizeof(output)), 0);
	assert_int_equal(dump(crash_buffer_path, NULL, NULL, output, sizeof(output)), 0);
	assert_non_null(strstr(output, "state=writing"));
}

static void survives_forks(void **unused)
{
	(void)unused;
	assert_int_equal(run(forks), 0);
}

static int set_up(void **unused)
{
	(void)unused;
	folder_make(folder);
	snprintf(path, sizeof(path), "%s/log.xtr", folder);
	snprintf(crash_buffer_path, sizeof(crash_buffer_path), "%s.spool", path);
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	folder_remove(folder);
	return 0;
}

static int set_up_all(void **unused)
{
	(void)unused;
	return callbacks_set_up();
}

/* Skips callbacks_set_up(), so the loader's counter is unknown, as with an older glibc. */
static int set_up_forks(void **unused)
{
	(void)unused;
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest before_the_search[] = {
		cmocka_unit_test_setup(survives_forks, set_up_forks),
	};
	const struct CMUnitTest tests[] = {
		TEST(records_short_threads),
		TEST(keeps_log_open_if_flush_hangs),
	};

	return cmocka_run_group_tests(before_the_search, NULL, NULL) +
	       cmocka_run_group_tests(tests, set_up_all, NULL);
}
