/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for libcupti, over folders created by the test. Started under the name of a Python
 * interpreter, the test prints what it finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/cupti/cupti.h"
#include "inject/runtime/machine.h"
#include "support.h"

static char folder[PATH_MAX];

static const char *path_of(const char *relative)
{
	static char paths[4][2 * PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, relative);
	return path;
}

/* Creates a file and its folders, empty or as a copy. */
static void make_file(const char *relative, const char *copied_from)
{
	char path[2 * PATH_MAX];
	struct stat status;
	int in = -1, out;

	snprintf(path, sizeof(path), "%s", path_of(relative));
	for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	assert_true(out >= 0);
	if (copied_from) {
		in = open(copied_from, O_RDONLY);
		assert_true(in >= 0);
		assert_int_equal(fstat(in, &status), 0);
		assert_int_equal(sendfile(out, in, NULL, (size_t)status.st_size), status.st_size);
		close(in);
	}
	close(out);
}

/* Asserts the next candidate below the test's folder. */
static void assert_next(struct cupti_search *search, const char *relative, const char *rule)
{
	struct cupti_candidate candidate;

	do {
		if (!cupti_search_next(search, &candidate))
			fail_msg("%s is not found", relative);
	} while (strncmp(candidate.path, folder, strlen(folder)));
	assert_string_equal(candidate.path, path_of(relative));
	assert_string_equal(candidate.rule, rule);
}

/* Only bare names and paths outside the test's folder remain. */
static void assert_rest(struct cupti_search *search)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	struct cupti_candidate candidate;
	unsigned count = 0;

	while (cupti_search_next(search, &candidate)) {
		if (candidate.path[0] == '/') {
			assert_int_equal(count, 0); /* the loader's own search comes last */
			assert_int_not_equal(strncmp(candidate.path, folder, strlen(folder)), 0);
			continue;
		}
		assert_true(count < 3);
		assert_string_equal(candidate.path, names[count++]);
		assert_string_equal(candidate.rule, "by the loader's path");
	}
	assert_int_equal(count, 3);
	assert_false(cupti_search_next(search, &candidate));
}

#define IN_TOOLKIT "in a CUDA toolkit"
#define IN_PYTHON  "beside the Python packages in use"

static void tries_only_requested_path(void **unused)
{
	struct cupti_candidate candidate;
	struct cupti_search *search;

	(void)unused;
	make_file("home/lib64/libcupti.so.13", NULL);
	setenv("CUDA_HOME", path_of("home"), 1);
	/* Tried even if missing, so that the loader's error is reported. */
	search = cupti_search_begin("/nowhere/libcupti.so");
	assert_non_null(search);
	assert_true(cupti_search_next(search, &candidate));
	assert_string_equal(candidate.path, "/nowhere/libcupti.so");
	assert_string_equal(candidate.rule, "named by XTRACE_CUPTI");
	assert_false(cupti_search_next(search, &candidate));
	assert_string_equal(cupti_search_places(search), "/nowhere/libcupti.so");
	cupti_search_end(search);
}

static void finds_toolkit(void **unused)
{
	struct cupti_search *search;

	(void)unused;
	make_file("home/extras/CUPTI/lib64/libcupti.so.12", NULL);
	make_file("home/extras/CUPTI/lib64/libcupti.so.13", NULL);
	make_file("home/extras/CUPTI/lib64/libcupti.so", NULL); /* used for linking */
	make_file("home/extras/CUPTI/lib64/libcupti_static.a", NULL);
	make_file("home/lib64/libcupti.so.13", NULL);
	make_file("path/targets/" MACHINE_CUDA_TARGET "/lib/libcupti.so.12", NULL);
	setenv("CUDA_HOME", path_of("home"), 1);
	setenv("CUDA_PATH", path_of("path"), 1);
	search = cupti_search_begin("");
	assert_non_null(search);
	assert_next(search, "home/extras/CUPTI/lib64/libcupti.so.13", IN_TOOLKIT);
	assert_next(search, "home/extras/CUPTI/lib64/libcupti.so.12", IN_TOOLKIT);
	assert_next(search, "home/lib64/libcupti.so.13", IN_TOOLKIT);
	assert_next(search, "path/targets/" MACHINE_CUDA_TARGET "/lib/libcupti.so.12", IN_TOOLKIT);
	assert_rest(search);
	cupti_search_end(search);
}

/* A duplicate folder, a file that disappears, an empty and an invalid variable. */
static void skips_odd_toolkits(void **unused)
{
	struct cupti_search *search;

	(void)unused;
	make_file("home/lib64/libcupti.so.12", NULL);
	make_file("home/lib64/libcupti.so.13", NULL);
	setenv("CUDA_HOME", path_of("home"), 1);
	setenv("CUDA_PATH", path_of("home"), 1);
	search = cupti_search_begin(NULL);
	assert_int_equal(unlink(path_of("home/lib64/libcupti.so.13")), 0);
	assert_next(search, "home/lib64/libcupti.so.12", IN_TOOLKIT);
	assert_rest(search);
	cupti_search_end(search);
	setenv("CUDA_HOME", "", 1);
	setenv("CUDA_PATH", path_of("not-there"), 1);
	search = cupti_search_begin("");
	assert_rest(search);
	cupti_search_end(search);
}

