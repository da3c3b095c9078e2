/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.json; see info.h.
 */
#include "info.h"

#include <cjson/cJSON.h>
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

#include "data_dir.h"

#define INFO_BYTES_MAX (64 << 20)

/* RFC 3339 in UTC, with nanoseconds: a JSON number would not hold them. */
static void format_time(char *out, size_t out_bytes, uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	char date[32];
	struct tm parts;

	gmtime_r(&seconds, &parts);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(out, out_bytes, "%s.%09uZ", date, (unsigned)(realtime_ns % 1000000000));
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
	add_number(process, "launches", summary->launch_count);
	add_number(process, "kernels", summary->kernel_count);
	add_number(process, "lost", summary->lost_count);
	add_number(process, "log_bytes", summary->log_bytes);
	cJSON_AddBoolToObject(process, "simulated_gpu", summary->simulated);
	cJSON_AddBoolToObject(process, "closed", summary->closed);
	cJSON_AddBoolToObject(process, "running", summary->running);
}

static cJSON *build(const struct info *info)
{
	cJSON *root = cJSON_CreateObject(), *list;
	char start[64];
	char *cwd = getcwd(NULL, 0);

	cJSON_AddStringToObject(root, "format", DATA_DIR_FORMAT);
	cJSON_AddNumberToObject(root, "format_version", 1);
	cJSON_AddStringToObject(root, "xtrace_version", XTRACE_VERSION);
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
	list = cJSON_AddArrayToObject(root, "processes");
	for (size_t i = 0; i < info->process_count; i++)
		add_process(list, &info->processes[i]);
	return root;
}

static int write_text(int fd, const char *text)
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

/* To be freed. */
static char *make_text(const struct info *info)
{
	cJSON *root = build(info);
	char *text = cJSON_Print(root), *line = NULL;

	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	cJSON_free(text);
	cJSON_Delete(root);
	return line;
}

int info_open(int folder, const char *name, int flags)
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

static int open_new(int folder, const char *name, int how)
{
	return info_open(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | how);
}

static int replace(int folder, const char *text)
{
	int fd = open_new(folder, DATA_DIR_INFO_DRAFT, O_TRUNC), error;

	if (fd < 0)
		return fd;
	error = write_text(fd, text);
	if (close(fd) && !error)
		error = -errno;
	if (!error && renameat(folder, DATA_DIR_INFO_DRAFT, folder, DATA_DIR_INFO))
		error = -errno;
	if (error)
		unlinkat(folder, DATA_DIR_INFO_DRAFT, 0);
	return error;
}

static int create(int folder, const char *text, int *claim_out)
{
	int fd = open_new(folder, DATA_DIR_INFO, O_EXCL), error;

	if (fd < 0)
		return fd;
	/* Nobody can hold it for longer than it takes to see that it is no trace yet. On a file
	 * system without locks the recording is made all the same. */
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	error = write_text(fd, text);
	if (error) {
		unlinkat(folder, DATA_DIR_INFO, 0);
		close(fd);
		return error;
	}
	*claim_out = fd;
	return 0;
}

static int write_to(const char *data_dir, const struct info *info, int *claim_out)
{
	int folder = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;
	char *text;

	if (folder < 0)
		return -errno;
	text = make_text(info);
	if (!text)
		error = -ENOMEM;
	else
		error = claim_out ? create(folder, text, claim_out) : replace(folder, text);
	free(text);
	close(folder);
	return error;
}

int info_create(const char *data_dir, const struct info *info, int *claim_out)
{
	*claim_out = -1;
	return write_to(data_dir, info, claim_out);
}

int info_write(const char *data_dir, const struct info *info)
{
	return write_to(data_dir, info, NULL);
}

/* The whole file, to be freed; NULL if it cannot be had. */
static char *read_file(const char *folder, const char *name, size_t *bytes_out)
{
	char *path = NULL, *text = NULL;
	struct stat about;
	FILE *file = NULL;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return NULL;
	file = fopen(path, "re");
	if (!file || fstat(fileno(file), &about) || !S_ISREG(about.st_mode) ||
	    about.st_size > INFO_BYTES_MAX)
		goto out;
	text = malloc((size_t)about.st_size + 1);
	if (text)
		*bytes_out = fread(text, 1, (size_t)about.st_size, file);
out:
	if (file)
		fclose(file);
	free(path);
	return text;
}

bool info_is_ours(const char *data_dir)
{
	size_t text_bytes = 0;
	char *text = read_file(data_dir, DATA_DIR_INFO, &text_bytes);
	cJSON *root = text ? cJSON_ParseWithLength(text, text_bytes) : NULL;
	const char *format = cJSON_GetStringValue(cJSON_GetObjectItem(root, "format"));
	bool ours = format && strcmp(format, DATA_DIR_FORMAT) == 0;

	cJSON_Delete(root);
	free(text);
	return ours;
}
