/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses which traces stay.
 */
#include "rotation.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "data_dir.h"
#include "finish_logs.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "log/recover/recover.h"
#include "sampler/process_read.h"

#define OLD_SUFFIX     ".old"
#define WAITING_SUFFIX ".previous"

#define LOOK_AGAIN_NS 20000000

enum content {
	CONTENT_EMPTY,
	CONTENT_STUCK,	 /* empty so far, but a crash buffer cannot be recovered */
	CONTENT_RUNNING, /* empty so far, but a process may still add to it */
	CONTENT_WORK,
};

struct trace {
	enum content content;
	char *stuck_crash_buffer; /* a crash buffer that cannot be recovered, or NULL; owned */
	int stuck_error;
};

/* True if another process was started to record into the directory. */
static bool is_set_somewhere(const char *directory)
{
	DIR *processes = opendir("/proc");
	bool found = false;
	pid_t pid;

	while (!found && (pid = proc_next_id(processes))) {
		char *value = pid != getpid() ? process_variable(pid, "XTRACE_DATA") : NULL;

		found = value && !strcmp(value, directory);
		free(value);
	}
	if (processes)
		closedir(processes);
	return found;
}

/* True if a running process was started to record into the directory. */
static bool is_awaited(const char *directory)
{
	char *whole = realpath(directory, NULL);
	bool found = whole && is_set_somewhere(whole);

	/* During exec a process has no environment, and a new one may not be listed yet. */
	if (whole && !found) {
		nap_ns(LOOK_AGAIN_NS);
		found = is_set_somewhere(whole);
	}
	free(whole);
	return found;
}

/* The caller frees it. NULL if memory ran out. */
static char *beside(const char *path, const char *suffix)
{
	char *place;

	return asprintf(&place, "%s%s", path, suffix) < 0 ? NULL : place;
}

/*
 * A killed process leaves a crash buffer with the events that its log lacks. Recover it first. A
 * running process keeps its log locked.
 */
static enum content look_into_log(struct trace *trace, const char *log)
{
	struct xt_recovered recovered;
	int error = xt_recover(log, &recovered);
	enum summary_content found = summary_find_content(log);

	if (found == SUMMARY_CONTENT)
		return CONTENT_WORK;
	if (error == -EBUSY)
		return CONTENT_RUNNING;
	if (error) {
		if (!trace->stuck_crash_buffer)
			trace->stuck_crash_buffer = beside(log, XT_CRASH_BUFFER_SUFFIX);
		trace->stuck_error = error;
		return CONTENT_STUCK;
	}
	return found == SUMMARY_EMPTY ? CONTENT_EMPTY : CONTENT_WORK;
}

/* path must be an xtrace directory (info_is_ours). */
static void look_into(struct trace *trace, const char *path)
{
	struct stat status;
	char **logs;
	size_t count;

	*trace = (struct trace){.content = CONTENT_WORK};
	/* A symlink is never removed, so treat its trace as non-empty. */
	if (lstat(path, &status) || !S_ISDIR(status.st_mode))
		return;
	if (data_dir_has_foreign_file(path) || data_dir_list_logs(path, &logs, &count))
		return;
	trace->content = CONTENT_EMPTY;
	for (size_t i = 0; i < count && trace->content != CONTENT_WORK; i++)
		trace->content = larger(trace->content, look_into_log(trace, logs[i]));
	data_dir_free_logs(logs, count);
}

static bool has_work(const char *path)
{
	struct trace trace;

	if (!info_is_ours(path))
		return false;
	look_into(&trace, path);
	free(trace.stuck_crash_buffer);
	return trace.content == CONTENT_WORK;
}

/* An interrupted removal may have left a folder with nothing in it. */
static int remove_trace(const char *path)
{
	return rmdir(path) ? data_dir_remove(path) : 0;
}

static int move(const char *from, const char *to)
{
	if (!rename(from, to))
		return 0;
	print_error("cannot move '%s' to '%s': %m", from, to);
	return -errno;
}

static int replace(const char *from, const char *to)
{
	int error = remove_trace(to);

	return error ? error : move(from, to);
}

static int report_stuck(const struct trace *trace, const char *waiting, enum rotation_when when)
{
	print_error("cannot recover '%s': %s; the older trace stays in '%s'; "
		    "move the recovery file to another directory",
		    trace->stuck_crash_buffer ? trace->stuck_crash_buffer : "a recovery file",
		    trace->stuck_error == -EBADMSG ? "it is damaged"
						   : strerror(-trace->stuck_error),
		    waiting);
	return when == ROTATION_NOW ? -EEXIST : ROTATION_STUCK;
}

/* The recording in path has no work so far, but it cannot be called empty. */
static int postpone(const struct trace *now, const char *path, const char *waiting,
		    enum rotation_when when)
{
	int error;

	if (now->content == CONTENT_STUCK)
		return report_stuck(now, waiting, when);
	if (when == ROTATION_LATER)
		return ROTATION_WAITS;
	error = data_dir_check_idle(path);
	return error ? error : -EBUSY; /* its process has just ended */
}

