/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace pause and xtrace resume: ask running processes to pause or resume recording. The request
 * is a word in the crash buffer of each process. The tracer polls it, and confirms in the same
 * word.
 */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data_dir.h"
#include "xtrace/crash_buffer_format.h"

#define CRASH_BUFFER_ENDING ".xtr.spool"

#define CONFIRM_TIMEOUT_MS 1000
#define CONFIRM_POLL_MS	   2

/* Waits until the tracer, which polls the word every few ms, or another request changes it. */
static bool is_confirmed(int fd, uint32_t word)
{
	const struct timespec pause = {0, CONFIRM_POLL_MS * 1000000l};
	uint32_t now;

	for (int waited_ms = 0; waited_ms < CONFIRM_TIMEOUT_MS; waited_ms += CONFIRM_POLL_MS) {
		if (pread(fd, &now, sizeof(now),
			  offsetof(struct xt_crash_buffer_header, request)) != sizeof(now) ||
		    now != word)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/*
 * Sends a request to the process that owns the crash buffer. Returns 0, -EBADMSG if the file is not
 * a crash buffer, -ETIME if the process did not confirm, or another -errno.
 */
static int send_request(const char *path, enum xt_crash_buffer_request request)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const off_t place = offsetof(struct xt_crash_buffer_header, request);
	struct stat status;
	uint8_t magic[8];
	uint32_t word;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
	    memcmp(magic, XT_CRASH_BUFFER_MAGIC, sizeof(magic)) != 0 ||
	    pread(fd, &word, sizeof(word), place) != sizeof(word)) {
		close(fd);
		return -EBADMSG;
	}
	word = (word / XT_REQUEST_SEQUENCE + 1) * XT_REQUEST_SEQUENCE | request;
	if (pwrite(fd, &word, sizeof(word), place) != sizeof(word))
		error = -EIO;
	else if (!is_confirmed(fd, word))
		error = -ETIME;
	close(fd);
	return error;
}

static int silent_count; /* processes that did not confirm */

static bool request_one(const char *path, enum xt_crash_buffer_request request)
{
	int error = send_request(path, request);

	silent_count += error == -ETIME;
	if (error == -ETIME)
		print_error("cannot reach the process of '%s': it is stopped, or it has ended",
			    path);
	else if (error)
		print_error("cannot use '%s': %s", path,
			    error == -EBADMSG ? "it is not a recovery file of xtrace"
					      : strerror(-error));
	return !error;
}

/*
 * Requests to all processes that record into the directory. Returns how many confirmed, or -1 if it
 * cannot be read.
 */
static int request_directory(const char *directory, enum xt_crash_buffer_request request)
{
	char **logs, *path;
	size_t log_count;
	int confirmed = 0;

	if (data_dir_list_logs(directory, &logs, &log_count))
		return -1;
	for (size_t i = 0; i < log_count; i++) {
		if (asprintf(&path, "%s/%s.spool", directory, logs[i]) < 0)
			break;
		if (!access(path, F_OK))
			confirmed += request_one(path, request);
		free(path);
	}
	data_dir_free_logs(logs, log_count);
	return confirmed;
}

/*
 * Requests to one process, which has its crash buffer mapped. Returns how many confirmed, or -1
 * if its maps cannot be read.
 */
static int request_process(const char *pid, enum xt_crash_buffer_request request)
{
	char *line = NULL, *last = NULL;
	size_t line_bytes = 0;
	char maps[64];
	ssize_t length;
	int confirmed = 0;
	FILE *file;

	snprintf(maps, sizeof(maps), "/proc/%s/maps", pid);
	file = fopen(maps, "re");
	if (!file)
		return -1;
	while ((length = getline(&line, &line_bytes, file)) > 0) {
		char *path = strchr(line, '/');
		size_t ending = strlen(CRASH_BUFFER_ENDING);

		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (!path || strlen(path) < ending ||
		    strcmp(path + strlen(path) - ending, CRASH_BUFFER_ENDING) != 0 ||
		    (last && !strcmp(last, path)))
			continue;
		free(last);
		last = strdup(path);
		confirmed += request_one(path, request);
	}
	free(last);
	free(line);
	fclose(file);
	return confirmed;
}

static int run_request(const struct command *command, int argc, char **argv,
		       enum xt_crash_buffer_request request)
{
	const char *target = "xtrace.data";
	struct option_list list;
	int status, count, changed;

	command_list_options(command, &list);
	status = command_parse(command, &list, NULL, argc, argv, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (count > 1)
		return command_unexpected(argv[2]);
	if (count)
		target = argv[1];
	if (access(target, F_OK) && strspn(target, "0123456789") == strlen(target))
		changed = request_process(target, request);
	else
		changed = request_directory(target, request);
	if (changed < 0 && access(target, F_OK))
		print_error("cannot use '%s': it does not exist; name the directory of a recording "
			    "or a process id",
			    target);
	else if (changed < 0)
		print_error(
			"cannot use '%s': it is neither a trace directory nor the id of a process "
			"that you can inspect",
			target);
	else if (!changed && !silent_count)
		print_error(
			"cannot %s '%s': no process there has started CUDA yet, or all have ended",
			command->name, target);
	return changed > 0 ? STATUS_OK : STATUS_FAILED;
}

static int run_pause(const struct command *command, int argc, char **argv)
{
	return run_request(command, argc, argv, XT_REQUEST_PAUSE);
}

static int run_resume(const struct command *command, int argc, char **argv)
{
	return run_request(command, argc, argv, XT_REQUEST_RECORD);
}

static const char details[] =
	"DIR is the trace directory of a running recording (default: xtrace.data). The request "
	"goes\n"
	"to all its processes. PID names a single process. While recording is paused, "
	"allocations,\n"
	"NVTX ranges and CUDA graph construction are still recorded.\n\n"
	"Exit status: 0 if at least one process confirmed the request, else 2.\n";

const struct command command_pause = {
	.name = "pause",
	.arguments = "[DIR|PID]",
	.summary = "Pause recording in running processes",
	.details = details,
	.run = run_pause,
};

const struct command command_resume = {
	.name = "resume",
	.arguments = "[DIR|PID]",
	.summary = "Resume recording in paused processes",
	.details = details,
	.run = run_resume,
};
