/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files: a link or file that another user planted is refused, everything else is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/base/new_file.h"

#define OTHER_USER 65534

static char work[] = "/tmp/xtrace-new-file-XXXXXX";

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(work) || chdir(work))
		return -1;
	return mkdir("all", 0700) || chmod("all", 01777) || mkdir("own", 0700);
}

static int teardown(void **state)
{
	char *command = NULL;
	int status;

	(void)state;
	if (chdir("/") || asprintf(&command, "rm -rf '%s'", work) < 0)
		return -1;
	status = system(command);
	free(command);
	return status;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void expect(const char *path, const char *text)
{
	char got[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
}

/* Writes "new" with the functions under test. */
static int write_new(const char *path)
{
	struct xt_new_file file;
	int error = xt_new_file_open(&file, path);

	if (error)
		return error;
	assert_int_equal(write(file.fd, "new", 3), 3);
	close(file.fd);
	error = xt_new_file_commit(&file);
	xt_new_file_close(&file);
	return error;
}

/* Only root can change the owner. */
static void give_away(const char *path)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(lchown(path, OTHER_USER, OTHER_USER), 0);
}

static void replaces_the_target_of_own_links(void **state)
{
	struct stat status;

	(void)state;
	put("own/target", "old");
	assert_int_equal(chmod("own/target", 0640), 0);
	assert_int_equal(symlink("../own/second", "all/link"), 0);
	assert_int_equal(symlink("target", "own/second"), 0);
	assert_int_equal(write_new("all/link"), 0);
	expect("own/target", "new");
	assert_int_equal(stat("own/target", &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	assert_int_equal(lstat("all/link", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(symlink("missing", "own/dangling"), 0);
	assert_int_equal(write_new("own/dangling"), 0);
	expect("own/missing", "new");
	assert_int_equal(symlink("loop", "own/loop"), 0);
	assert_int_equal(write_new("own/loop"), -ELOOP);
}

static void refuses_links_of_others_in_sticky_directories(void **state)
{
	(void)state;
	put("own/precious", "old");
	assert_int_equal(symlink("../own/precious", "all/planted"), 0);
	assert_int_equal(symlink("../own/to-make", "all/planted-new"), 0);
	assert_int_equal(symlink("all/planted", "by-way"), 0);
	assert_int_equal(symlink("../own", "all/planted-folder"), 0);
	give_away("all/planted");
	give_away("all/planted-new");
	give_away("all/planted-folder");
	assert_int_equal(write_new("all/planted"), XT_NEW_FILE_PLANTED);
	assert_int_equal(write_new("all/planted-new"), XT_NEW_FILE_PLANTED);
	assert_int_equal(write_new("by-way"), XT_NEW_FILE_PLANTED);
	assert_int_equal(xt_new_file_check("all/planted-folder"), XT_NEW_FILE_PLANTED);
	assert_int_equal(xt_new_file_check("all/planted-folder//"), XT_NEW_FILE_PLANTED);
	expect("own/precious", "old");
	assert_int_equal(access("own/to-make", F_OK), -1);
	/* Links of another user are refused in other directories too. */
	assert_int_equal(mkdir("open", 0700), 0);
	assert_int_equal(chmod("open", 0777), 0);
	assert_int_equal(symlink("../own/precious", "open/link"), 0);
	assert_int_equal(write_new("open/link"), 0);
	expect("own/precious", "new");
	give_away("open/link");
	assert_int_equal(write_new("open/link"), XT_NEW_FILE_PLANTED);
}

static void refuses_links_of_the_owner_of_the_directory(void **state)
{
	(void)state;
	put("own/shared", "old");
	assert_int_equal(mkdir("of-other", 0700), 0);
	assert_int_equal(chmod("of-other", 01777), 0);
	assert_int_equal(symlink("../own/shared", "of-other/link"), 0);
	give_away("of-other/link");
	give_away("of-other");
	assert_int_equal(write_new("of-other/link"), XT_NEW_FILE_PLANTED);
	expect("own/shared", "old");
}

static void refuses_files_of_others_in_sticky_directories(void **state)
{
	(void)state;
	put("all/file", "old");
	assert_int_equal(chmod("all/file", 0666), 0);
	assert_int_equal(mkfifo("all/pipe", 0666), 0);
	assert_int_equal(mkdir("all/folder", 0777), 0);
	give_away("all/file");
	give_away("all/pipe");
	give_away("all/folder");
	assert_int_equal(write_new("all/file"), XT_NEW_FILE_PLANTED);
	assert_int_equal(write_new("all/pipe"), XT_NEW_FILE_PLANTED);
	assert_int_equal(xt_new_file_check("all/folder"), XT_NEW_FILE_PLANTED);
	expect("all/file", "old");
}

static void keeps_other_hard_links_of_a_file(void **state)
{
	(void)state;
	put("own/first-name", "old");
	assert_int_equal(link("own/first-name", "all/second-name"), 0);
	assert_int_equal(write_new("all/second-name"), 0);
	expect("own/first-name", "old");
	expect("all/second-name", "new");
}

static void writes_devices_and_pipes_in_place(void **state)
{
	char path[64], got[8] = "";
	int ends[2];

	(void)state;
	assert_int_equal(write_new("/dev/null"), 0);
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	assert_int_equal(write_new(path), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 3);
	assert_string_equal(got, "new");
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(mkfifo("own/pipe", 0600), 0);
	ends[0] = open("own/pipe", O_RDWR | O_CLOEXEC);
	assert_int_equal(write_new("own/pipe"), 0);
	assert_int_equal(read(ends[0], got, sizeof(got)), 3);
	close(ends[0]);
}

static void follows_descriptors_to_their_files(void **state)
{
	char path[64];
	int fd;

	(void)state;
	put("own/redirected", "old");
	fd = open("own/redirected", O_WRONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write_new(path), 0);
	expect("own/redirected", "new");
	close(fd);
	/* A file without a name has only its descriptor. */
	fd = open("own/redirected", O_RDWR | O_CLOEXEC);
	assert_int_equal(unlink("own/redirected"), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	assert_int_equal(write_new(path), 0);
	assert_int_equal(access("own/redirected (deleted)", F_OK), -1);
	close(fd);
}

static void rejects_paths_that_name_no_file(void **state)
{
	(void)state;
	assert_int_equal(write_new(""), -ENOENT);
	assert_int_equal(write_new("/"), -EISDIR);
	assert_int_equal(write_new("own"), -EISDIR);
	assert_int_equal(write_new("own/.."), -EISDIR);
	assert_int_equal(write_new("own/folder/"), -EISDIR);
	assert_int_equal(write_new("own/no-folder/file"), -ENOENT);
	assert_int_equal(xt_new_file_check("own/no-folder/file"), 0);
}

static void leaves_nothing_unless_committed(void **state)
{
	struct xt_new_file file;
	char *unfinished;

	(void)state;
	assert_int_equal(xt_new_file_open(&file, "own/given-up"), 0);
	unfinished = strdup(file.unfinished);
	assert_int_equal(access(unfinished, F_OK), 0);
	close(file.fd);
	xt_new_file_close(&file);
	assert_int_equal(access(unfinished, F_OK), -1);
	assert_int_equal(access("own/given-up", F_OK), -1);
	free(unfinished);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaces_the_target_of_own_links),
		cmocka_unit_test(refuses_links_of_others_in_sticky_directories),
		cmocka_unit_test(refuses_links_of_the_owner_of_the_directory),
		cmocka_unit_test(refuses_files_of_others_in_sticky_directories),
		cmocka_unit_test(keeps_other_hard_links_of_a_file),
		cmocka_unit_test(writes_devices_and_pipes_in_place),
		cmocka_unit_test(follows_descriptors_to_their_files),
		cmocka_unit_test(rejects_paths_that_name_no_file),
		cmocka_unit_test(leaves_nothing_unless_committed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
