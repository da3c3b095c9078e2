/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XTRACE_DEBUG: each domain writes its lines if it is enabled, and nothing otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/runtime/log_message.h"

static const char *const names[DEBUG_DOMAINS] = {"process", "writer", "cupti", "stack",
						 "python",  "nvtx",   "memory"};

static char folder[] = "/tmp/xtrace-debug.XXXXXX", log_path[PATH_MAX];

static int create_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(log_path, sizeof(log_path), "%s/a.xtr", folder);
	return 0;
}

static int delete_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* Writes a line to each domain, then returns the file's text; NULL if there is no file. */
static char *log_to_all(const char *list)
{
	static char text[4096];
	char path[PATH_MAX + 8];
	size_t bytes;
	FILE *file;

	debug_log_enable(list);
	assert_int_equal(debug_log_open(log_path), 0);
	for (int d = 0; d < DEBUG_DOMAINS; d++)
		debug_log((enum debug_domain)d, "line %d of %s", d, names[d]);
	debug_log_abandon();
	snprintf(path, sizeof(path), "%s.debug", log_path);
	file = fopen(path, "r");
	if (!file)
		return NULL;
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	fclose(file);
	unlink(path);
	return text;
}

static void writes_nothing_when_off(void **state)
{
	(void)state;
	assert_null(log_to_all(NULL));
	assert_null(log_to_all(""));
	assert_null(log_to_all(","));
}

static void writes_each_domain_alone(void **state)
{
	(void)state;
	for (int d = 0; d < DEBUG_DOMAINS; d++) {
		char *text = log_to_all(names[d]), expected[64];

		assert_non_null(text);
		snprintf(expected, sizeof(expected), " %-8sline %d of %s\n", names[d], d, names[d]);
		assert_non_null(strstr(text, expected));
		assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
	}
}

static void writes_listed_domains(void **state)
{
	char *text = log_to_all("writer,,stack,");

	(void)state;
	assert_non_null(strstr(text, "line 1 of writer\n"));
	assert_non_null(strstr(text, "line 3 of stack\n"));
	assert_null(strstr(text, "cupti"));
	text = log_to_all("all");
	for (int d = 0; d < DEBUG_DOMAINS; d++)
		assert_non_null(strstr(text, names[d]));
}

static void cuts_a_long_line(void **state)
{
	char path[PATH_MAX + 8], text[4096];
	ssize_t bytes;
	int fd;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	debug_log_enable("cupti");
	assert_int_equal(debug_log_open(log_path), 0);
	errno = EDOM;
	debug_log(DEBUG_CUPTI, "%s", text);
	assert_int_equal(errno, EDOM);
	snprintf(path, sizeof(path), "%s.debug", log_path);
	fd = open(path, O_RDONLY);
	bytes = read(fd, text, sizeof(text));
	assert_int_equal(bytes, 1023);
	assert_int_equal(text[bytes - 1], '\n');
	close(fd);
	assert_int_equal(debug_log_open(log_path), -EEXIST);
	unlink(path);
	debug_log_abandon();
}

static void unknown_domain_enables_nothing(void **state)
{
	char *text = log_to_all("writr,cupti");

	(void)state;
	assert_non_null(strstr(text, "line 2 of cupti\n"));
	assert_null(strstr(text, "writer"));
	assert_null(log_to_all("writr"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_nothing_when_off),
		cmocka_unit_test(writes_each_domain_alone),
		cmocka_unit_test(writes_listed_domains),
		cmocka_unit_test(cuts_a_long_line),
		cmocka_unit_test(unknown_domain_enables_nothing),
	};

	return cmocka_run_group_tests(tests, create_folder, delete_folder);
}
