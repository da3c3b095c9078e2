/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.json of a trace directory.
 */
#include "info.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "data_dir.h"
#include "diff/load/load_runs.h"
#include "json_file.h"

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

static bool has_cpu_logs(const struct info *info)
{
	for (size_t i = 0; i < info->process_count; i++)
		if (info->processes[i].is_cpu)
			return true;
	return false;
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
	add_processes(cJSON_AddArrayToObject(root, "processes"), info, false);
	if (has_cpu_logs(info))
		add_processes(cJSON_AddArrayToObject(root, "cpu"), info, true);
	return root;
}

/* The caller frees it. */
static char *make_text(const struct info *info)
{
	cJSON *root = build(info);
	char *text = json_file_text(root);

	cJSON_Delete(root);
	return text;
}

static int create(int folder, const char *text, int *claim_out)
{
	int fd = json_file_open(folder, DATA_DIR_INFO, O_WRONLY | O_CREAT | O_NOFOLLOW | O_EXCL);
	int error;

	if (fd < 0)
		return fd;
	/* Other processes hold the lock only briefly, until they see that this is no trace yet. On
	 * a file system without locks, record without one. */
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	error = json_file_put(fd, text);
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
		error = claim_out ? create(folder, text, claim_out)
				  : json_file_replace(folder, DATA_DIR_INFO, text);
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

bool info_is_ours(const char *data_dir)
{
	cJSON *root = bench_runs_read_json(data_dir, DATA_DIR_INFO);
	const char *format = cJSON_GetStringValue(cJSON_GetObjectItem(root, "format"));
	bool ours = format && strcmp(format, DATA_DIR_FORMAT) == 0;

	cJSON_Delete(root);
	return ours;
}
