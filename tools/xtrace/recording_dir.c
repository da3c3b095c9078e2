/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the trace directory of a new recording.
 */
#include "recording_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "data_dir.h"
#include "info.h"
#include "rotation.h"

/* How long another xtrace may hold the directory before it counts as a recording. */
#define CLAIM_RETRIES 25
#define CLAIM_STEP_NS 20000000

static int refuse_busy(const char *path)
{
	print_error("cannot use '%s': another recording uses it; choose another directory with -o",
		    path);
	return -EBUSY;
}

static int settle_and_claim(const char *path, struct recording_dir *dir)
{
	int error = rotation_settle(path, ROTATION_NOW);

	if (error < 0 || !info_is_ours(path))
		return error < 0 ? error : 0;
	return data_dir_claim(path, &dir->older_claim);
}

/* Moves the trace at path aside, until the new recording has ended. */
static int move_aside(const char *path, struct recording_dir *dir)
{
	const struct timespec pause = {.tv_nsec = CLAIM_STEP_NS};
	int error = settle_and_claim(path, dir);

	/* xtrace report holds the locks for a moment. */
	for (int i = 0; error == -EBUSY && i < CLAIM_RETRIES; i++) {
		nanosleep(&pause, NULL);
		error = settle_and_claim(path, dir);
	}
	if (error == -EBUSY)
		return refuse_busy(path);
	if (error || !info_is_ours(path))
		return error;
	error = data_dir_check_idle(path);
	return error ? error : rotation_begin(path, &dir->older);
}

static int make_dir(const char *path, struct recording_dir *dir)
{
	int error;

	if (!mkdir(path, 0700)) {
		dir->is_made = true;
		return 0;
	}
	error = -errno;
	if (error == -EEXIST && data_dir_is_empty(path))
		return 0;
	if (error == -EEXIST && access(path, R_OK) && errno == EACCES)
		print_error("cannot use '%s': it exists and cannot be read: %s; choose another "
			    "directory with -o",
			    path, strerror(EACCES));
	else if (error == -EEXIST)
		print_error("cannot use '%s': it exists and is not an xtrace trace; "
			    "choose another directory with -o",
			    path);
	else
		print_error("cannot create '%s': %s", path, strerror(-error));
	return error;
}

/* Undoes move_aside(), unless another recording has used the place. */
static void put_back(struct recording_dir *dir)
{
	if (dir->is_made && rmdir(dir->place))
		return;
	if (dir->older && rename(dir->older, dir->place))
		print_error("cannot move '%s' to '%s': %m", dir->older, dir->place);
}

int recording_dir_create(const char *path_given, struct recording_dir *dir)
{
	int error = data_dir_check_owner(path_given);

	*dir = (struct recording_dir){.older_claim = -1, .claim = -1};
	if (error)
		return error;
	dir->place = data_dir_resolve(path_given);
	if (!dir->place)
		return -ENOMEM;
	error = move_aside(dir->place, dir);
	if (!error)
		error = make_dir(dir->place, dir);
	if (!error && !(dir->path = realpath(dir->place, NULL))) {
		error = -errno;
		print_error("cannot open '%s': %s", dir->place, strerror(-error));
	}
	if (error)
		put_back(dir);
	return error;
}

int recording_dir_begin(struct recording_dir *dir, const struct info *info)
{
	int error = info_create(dir->path, info, &dir->claim);

	if (error == -EEXIST)
		refuse_busy(dir->path);
	else if (error)
		print_error("cannot write to '%s': %s", dir->path, strerror(-error));
	if (error)
		put_back(dir);
	if (dir->older_claim >= 0)
		close(dir->older_claim);
	dir->older_claim = -1;
	return error;
}

void recording_dir_close(struct recording_dir *dir)
{
	if (dir->older_claim >= 0)
		close(dir->older_claim);
	if (dir->claim >= 0)
		close(dir->claim);
	free(dir->older);
	free(dir->path);
	free(dir->place);
	*dir = (struct recording_dir){.older_claim = -1, .claim = -1};
}
