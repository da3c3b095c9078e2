/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that fail end the process with one line and status 2, and remove unfinished files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/unfinished.h"

#define TOO_MANY_BYTES (SIZE_MAX / 2) /* malloc() refuses more than PTRDIFF_MAX */

static void alloc_too_much(void)
{
	xt_malloc(TOO_MANY_BYTES);
}

static void alloc_an_overflow(void)
{
	xt_calloc(TOO_MANY_BYTES, 4);
}

static void enlarge_too_much(void)
{
	xt_reallocarray(xt_malloc(1), TOO_MANY_BYTES, 1);
}

static void grow_too_much(void)
{
	size_t capacity = 0;
	void *array = NULL;

	xt_grow_bytes(&array, &capacity, TOO_MANY_BYTES, 8);
}

static void *run_out(void *unused)
{
	(void)unused;
	xt_malloc(TOO_MANY_BYTES);
	return NULL;
}

static void fail_in_threads(void)
{
	pthread_t threads[4];

	for (int t = 0; t < 4; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, run_out, NULL), 0);
	for (int t = 0; t < 4; t++)
		pthread_join(threads[t], NULL);
}

static char folder[] = "/tmp/xtrace-memory.XXXXXX";
static char unfinished[64], complete[64];

static void leave_files(void)
{
	unfinished_add(folder);
	unfinished_add(unfinished);
	unfinished_add(complete);
	unfinished_remove(complete);
	xt_malloc(TOO_MANY_BYTES);
}

/* A signal arrives when a file exists and is not added yet. */
static void end_while_held(void)
{
	unfinished_add(folder);
	unfinished_hold();
	raise(SIGTERM);
	unfinished_add(unfinished);
	unfinished_release();
}

/* Runs the function in a child process. Returns its status and what it wrote to stderr. */
static int run(void (*function)(void), char *text, size_t text_bytes)
{
	int ends[2], status;
	ssize_t length = 0, n;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		function();
		_exit(0);
	}
	close(ends[1]);
	while ((n = read(ends[0], text + length, text_bytes - 1 - (size_t)length)) > 0)
		length += n;
	text[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void ends_with_one_line_and_status_2(void **state)
{
	static const struct {
		void (*function)(void);
		const char *line;
	} cases[] = {
		{alloc_too_much,
		 "xtrace: cannot allocate 9223372036854775807 bytes: out of memory\n"},
		{alloc_an_overflow,
		 "xtrace: cannot allocate 18446744073709551615 bytes: out of memory\n"},
		{enlarge_too_much,
		 "xtrace: cannot allocate 9223372036854775807 bytes: out of memory\n"},
		{grow_too_much,
		 "xtrace: cannot allocate 18446744073709551608 bytes: out of memory\n"},
		{fail_in_threads,
		 "xtrace: cannot allocate 9223372036854775807 bytes: out of memory\n"},
	};
	char text[4096];

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		const char *line;

		assert_int_equal(run(cases[c].function, text, sizeof(text)), 2);
		/* Sanitizers warn before. */
		line = strstr(text, "xtrace: ");
		assert_non_null(line);
		assert_string_equal(line, cases[c].line);
	}
}

static void removes_unfinished_files(void **state)
{
	static const struct {
		void (*function)(void);
		int status;
	} cases[] = {{leave_files, 2}, {end_while_held, 128 + SIGTERM}};
	char text[4096];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(unfinished, sizeof(unfinished), "%s/unfinished", folder);
	snprintf(complete, sizeof(complete), "%s.complete", folder);
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		mkdir(folder, 0700);
		close(open(unfinished, O_CREAT | O_WRONLY, 0600));
		close(open(complete, O_CREAT | O_WRONLY, 0600));
		assert_int_equal(run(cases[c].function, text, sizeof(text)), cases[c].status);
		assert_int_equal(access(unfinished, F_OK), -1);
		assert_int_equal(access(folder, F_OK), -1);
		assert_int_equal(unlink(complete), 0);
	}
}

static void allocates_nothing_at_all(void **state)
{
	void *list[] = {xt_malloc(0), xt_calloc(0, 8), xt_reallocarray(NULL, 0, 8)};

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		assert_non_null(list[i]);
		free(list[i]);
	}
}

static void makes_texts(void **state)
{
	char *text, *copy = xt_strdup("copy"), *part = xt_strndup("partial", 4), *made;
	size_t bytes;
	FILE *stream = xt_open_memstream(&text, &bytes);

	(void)state;
	assert_string_equal(copy, "copy");
	assert_string_equal(part, "part");
	made = xt_asprintf("%s-%d", copy, 7);
	assert_string_equal(made, "copy-7");
	fputs(made, stream);
	xt_close_memstream(stream);
	assert_string_equal(text, "copy-7");
	assert_int_equal(bytes, 6);
	free(text);
	free(made);
	free(part);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_with_one_line_and_status_2),
		cmocka_unit_test(removes_unfinished_files),
		cmocka_unit_test(allocates_nothing_at_all),
		cmocka_unit_test(makes_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
