/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which traces stay; see rotation.h.
 */
#include "rotation.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "data_dir.h"
#include "info.h"
#include "log/recover.h"
#include "summary.h"

#define OLD_SUFFIX     ".old"
#define WAITING_SUFFIX ".previous"

#define ENVIRONMENT_BYTES_MAX (4u << 20)
#define LOOK_AGAIN_NS	      20000000

enum content {
	CONTENT_EMPTY,
	CONTENT_UNKNOWN, /* empty so far, but a process may still add to it */
	CONTENT_WORK,
};

/* Whether a process was started with this variable, given as NAME=VALUE. */
static bool has_variable(const char *pid, const char *variable)
{
	char *path = NULL, *text = malloc(ENVIRONMENT_BYTES_MAX + 1);
	FILE *file = NULL;
	size_t length = 0;
	bool found = false;

	if (text && asprintf(&path, "/proc/%s/environ", pid) >= 0)
		file = fopen(path, "re");
	if (file) {
		length = fread(text, 1, ENVIRONMENT_BYTES_MAX, file);
		text[length] = '\0';
		fclose(file);
	}
	for (size_t at = 0; at < length && !found; at += strlen(text + at) + 1)
		found = strcmp(text + at, variable) == 0;
	free(path);
	free(text);
	return found;
}

/* Whether a process other than this one was started with this variable. */
static bool is_set_somewhere(const char *variable)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (processes && !found && (entry = readdir(processes)))
		found = isdigit((unsigned char)entry->d_name[0]) &&
			atol(entry->d_name) != getpid() && has_variable(entry->d_name, variable);
	if (processes)
		closedir(processes);
	return found;
}

/* Whether a process was told to record into the directory. */
static bool is_awaited(const char *directory)
{
	const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
	char *whole = realpath(directory, NULL), *variable = NULL;
	bool found = false;

	if (whole && asprintf(&variable, "XTRACE_DATA=%s", whole) < 0)
		variable = NULL;
	if (variable)
		found = is_set_somewhere(variable);
	/* During exec a process has no environment, and a new one may not be listed yet. */
	if (variable && !found) {
		nanosleep(&pause, NULL);
		found = is_set_somewhere(variable);
	}
	free(variable);
	free(whole);
	return found;
}

static enum content look_into_log(const char *directory, const char *name)
{
	char *log = NULL, *spool = NULL;
	enum content content = CONTENT_WORK;
	int found;

	if (asprintf(&log, "%s/%s", directory, name) < 0)
		return CONTENT_WORK;
	found = summary_has_work(log);
	/* The spool lies there while the process runs, or if it could not be recovered. */
	if ((!found || found == -ENODATA) && asprintf(&spool, "%s" XT_SPOOL_SUFFIX, log) >= 0)
		content = access(spool, F_OK) ? CONTENT_EMPTY : CONTENT_UNKNOWN;
	free(spool);
	free(log);
	return content;
}

/* Of a trace of ours. */
static enum content look_into(const char *directory)
{
	enum content content = CONTENT_EMPTY;
	struct stat status;
	char **logs;
	size_t count;

	/* Only a folder can be removed: a link to one stays a trace that counts. */
	if (lstat(directory, &status) || !S_ISDIR(status.st_mode))
		return CONTENT_WORK;
	if (data_dir_has_foreign_file(directory) || data_dir_list_logs(directory, &logs, &count))
		return CONTENT_WORK;
	for (size_t i = 0; i < count && content != CONTENT_WORK; i++) {
		enum content log = look_into_log(directory, logs[i]);

		if (log > content)
			content = log;
	}
	data_dir_free_logs(logs, count);
	return content;
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
	complain("cannot move '%s' to '%s': %m", from, to);
	return -errno;
}

static int replace(const char *from, const char *to)
{
	int error = remove_trace(to);

	return error ? error : move(from, to);
}

static int decide(const char *path, const char *waiting, const char *old, enum rotation_when when)
{
	bool is_there = info_is_ours(path);
	enum content now = is_there ? look_into(path) : CONTENT_EMPTY;
	int error = 0;

	if (is_there && look_into(waiting) == CONTENT_EMPTY)
		return data_dir_remove(waiting);
	if (when == ROTATION_LATER && now != CONTENT_WORK &&
	    (now == CONTENT_UNKNOWN || is_awaited(path)))
		return ROTATION_WAITS;
	if (now == CONTENT_UNKNOWN)
		error = data_dir_check_idle(path);
	if (error)
		return error;
	error = replace(waiting, now == CONTENT_EMPTY ? path : old);
	if (error)
		return error;
	return now == CONTENT_EMPTY ? ROTATION_RESTORED : ROTATION_REPLACED;
}

/* Beside path. 0 or -ENOMEM; the caller frees both in any case. */
static int name_others(const char *path, char **waiting_out, char **old_out)
{
	*waiting_out = *old_out = NULL;
	if (asprintf(waiting_out, "%s" WAITING_SUFFIX, path) < 0) {
		*waiting_out = NULL;
		return -ENOMEM;
	}
	if (asprintf(old_out, "%s" OLD_SUFFIX, path) < 0) {
		*old_out = NULL;
		return -ENOMEM;
	}
	return 0;
}

int rotation_settle(const char *path, enum rotation_when when)
{
	int claims[] = {-1, -1}, error;
	char *waiting, *old;

	error = name_others(path, &waiting, &old);
	if (error || !info_is_ours(waiting)) /* (0 is ROTATION_NONE) */
		goto out;
	error = data_dir_claim(waiting, &claims[0]);
	if (!error && info_is_ours(path))
		error = data_dir_claim(path, &claims[1]);
	if (!error)
		error = decide(path, waiting, old, when);
	for (size_t c = 0; c < sizeof(claims) / sizeof(claims[0]); c++)
		if (claims[c] >= 0)
			close(claims[c]);
out:
	free(waiting);
	free(old);
	return error;
}

int rotation_begin(const char *path, char **waiting_out)
{
	char *waiting, *old;
	struct stat status;
	int error = name_others(path, &waiting, &old);

	if (!error)
		error = data_dir_check_removable(old);
	if (!error && !lstat(waiting, &status)) {
		complain("'%s' is in the way and not a trace of ours; move it away", waiting);
		error = -EEXIST;
	}
	if (!error)
		error = move(path, waiting);
	if (!error)
		*waiting_out = realpath(waiting, NULL);
	free(waiting);
	free(old);
	return error;
}
