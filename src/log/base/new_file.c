/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "log/base/grow.h"
#include "xtrace/log_format.h"
#include "xtrace/crash_buffer_format.h"

#define LINKS_MAX	 40 /* as in the kernel */
#define UNFINISHED_TRIES 100

/* The file that a path names, after following the links in its last component. */
struct place {
	int folder;	   /* the directory that contains it; -1: the path has no last component */
	char *folder_path; /* path of that directory, from the working directory */
	char *name;
	int fd;		    /* opened with O_PATH; -1: the file does not exist */
	bool is_magic;	    /* a /proc link to an open file, not to a path */
	struct stat status; /* of fd, or of the file that a magic link refers to */
};

static void close_place(struct place *place)
{
	if (place->folder >= 0)
		close(place->folder);
	if (place->fd >= 0)
		close(place->fd);
	free(place->folder_path);
	free(place->name);
	*place = (struct place){.folder = -1, .fd = -1};
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Applies the ownership rule of new_file.h to a file in this directory. */
static int check_owner(int folder, uid_t owner)
{
	struct stat status;

	if (fstat(folder, &status))
		return -errno;
	if ((status.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) || owner == geteuid() ||
	    owner == status.st_uid)
		return 0;
	return XT_NEW_FILE_PLANTED;
}

/* Removes trailing slashes. Returns the last slash that remains, or NULL. */
static const char *cut_slashes(char *path)
{
	for (size_t length = strlen(path); length > 1 && path[length - 1] == '/';)
		path[--length] = '\0';
	return strrchr(path, '/');
}

/*
 * Enters the directory of the path's last component and opens that component. Starts at place's
 * directory, or at the working directory. A path without a last component ("/", "..") is a
 * directory or an error. Removes trailing slashes from path. 0 or -errno.
 */
static int enter(struct place *place, char *path)
{
	const char *slash = cut_slashes(path), *name = slash ? slash + 1 : path;
	bool has_name = *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
	struct place next = {.folder = -1, .fd = -1};
	int base = place->folder >= 0 ? place->folder : AT_FDCWD, error = 0;
	char *part = NULL;

	if (asprintf(&part, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".") < 0)
		return -ENOMEM;
	if (asprintf(&next.folder_path, "%s%s%s", *part == '/' ? "" : place->folder_path ?: "",
		     *part != '/' && place->folder_path ? "/" : "", part) < 0) {
		next.folder_path = NULL;
		error = -ENOMEM;
	}
	next.name = strdup(name);
	if (!next.name)
		error = -ENOMEM;
	if (!error && has_name) {
		next.folder = openat(base, part, O_PATH | O_DIRECTORY | O_CLOEXEC);
		error = next.folder < 0 ? -errno : 0;
	}
	if (!error) {
		next.fd = openat(has_name ? next.folder : base, has_name ? name : path,
				 O_PATH | O_CLOEXEC | (has_name ? O_NOFOLLOW : O_DIRECTORY));
		if (next.fd < 0 && (errno != ENOENT || !has_name))
			error = -errno;
	}
	if (!error && next.fd >= 0 && fstat(next.fd, &next.status))
		error = -errno;
	free(part);
	close_place(place);
	*place = next;
	return error;
}

/*
 * Reads the link at `place`. 0 if it should be followed. Sets place->is_magic if it must be opened
 * as it is. -errno or XT_NEW_FILE_PLANTED.
 */
static int read_link(struct place *place, char text[PATH_MAX])
{
	struct statfs system;
	struct stat status;
	ssize_t length;

	/* The owner of a link can point it anywhere, even in a directory without the sticky bit. */
	if (place->status.st_uid != geteuid() && place->status.st_uid != 0)
		return XT_NEW_FILE_PLANTED;
	length = readlinkat(place->fd, "", text, PATH_MAX - 1);
	if (length < 0 || fstatfs(place->folder, &system))
		return -errno;
	text[length] = '\0';
	if (system.f_type != PROC_SUPER_MAGIC || fstatat(place->folder, place->name, &status, 0))
		return 0;
	/* Links such as /proc/self lead to directories and are ordinary. */
	if (S_ISDIR(status.st_mode))
		return 0;
	place->is_magic = true;
	place->status = status;
	return 0;
}

/*
 * 0, also if the file does not exist; -errno or XT_NEW_FILE_PLANTED. The caller calls close_place()
 * in every case.
 */
static int find_place(struct place *place, const char *path)
{
	char text[PATH_MAX];
	int error;

	*place = (struct place){.folder = -1, .fd = -1};
	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(text))
		return -ENAMETOOLONG;
	strcpy(text, path);
	error = enter(place, text);
	for (int i = 0; !error && place->fd >= 0 && S_ISLNK(place->status.st_mode); i++) {
		error = i < LINKS_MAX ? read_link(place, text) : -ELOOP;
		if (!error && !place->is_magic)
			error = enter(place, text);
	}
	if (!error && place->fd >= 0 && place->folder >= 0 && !place->is_magic)
		error = check_owner(place->folder, place->status.st_uid);
	return error;
}

