/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace directory and its info.json.
 */
#include "data_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "diff/load/load_runs.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/new_file.h"
#include "log/write/compact.h"

#define DRAFT ".new" /* of a file that is being written */

/*
 * Like openat() with O_CLOEXEC. The descriptor is never 0, 1 or 2, so that no message goes into the
 * file if the standard streams are closed. Returns the descriptor or -errno.
 */
static int open_file(int folder, const char *name, int flags)
{
	int fd = openat(folder, name, flags | O_CLOEXEC, 0600), moved;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

/* The text of a document, with a newline. The caller frees it. NULL if memory ran out. */
static char *json_text(const cJSON *root)
{
	char *text = cJSON_Print(root), *line = NULL;

	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	cJSON_free(text);
	return line;
}

cJSON *json_new(const char *format)
{
	cJSON *root = cJSON_CreateObject();

	cJSON_AddStringToObject(root, "format", format);
	cJSON_AddNumberToObject(root, "format_version", 1);
	cJSON_AddStringToObject(root, "xtrace_version", XTRACE_VERSION);
	return root;
}

int json_print(cJSON *root)
{
	char *text = json_text(root);
	int error = text ? 0 : -ENOMEM;

	if (text)
		fputs(text, stdout);
	free(text);
	cJSON_Delete(root);
	return error;
}

/* Writes all of the text. Returns 0 or -errno. */
static int put_text(int fd, const char *text)
{
	size_t length = strlen(text), done = 0;

	while (done < length) {
		ssize_t n = write(fd, text + done, length - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Replaces a file in the folder atomically. Returns 0 or -errno. */
static int replace_file(int folder, const char *name, const char *text)
{
	char *draft = NULL;
	int fd, error;

	if (asprintf(&draft, "%s" DRAFT, name) < 0)
		return -ENOMEM;
	fd = open_file(folder, draft, O_WRONLY | O_CREAT | O_NOFOLLOW | O_TRUNC);
	error = fd < 0 ? fd : put_text(fd, text);
	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (!error && renameat(folder, draft, folder, name))
		error = -errno;
	if (error && fd >= 0)
		unlinkat(folder, draft, 0);
	free(draft);
	return error;
}

int json_write(const char *folder, const char *name, const cJSON *root)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = fd < 0 ? -errno : 0;
	char *text = json_text(root);

	if (!error)
		error = text ? replace_file(fd, name, text) : -ENOMEM;
	free(text);
	if (fd >= 0)
		close(fd);
	return error;
}

/* RFC 3339 in UTC with nanoseconds, which exceed the precision of a JSON number. */
static void format_time(char *out, size_t out_bytes, uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	char date[32];
	struct tm parts;

	gmtime_r(&seconds, &parts);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(out, out_bytes, "%s.%09uZ", date, (unsigned)(realtime_ns % 1000000000));
}

/* Returns ns since 1970, or 0 if the text has another form. */
static uint64_t read_time(const char *text)
{
	struct tm parts = {0};
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) : NULL;
	uint64_t ns = 0;

	if (!rest)
		return 0;
	if (*rest == '.')
		ns = strtoull(rest + 1, NULL, 10);
	return (uint64_t)timegm(&parts) * 1000000000 + ns;
}

static void add_number(cJSON *object, const char *name, uint64_t value)
{
	cJSON_AddNumberToObject(object, name, (double)value);
}

static void add_host(cJSON *root)
{
	cJSON *host = cJSON_AddObjectToObject(root, "host");
	struct utsname names;

	if (uname(&names))
		return;
	cJSON_AddStringToObject(host, "name", names.nodename);
	cJSON_AddStringToObject(host, "kernel", names.release);
	cJSON_AddStringToObject(host, "machine", names.machine);
}

static void add_process(cJSON *processes, const struct log_summary *summary)
{
	cJSON *process = cJSON_CreateObject();

	cJSON_AddItemToArray(processes, process);
	cJSON_AddStringToObject(process, "log", summary->name);
	add_number(process, "pid", summary->pid);
	cJSON_AddStringToObject(process, "exe", summary->exe ? summary->exe : "");
	if (summary->is_cpu) {
		add_number(process, "samples", summary->sample_count);
	} else {
		add_number(process, "launches", summary->launch_count);
		add_number(process, "kernels", summary->kernel_count);
	}
	add_number(process, "lost", summary->lost_count);
	add_number(process, "log_bytes", summary->log_bytes);
	if (!summary->is_cpu)
		cJSON_AddBoolToObject(process, "simulated_gpu", summary->simulated);
	cJSON_AddBoolToObject(process, "closed", summary->closed);
	cJSON_AddBoolToObject(process, "running", summary->running);
}

/* A process can have a log of its CUDA calls and one of its samples. They are in two lists. */
static void add_processes(cJSON *list, const struct info *info, bool are_cpu)
{
	for (size_t i = 0; i < info->process_count; i++)
		if (info->processes[i].is_cpu == are_cpu)
			add_process(list, &info->processes[i]);
}

static cJSON *build(const struct info *info)
{
	cJSON *root = json_new(DATA_DIR_FORMAT), *list;
	char start[64];
	char *cwd = getcwd(NULL, 0);

	list = cJSON_AddArrayToObject(root, "command");
	for (char **argument = info->command; *argument; argument++)
		cJSON_AddItemToArray(list, cJSON_CreateString(*argument));
	cJSON_AddStringToObject(root, "cwd", cwd ? cwd : "");
	free(cwd);
	add_host(root);
	cJSON_AddBoolToObject(root, "simulate", info->simulate);
	format_time(start, sizeof(start), info->start_realtime_ns);
	cJSON_AddStringToObject(root, "start_time", start);
	if (!info->finished)
		return root;
	add_number(root, "duration_ns", info->duration_ns);
	cJSON_AddNumberToObject(root, "exit_status", info->exit_status);
	add_processes(cJSON_AddArrayToObject(root, "processes"), info, false);
	list = cJSON_AddArrayToObject(root, "cpu");
	add_processes(list, info, true);
	if (!cJSON_GetArraySize(list))
		cJSON_DeleteItemFromObject(root, "cpu");
	return root;
}

static int create(int folder, const char *text, int *claim_out)
{
	int fd = open_file(folder, DATA_DIR_INFO, O_WRONLY | O_CREAT | O_NOFOLLOW | O_EXCL);
	int error;

	if (fd < 0)
		return fd;
	/* Other processes hold the lock only briefly, until they see that this is no trace yet. On
	 * a file system without locks, record without one. */
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	error = put_text(fd, text);
	if (error) {
		unlinkat(folder, DATA_DIR_INFO, 0);
		close(fd);
		return error;
	}
	*claim_out = fd;
	return 0;
}

int info_create(const char *data_dir, const struct info *info, int *claim_out)
{
	int folder = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;
	cJSON *root;
	char *text;

	*claim_out = -1;
	if (folder < 0)
		return -errno;
	root = build(info);
	text = json_text(root);
	cJSON_Delete(root);
	error = text ? create(folder, text, claim_out) : -ENOMEM;
	free(text);
	close(folder);
	return error;
}

int info_write(const char *data_dir, const struct info *info)
{
	cJSON *root = build(info);
	int error = json_write(data_dir, DATA_DIR_INFO, root);

	cJSON_Delete(root);
	return error;
}

int info_read(const char *data_dir, struct info *info)
{
	cJSON *root = bench_runs_read_json(data_dir, DATA_DIR_INFO, DATA_DIR_FORMAT);
	const cJSON *status = cJSON_GetObjectItem(root, "exit_status");

	*info = (struct info){.finished = cJSON_IsNumber(status)};
	if (info->finished) {
		info->exit_status = status->valueint;
		info->duration_ns =
			(uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(root, "duration_ns"));
		info->start_realtime_ns =
			read_time(cJSON_GetStringValue(cJSON_GetObjectItem(root, "start_time")));
	}
	cJSON_Delete(root);
	return info->finished ? 0 : -ENODATA;
}

bool json_has_format(const char *folder, const char *name, const char *wanted)
{
	cJSON *root = bench_runs_read_json(folder, name, wanted);
	bool has_format = root;

	cJSON_Delete(root);
	return has_format;
}

bool info_is_ours(const char *data_dir)
{
	return json_has_format(data_dir, DATA_DIR_INFO, DATA_DIR_FORMAT);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_torch_trace(const char *name)
{
	return begins_with(name, DATA_DIR_TORCH_PREFIX) && has_ending(name, DATA_DIR_TORCH_SUFFIX);
}

/* True for the files that xtrace record, report and bench leave in a trace directory. */
static bool is_our_file(const char *name)
{
	static const char *const names[] = {DATA_DIR_INFO, DATA_DIR_INFO DRAFT, DATA_DIR_REPORT,
					    DATA_DIR_GPU,  DATA_DIR_OUTPUT,	DATA_DIR_GPU DRAFT};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return has_ending(name, DATA_DIR_LOG_SUFFIX) || is_torch_trace(name) ||
	       has_ending(name, DATA_DIR_LOG_SUFFIX ".spool") ||
	       has_ending(name, DATA_DIR_LOG_SUFFIX ".debug");
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
	return (has_ending(name, DATA_DIR_LOG_SUFFIX) || has_ending(name, XT_SNAPSHOT_DRAFT)) &&
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

int data_dir_log_lock(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int state = fd < 0 ? -errno : 0;

	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB))
		state = errno == EWOULDBLOCK ? 1 : -errno;
	if (fd >= 0)
		close(fd);
	return state;
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
		if (has_ending(entry->d_name, DATA_DIR_LOG_SUFFIX) &&
		    data_dir_log_lock(dirfd(folder), entry->d_name) == 1) {
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
	fd = open_file(AT_FDCWD, info, O_RDWR);
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

char *data_dir_trim(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	return strndup(path, length);
}

int data_dir_check_owner(const char *path_given)
{
	char *path = data_dir_trim(path_given);
	int error = path ? xt_new_file_check(path) : -ENOMEM;

	if (error)
		print_error("cannot use '%s': %s", path_given, xt_new_file_error(error));
	free(path);
	return error ? -EACCES : 0;
}

char *data_dir_resolve(const char *path_given)
{
	char *path = data_dir_trim(path_given), *target;
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
	return has_ending(entry->d_name, DATA_DIR_LOG_SUFFIX);
}

int data_dir_list_logs(const char *path, char ***logs_out, size_t *count_out)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_log, alphasort);
	char **logs;
	int error = 0;

	*logs_out = NULL;
	*count_out = 0;
	if (count < 0)
		return -errno;
	logs = calloc((size_t)count + 1, sizeof(*logs));
	for (int i = 0; i < count; i++) {
		if (logs && asprintf(&logs[i], "%s/%s", path, entries[i]->d_name) < 0)
			logs[i] = NULL;
		if (!logs || !logs[i])
			error = -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	if (error) {
		data_dir_free_logs(logs, (size_t)count);
		return error;
	}
	*logs_out = logs;
	*count_out = (size_t)count;
	return 0;
}

void data_dir_free_logs(char **logs, size_t count)
{
	if (logs)
		free_list((void *const *)logs, count);
	free(logs);
}
