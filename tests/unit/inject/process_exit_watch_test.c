/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads count as the tracer's after the main thread has ended. Files of /proc/self come
 * from the test's folder, where a thread id can be reused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/runtime/process.h"

#define SELF "/proc/self/"

static char folder[] = "/tmp/xtrace-alone.XXXXXX";

static const char *redirected(const char *path, char *out)
{
	if (strncmp(path, SELF, strlen(SELF)) != 0)
		return path;
	snprintf(out, PATH_MAX, "%s/%s", folder, path + strlen(SELF));
	return out;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

int __wrap_open(const char *path, int flags, ...)
{
	char out[PATH_MAX];

	return __real_open(redirected(path, out), flags);
}

DIR *__wrap_opendir(const char *path)
{
	char out[PATH_MAX];

	return __real_opendir(redirected(path, out));
}

static void put_status(const char *name, char state, unsigned threads, unsigned start_ticks)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "1 (a) b) %c 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 %u 0 %u 99 98\n", state,
		threads, start_ticks);
	fclose(file);
}

static void put_thread(int id, unsigned start_ticks)
{
	char name[64], path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/task/%d", folder, id);
	mkdir(path, 0700);
	snprintf(name, sizeof(name), "task/%d/stat", id);
	put_status(name, 'S', 1, start_ticks);
}

static void remove_thread(int id)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/task/%d/stat", folder, id);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static int begin(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/task", folder);
	mkdir(path, 0700);
	put_status("stat", 'R', 1, 100);
	put_thread(getpid(), 100);
	process_exit_watch_begin();
	put_thread(getpid() + 1, 200);
	put_thread(getpid() + 2, 200);
	process_exit_watch_end();
	return 0;
}

static int end(void **state)
{
	char path[PATH_MAX];

	(void)state;
	for (int i = 0; i < 4; i++)
		remove_thread(getpid() + i);
	snprintf(path, sizeof(path), "%s/stat", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/task", folder);
	rmdir(path);
	return rmdir(folder);
}

static void detects_end_of_main_thread(void **state)
{
	(void)state;
	put_status("stat", 'S', 3, 100);
	assert_false(process_exit_watch_has_ended());
	put_status("stat", 'Z', 3, 100);
	assert_true(process_exit_watch_has_ended());
}

static void waits_for_later_thread(void **state)
{
	(void)state;
	remove_thread(getpid() + 2);
	put_thread(getpid() + 3, 300);
	assert_false(process_exit_watch_has_ended());
	remove_thread(getpid() + 3);
	put_status("stat", 'Z', 2, 100);
	assert_true(process_exit_watch_has_ended());
}

static void waits_for_thread_with_reused_id(void **state)
{
	(void)state;
	put_thread(getpid() + 2, 300);
	put_status("stat", 'Z', 3, 100);
	assert_false(process_exit_watch_has_ended());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(detects_end_of_main_thread),
		cmocka_unit_test(waits_for_later_thread),
		cmocka_unit_test(waits_for_thread_with_reused_id),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