/* A shell glob after --folded can expand to a log. Refuse to overwrite it. */
static bool holds_log(const struct place *place)
{
	char magic[sizeof(XT_LOG_MAGIC) - 1] = "";
	int fd = openat(place->folder, place->name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, magic, sizeof(magic));

	if (fd >= 0)
		close(fd);
	return length == (ssize_t)sizeof(magic) &&
	       (!memcmp(magic, XT_LOG_MAGIC, sizeof(magic)) ||
		!memcmp(magic, XT_CRASH_BUFFER_MAGIC, sizeof(magic)));
}

/*
 * Duplicates our own descriptor for "/dev/stdout". Opening a redirected file again would write from
 * its beginning. -1 if it is not ours.
 */
static int duplicate(const struct place *place)
{
	struct stat status;
	char *end;
	unsigned long fd = strtoul(place->name, &end, 10);

	if (*end || end == place->name || fd > INT_MAX || fstat((int)fd, &status) ||
	    !is_same(&status, &place->status))
		return -1;
	return fcntl((int)fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int open_in_place(struct xt_new_file *file, const struct place *place)
{
	struct stat status;
	int fd = place->is_magic ? duplicate(place) : -1;

	if (fd < 0)
		fd = openat(place->folder, place->name,
			    O_WRONLY | O_CLOEXEC | (place->is_magic ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	/* The file may have been replaced since the check. */
	if (fstat(fd, &status) || !is_same(&status, &place->status)) {
		close(fd);
		return -ESTALE;
	}
	file->fd = fd;
	return 0;
}

/* Stores the absolute path of `place`, if its directory still has that path. */
static int name_target(struct xt_new_file *file, const struct place *place)
{
	char *whole = realpath(place->folder_path, NULL);
	struct stat named, opened;
	int error = 0;

	if (!whole || stat(whole, &named) || fstat(place->folder, &opened))
		error = -errno;
	else if (!is_same(&named, &opened))
		error = -ESTALE;
	else if (asprintf(&file->target, "%s/%s", whole, place->name) < 0)
		error = -ENOMEM;
	if (error)
		file->target = NULL;
	free(whole);
	return error;
}

/* Creates a temporary file next to the target, so that rename() stays within one file system. */
static int create_unfinished(struct xt_new_file *file)
{
	for (int try = 0; try < UNFINISHED_TRIES; try++) {
		if (asprintf(&file->unfinished, "%s.tmp%d.%d", file->target, (int)getpid(), try) <
		    0) {
			file->unfinished = NULL;
			return -ENOMEM;
		}
		file->fd = openat(file->folder, strrchr(file->unfinished, '/') + 1,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (file->fd >= 0)
			return 0;
		free(file->unfinished);
		file->unfinished = NULL;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static void remove_unfinished(struct xt_new_file *file)
{
	if (file->unfinished && !file->is_removed)
		unlinkat(file->folder, strrchr(file->unfinished, '/') + 1, 0);
	file->is_removed = true;
}

static void release(struct xt_new_file *file)
{
	if (file->target)
		close(file->folder);
	free_all(file->name, file->unfinished, file->target);
	*file = XT_NEW_FILE_NONE;
}

static int open_target(struct xt_new_file *file, struct place *place)
{
	mode_t mode = place->fd >= 0 ? place->status.st_mode & 0777 : 0;
	int error = name_target(file, place);

	if (error)
		return error;
	file->folder = place->folder;
	file->name = place->name;
	place->folder = -1;
	place->name = NULL;
	error = create_unfinished(file);
	if (!error && mode && fchmod(file->fd, mode) < 0) {
		error = -errno;
		close(file->fd);
		remove_unfinished(file);
	}
	return error;
}

int xt_new_file_open(struct xt_new_file *file, const char *path)
{
	struct place place;
	int error = find_place(&place, path);

	*file = XT_NEW_FILE_NONE;
	if (error)
		goto out;
	if (path[strlen(path) - 1] == '/' || (place.fd >= 0 && S_ISDIR(place.status.st_mode)))
		error = -EISDIR;
	else if (place.fd < 0)
		error = open_target(file, &place);
	else if (place.is_magic || !S_ISREG(place.status.st_mode))
		error = open_in_place(file, &place);
	else if (faccessat(place.folder, place.name, W_OK, 0) < 0)
		error = -errno;
	else if (holds_log(&place))
		error = XT_NEW_FILE_IS_A_LOG;
	else
		error = open_target(file, &place);
out:
	if (error)
		release(file);
	close_place(&place);
	return error;
}

int xt_new_file_commit(struct xt_new_file *file)
{
	int error = 0;

	if (!file->unfinished)
		return 0;
	if (renameat(file->folder, strrchr(file->unfinished, '/') + 1, file->folder, file->name))
		error = -errno;
	else
		file->is_removed = true;
	remove_unfinished(file);
	return error;
}

void xt_new_file_close(struct xt_new_file *file)
{
	remove_unfinished(file);
	release(file);
}

int xt_new_file_check(const char *path)
{
	struct place place;
	int error = find_place(&place, path);

	close_place(&place);
	return error == XT_NEW_FILE_PLANTED ? error : 0;
}

const char *xt_new_file_error(int error)
{
	switch (error) {
	case XT_NEW_FILE_IS_A_LOG:
		return "it is a log of xtrace, which no output may replace";
	case XT_NEW_FILE_PLANTED:
		return "it belongs to another user, who could redirect the output; name another "
		       "place";
	default:
		return strerror(-error);
	}
}