static int decide(const char *path, const char *waiting, const char *old, enum rotation_when when)
{
	struct trace now = {.content = CONTENT_EMPTY}, before = {.content = CONTENT_WORK};
	bool is_there = info_is_ours(path);
	int result;

	if (is_there) {
		if (when == ROTATION_KEEP)
			now.content = CONTENT_WORK;
		else
			look_into(&now, path);
		look_into(&before, waiting);
	}
	if (is_there && before.content == CONTENT_EMPTY) {
		result = data_dir_remove(waiting);
	} else if (now.content == CONTENT_EMPTY) {
		if (when == ROTATION_LATER && is_there && is_awaited(path))
			result = ROTATION_WAITS;
		else
			result = replace(waiting, path);
		result = result ? result : ROTATION_RESTORED;
	} else if (now.content != CONTENT_WORK) {
		result = postpone(&now, path, waiting, when);
	} else if (before.content != CONTENT_WORK && has_work(old)) {
		/* A trace that may be empty must not replace one that has work. */
		result = before.content == CONTENT_STUCK ? report_stuck(&before, waiting, when)
							 : -EBUSY;
	} else {
		result = replace(waiting, old);
		result = result ? result : ROTATION_REPLACED;
	}
	free_all(now.stuck_crash_buffer, before.stuck_crash_buffer);
	return result;
}

struct places {
	char *path, *waiting, *old; /* owned */
};

static void free_places(struct places *places)
{
	free_all(places->path, places->waiting, places->old);
}

/* Returns 0, or -errno after an error message. The caller frees the places in any case. */
static int find_places(struct places *places, const char *path)
{
	*places = (struct places){.path = data_dir_resolve(path)};
	if (places->path) {
		places->waiting = beside(places->path, WAITING_SUFFIX);
		places->old = beside(places->path, OLD_SUFFIX);
	}
	if (places->waiting && places->old)
		return 0;
	print_error("out of memory");
	return -ENOMEM;
}

static int check_owners(const struct places *places)
{
	int error = data_dir_check_owner(places->path);

	if (!error)
		error = data_dir_check_owner(places->waiting);
	return error ? error : data_dir_check_owner(places->old);
}

int rotation_settle(const char *path, enum rotation_when when)
{
	int claims[] = {-1, -1}, error;
	struct places places;
	struct stat status;

	error = find_places(&places, path);
	if (error || lstat(places.waiting, &status)) /* 0 is ROTATION_NONE. */
		goto out;
	error = check_owners(&places);
	if (error || !info_is_ours(places.waiting))
		goto out;
	error = data_dir_claim(places.waiting, &claims[0]);
	if (!error && info_is_ours(places.path))
		error = data_dir_claim(places.path, &claims[1]);
	if (!error)
		error = decide(places.path, places.waiting, places.old, when);
	for (size_t c = 0; c < sizeof(claims) / sizeof(claims[0]); c++)
		if (claims[c] >= 0)
			close(claims[c]);
out:
	free_places(&places);
	return error;
}

void rotation_discard(const char *path)
{
	char **logs = NULL;
	size_t count = 0;
	int claim = -1;

	if (!data_dir_claim(path, &claim) && info_is_ours(path) &&
	    !data_dir_has_foreign_file(path) && !data_dir_list_logs(path, &logs, &count) &&
	    !count && !is_awaited(path))
		data_dir_remove(path);
	data_dir_free_logs(logs, count);
	if (claim >= 0)
		close(claim);
}

/* An interrupted data_dir_remove() leaves an empty directory. */
static int make_way(const char *path)
{
	int error = rmdir(path) ? -errno : 0;

	if (!error || error == -ENOENT)
		return 0;
	if (error == -ENOTEMPTY || error == -EEXIST || error == -ENOTDIR)
		print_error("cannot replace '%s': it is not an xtrace trace; move it away", path);
	else
		print_error("cannot use '%s': %s", path, strerror(-error));
	return error;
}

/*
 * Moves the trace in DIR to DIR.previous. *waiting_out is its absolute path; the caller frees it.
 * Fails if DIR.old could not be replaced afterwards. Returns 0, or -errno after an error message.
 */
static int rotation_begin(const char *path, char **waiting_out)
{
	struct places places;
	char *whole = NULL, *waiting = NULL;
	int error = find_places(&places, path);

	if (!error)
		error = check_owners(&places);
	if (!error)
		error = make_way(places.waiting);
	if (!error)
		error = rmdir(places.old) ? data_dir_check_removable(places.old) : 0;
	/* Get the absolute path before the directory moves. */
	if (!error && !(whole = realpath(places.path, NULL))) {
		print_error("cannot find '%s': %m", places.path);
		error = -errno;
	}
	if (!error && !(waiting = beside(whole, WAITING_SUFFIX)))
		error = -ENOMEM;
	if (!error)
		error = move(places.path, places.waiting);
	if (!error)
		*waiting_out = waiting;
	else
		free(waiting);
	free(whole);
	free_places(&places);
	return error;
}

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
	int error = settle_and_claim(path, dir);

	/* xtrace report holds the locks for a moment. */
	for (int i = 0; error == -EBUSY && i < CLAIM_RETRIES; i++) {
		nap_ns(CLAIM_STEP_NS);
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
	free_all(dir->older, dir->path, dir->place);
	*dir = (struct recording_dir){.older_claim = -1, .claim = -1};
}
