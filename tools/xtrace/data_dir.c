/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace directory.
 */
#include "data_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "info.h"
#include "json_file.h"
#include "log/base/new_file.h"
#include "log/write/snapshot_file.h"

static bool ends_with(const char *text, const char *suffix)
{
	size_t text_length = strlen(text), suffix_length = strlen(suffix);

	return text_length > suffix_length &&
	       strcmp(text + text_length - suffix_length, suffix) == 0;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_torch_trace(const char *name)
{
	return !strncmp(name, DATA_DIR_TORCH_PREFIX, strlen(DATA_DIR_TORCH_PREFIX)) &&
	       ends_with(name, DATA_DIR_TORCH_SUFFIX);
}

/* True for the files that xtrace record, report and bench leave in a trace directory. */
static bool is_our_file(const char *name)
{
	static const char *const names[] = {DATA_DIR_INFO,   DATA_DIR_INFO JSON_FILE_DRAFT,
					    DATA_DIR_REPORT, DATA_DIR_GPU,
					    DATA_DIR_OUTPUT, DATA_DIR_GPU JSON_FILE_DRAFT};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return ends_with(name, DATA_DIR_LOG_SUFFIX) || is_torch_trace(name) ||
	       ends_with(name, DATA_DIR_LOG_SUFFIX ".spool") ||
	       ends_with(name, DATA_DIR_LOG_SUFFIX ".debug");
}

/* Calls look() for each file of the snapshots, until it returns false. 0 or -errno. */
static int each_snapshot(int folder, bool (*look)(int snapshots, const char *name))
{
	int fd =
		openat(folder, XT_SNAPSHOT_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *snapshots = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int error = 0;

	if (!snapshots) {
		error = -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	while (!error && (entry = readdir(snapshots)))
		if (!is_dots(entry->d_name) && !look(dirfd(snapshots), entry->d_name))
			error = errno ? -errno : -EEXIST;
	closedir(snapshots);
	return error;
}

static bool is_snapshot(int snapshots, const char *name)
{
	struct stat info;

	errno = 0;
	return (ends_with(name, DATA_DIR_LOG_SUFFIX) || ends_with(name, XT_SNAPSHOT_DRAFT)) &&
	       !fstatat(snapshots, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISREG(info.st_mode);
}

static bool remove_snapshot(int snapshots, const char *name)
{
	return !unlinkat(snapshots, name, 0);
}

/* Returns the first entry that xtrace did not create, or NULL. The caller frees it. */
static char *find_foreign_file(DIR *folder)
{
	struct dirent *entry;
	struct stat info;

	rewinddir(folder);
	while ((entry = readdir(folder))) {
		if (is_dots(entry->d_name) || (!strcmp(entry->d_name, XT_SNAPSHOT_FOLDER) &&
					       !each_snapshot(dirfd(folder), is_snapshot)))
			continue;
		if (!is_our_file(entry->d_name) ||
		    fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(info.st_mode))
			return strdup(entry->d_name);
	}
	return NULL;
}

/* True if a process holds an exclusive lock. False on file systems without locks. */
static bool is_locked(DIR *folder, const char *name)
{
	int fd = openat(dirfd(folder), name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool locked;

	if (fd < 0)
		return false;
	locked = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

bool data_dir_log_is_held(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* If this process has no descriptor left, the other is not known to have ended. */
	bool is_held = fd < 0 ? errno != ENOENT : flock(fd, LOCK_SH | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	return is_held;
}

static int cannot_open(const char *path)
{
	int error = -errno;

	print_error("cannot open '%s': %s", path, strerror(-error));
	return error;
}

/* Each process locks its log while it writes to it, even after xtrace has ended. */
int data_dir_check_idle(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int error = 0;

	if (!folder)
		return cannot_open(path);
	while (!error && (entry = readdir(folder)))
		if (ends_with(entry->d_name, DATA_DIR_LOG_SUFFIX) &&
		    is_locked(folder, entry->d_name)) {
			print_error("cannot replace '%s/%s': a process still writes it; choose "
				    "another directory with -o",
				    path, entry->d_name);
			error = -ETXTBSY;
		}
	closedir(folder);
	return error;
}

/* Delete info.json last. If interrupted, the directory is still recognised as a trace. */
static int remove_files(DIR *folder)
{
	struct dirent *entry;
	int error = each_snapshot(dirfd(folder), remove_snapshot);

	if (!error && unlinkat(dirfd(folder), XT_SNAPSHOT_FOLDER, AT_REMOVEDIR))
		error = -errno;
	if (error && error != -ENOENT)
		return error;
	rewinddir(folder);
	while ((entry = readdir(folder)))
		if (!is_dots(entry->d_name) && strcmp(entry->d_name, DATA_DIR_INFO) != 0 &&
		    unlinkat(dirfd(folder), entry->d_name, 0))
			return -errno;
	return unlinkat(dirfd(folder), DATA_DIR_INFO, 0) ? -errno : 0;
}

void data_dir_remove_torch_trace(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	if (!folder) {
		cannot_open(path);
		return;
	}
	while ((entry = readdir(folder)))
		if (is_torch_trace(entry->d_name) && unlinkat(dirfd(folder), entry->d_name, 0))
			print_error("cannot remove '%s/%s': %m", path, entry->d_name);
	closedir(folder);
}

bool data_dir_has_foreign_file(const char *path)
{
	DIR *folder = opendir(path);
	char *foreign = folder ? find_foreign_file(folder) : NULL;
	bool has = !folder || foreign;

	free(foreign);
	if (folder)
		closedir(folder);
	return has;
}

int data_dir_check_removable(const char *path)
{
	DIR *folder = NULL;
	char *foreign = NULL;
	struct stat info;
	int error = 0;

	if (lstat(path, &info))
		return errno == ENOENT ? 0 : cannot_open(path);
	if (!S_ISDIR(info.st_mode) || !info_is_ours(path)) {
		print_error("cannot replace '%s': it is not an xtrace trace; move it away", path);
		return -EEXIST;
	}
	error = data_dir_check_idle(path);
	if (error)
		return error;
	folder = opendir(path);
	if (!folder)
		return cannot_open(path);
	foreign = find_foreign_file(folder);
	if (foreign) {
		print_error("cannot replace '%s': '%s' in it is not part of a trace; move it away",
			    path, foreign);
		error = -EEXIST;
	}
	free(foreign);
	closedir(folder);
	return error;
}

int data_dir_remove(const char *path)
{
	int error = data_dir_check_removable(path);
	DIR *folder;

	if (error)
		return error;
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? 0 : cannot_open(path);
	error = remove_files(folder);
	if (!error && rmdir(path))
		error = -errno;
	if (error)
		print_error("cannot remove '%s': %s", path, strerror(-error));
	closedir(folder);
	return error;
}

int data_dir_claim(const char *path, int *claim_out)
{
	struct stat opened, there;
	char *info = NULL;
	int fd, error = 0;

	*claim_out = -1;
	if (asprintf(&info, "%s/" DATA_DIR_INFO, path) < 0)
		return -ENOMEM;
	fd = json_file_open(AT_FDCWD, info, O_RDWR);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		error = -EBUSY;
	/* Another xtrace may have moved it meanwhile and created its own. */
	if (fd >= 0 && !error &&
	    (fstat(fd, &opened) || stat(info, &there) || opened.st_ino != there.st_ino))
		error = -EBUSY;
	free(info);
	if (!error)
		*claim_out = fd < 0 ? -1 : fd;
	else
		close(fd);
	return error;
}

bool data_dir_is_empty(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool empty = true;

	if (!folder)
		return false;
	while (empty && (entry = readdir(folder)))
		empty = is_dots(entry->d_name);
	closedir(folder);
	return empty;
}

/* Removes trailing slashes. The caller frees the result. */
static char *trim(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	return strndup(path, length);
}

int data_dir_check_owner(const char *path_given)
{
	char *path = trim(path_given);
	int error = path ? xt_new_file_check(path) : -ENOMEM;

	if (error)
		print_error("cannot use '%s': %s", path_given, xt_new_file_error(error));
	free(path);
	return error ? -EACCES : 0;
}

char *data_dir_resolve(const char *path_given)
{
	char *path = trim(path_given), *target;
	struct stat status;

	if (!path || lstat(path, &status) || !S_ISLNK(status.st_mode))
		return path;
	target = realpath(path, NULL);
	if (!target)
		return path;
	free(path);
	return target;
}

static int is_log(const struct dirent *entry)
{
	return ends_with(entry->d_name, DATA_DIR_LOG_SUFFIX);
}

int data_dir_list_logs(const char *path, char ***names_out, size_t *count_out)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_log, alphasort);
	char **names;
	int error = 0;

	*names_out = NULL;
	*count_out = 0;
	if (count < 0)
		return -errno;
	names = calloc((size_t)count + 1, sizeof(*names));
	for (int i = 0; i < count; i++) {
		if (names)
			names[i] = strdup(entries[i]->d_name);
		if (!names || !names[i])
			error = -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	if (error) {
		data_dir_free_logs(names, (size_t)count);
		return error;
	}
	*names_out = names;
	*count_out = (size_t)count;
	return 0;
}

void data_dir_free_logs(char **names, size_t count)
{
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}