/*
 * A libcupti already loaded comes first, then packages of the running interpreter, then toolkits.
 */
static void prefers_loaded_library(void **unused)
{
	static const char *const found[] = {
		"site-packages/nvidia/cu13/lib/libcupti.so.13",
		"site-packages/nvidia/cuda_cupti/lib/libcupti.so.12",
		"site-packages/nvidia/other/lib/libcupti.so.11",
		"site-packages/triton/backends/nvidia/lib/cupti/libcupti.so.12",
	};
	struct cupti_search *search;
	char relative[256];
	void *loaded, *module;

	(void)unused;
	for (size_t i = sizeof(found) / sizeof(*found); i-- > 0;) {
		snprintf(relative, sizeof(relative), "lib/python3.12/%s", found[i]);
		make_file(relative, NULL);
	}
	make_file("lib/python3.12/site-packages/some/module.so", PLUGIN_A);
	make_file("elsewhere/libcupti.so.99", PLUGIN_B);
	make_file("home/lib64/libcupti.so.13", NULL);
	setenv("CUDA_HOME", path_of("home"), 1);
	module = dlopen(path_of("lib/python3.12/site-packages/some/module.so"), RTLD_NOW);
	loaded = dlopen(path_of("elsewhere/libcupti.so.99"), RTLD_NOW);
	assert_non_null(module);
	assert_non_null(loaded);
	search = cupti_search_begin("");
	assert_next(search, "elsewhere/libcupti.so.99", "already loaded in the process");
	for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
		snprintf(relative, sizeof(relative), "lib/python3.12/%s", found[i]);
		assert_next(search, relative, IN_PYTHON);
	}
	assert_next(search, "home/lib64/libcupti.so.13", IN_TOOLKIT);
	assert_rest(search);
	assert_string_equal(cupti_search_places(search),
			    "the libraries already loaded, the Python packages in use, CUDA_HOME, "
			    "CUDA_PATH, /usr/local/cuda*, the loader's path");
	cupti_search_end(search);
	dlclose(loaded);
	dlclose(module);
}

/* Keeps the first candidates and overwrites nothing. */
static void limits_candidates(void **unused)
{
	struct cupti_candidate candidate;
	struct cupti_search *search;
	unsigned count = 0;

	(void)unused;
	for (unsigned i = 0; i < 100; i++) {
		char relative[64];

		snprintf(relative, sizeof(relative), "home/lib64/libcupti.so.%u", 100 + i);
		make_file(relative, NULL);
	}
	setenv("CUDA_HOME", path_of("home"), 1);
	search = cupti_search_begin("");
	assert_next(search, "home/lib64/libcupti.so.199", IN_TOOLKIT);
	while (cupti_search_next(search, &candidate))
		count++;
	assert_in_range(count, 1, 99);
	cupti_search_end(search);
}

/* An interpreter without loaded packages: its virtual environment's packages, then its own. */
static void finds_packages_of_interpreter(void **unused)
{
	char expected[4 * PATH_MAX], output[4 * PATH_MAX];
	char exe[PATH_MAX];
	size_t length = 0;
	int ends[2], status;
	ssize_t n;

	(void)unused;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	assert_true(n > 0);
	exe[n] = '\0';
	make_file("usr/bin/python3.11", exe);
	make_file("usr/lib/python3/dist-packages/nvidia/cuda_cupti/lib/libcupti.so.12", NULL);
	make_file("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13", NULL);
	assert_int_equal(pipe(ends), 0);
	if (!fork()) {
		dup2(ends[1], STDOUT_FILENO);
		setenv("VIRTUAL_ENV", path_of("venv"), 1);
		execl(path_of("usr/bin/python3.11"), "python3.11", "list", folder, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while ((n = read(ends[0], output + length, sizeof(output) - length - 1)) > 0)
		length += (size_t)n;
	output[length] = '\0';
	close(ends[0]);
	wait(&status);
	assert_int_equal(status, 0);
	snprintf(expected, sizeof(expected),
		 "%s/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13\n"
		 "%s/usr/lib/python3/dist-packages/nvidia/cuda_cupti/lib/libcupti.so.12\n",
		 folder, folder);
	assert_string_equal(output, expected);
}

/* Prints the candidates below a folder, one per line. */
static int list(const char *below)
{
	struct cupti_search *search = cupti_search_begin("");
	struct cupti_candidate candidate;

	while (search && cupti_search_next(search, &candidate))
		if (!strncmp(candidate.path, below, strlen(below)))
			printf("%s\n", candidate.path);
	cupti_search_end(search);
	return 0;
}

static int set_up(void **unused)
{
	(void)unused;
	unsetenv("CUDA_HOME");
	unsetenv("CUDA_PATH");
	unsetenv("VIRTUAL_ENV");
	folder_make(folder);
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	folder_remove(folder);
	return 0;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(tries_only_requested_path), TEST(finds_toolkit),
		TEST(skips_odd_toolkits),	 TEST(prefers_loaded_library),
		TEST(limits_candidates),	 TEST(finds_packages_of_interpreter),
	};

	if (argc == 3 && !strcmp(argv[1], "list"))
		return list(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
