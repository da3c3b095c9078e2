/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace pause and xtrace resume: tell the tracer in processes that run to leave out what they do,
 * or to go on. The wish is a word in each process's crash buffer, which the tracer looks at, and in which it
 * says that it is done.
 */
#include "command.h"
#include "data_dir.h"

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

#include "xtrace/crash_buffer_format.h"

#define CRASH_BUFFER_ENDING ".xtr.spool"

#define ANSWER_WAIT_MS 1000
#define ANSWER_LOOK_MS 2

/* The tracer looks at the word every few ms. Did it do what it says, or another wish by now? */
static bool is_answered(int fd, uint32_t word)
{
	const struct timespec pause = {0, ANSWER_LOOK_MS * 1000000l};
	uint32_t now;

	for (int waited_ms = 0; waited_ms < ANSWER_WAIT_MS; waited_ms += ANSWER_LOOK_MS) {
		if (pread(fd, &now, sizeof(now),
			  offsetof(struct xt_crash_buffer_header, request)) != sizeof(now) ||
		    now != word)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Tells the process whose crash buffer it is. 0 or -errno; -EBADMSG: it is no crash buffer; -ETIME: it was told, but
 * does not answer. */
static int request(const char *path, enum xt_crash_buffer_request what)
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
	word = (word / XT_REQUEST_SEQUENCE + 1) * XT_REQUEST_SEQUENCE | what;
	if (pwrite(fd, &word, sizeof(word), place) != sizeof(word))
		error = -EIO;
	else if (!is_answered(fd, word))
		error = -ETIME;
	close(fd);
	return error;
}

static int silent_count; /* processes that did not answer */

static bool tell(const char *path, enum xt_crash_buffer_request what)
{
	int error = request(path, what);

	silent_count += error == -ETIME;
	if (error == -ETIME)
		complain("'%s': told, but its process has not answered: it stands still, or is no "
			 "more",
			 path);
	else if (error)
		complain("'%s': %s", path,
			 error == -EBADMSG ? "this is no spool of xtrace's" : strerror(-error));
	return !error;
}

/* All processes that are recorded into the directory. How many were told, -1 if it cannot be read. */
static int tell_directory(const char *directory, enum xt_crash_buffer_request what)
{
	char **logs, *path;
	size_t log_count;
	int told = 0;

	if (data_dir_list_logs(directory, &logs, &log_count))
		return -1;
	for (size_t i = 0; i < log_count; i++) {
		if (asprintf(&path, "%s/%s.spool", directory, logs[i]) < 0)
			break;
		if (!access(path, F_OK))
			told += tell(path, what);
		free(path);
	}
	data_dir_free_logs(logs, log_count);
	return told;
}

/* A process has its crash buffer mapped. How many were told, -1 if its maps cannot be read. */
static int tell_process(const char *pid, enum xt_crash_buffer_request what)
{
	char *line = NULL, *last = NULL;
	size_t line_bytes = 0;
	char maps[64];
	ssize_t length;
	int told = 0;
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
		told += tell(path, what);
	}
	free(last);
	free(line);
	fclose(file);
	return told;
}

static int run_request(const struct command *command, int argc, char **argv,
		       enum xt_crash_buffer_request what)
{
	const char *target = "xtrace.data", *argument;
	int letter = command_next_option(command, argc, argv, &argument), told;

	if (letter == 'h') {
		command_print_help(command);
		return STATUS_OK;
	}
	if (letter)
		return STATUS_USAGE;
	if (optind < argc)
		target = argv[optind++];
	if (optind < argc) {
		complain("%s: unexpected argument '%s'; see 'xtrace help %s'", command->name,
			 argv[optind], command->name);
		return STATUS_USAGE;
	}
	if (access(target, F_OK) && strspn(target, "0123456789") == strlen(target))
		told = tell_process(target, what);
	else
		told = tell_directory(target, what);
	if (told < 0)
		complain("'%s' is neither a trace directory nor a process that can be looked at",
			 target);
	else if (!told && !silent_count)
		complain("nothing is being recorded in '%s'", target);
	return told > 0 ? STATUS_OK : STATUS_USAGE;
}

static int run_pause(const struct command *command, int argc, char **argv)
{
	return run_request(command, argc, argv, XT_REQUEST_PAUSE);
}

static int run_resume(const struct command *command, int argc, char **argv)
{
	return run_request(command, argc, argv, XT_REQUEST_RECORD);
}

static const struct command_option options[] = {
	{'h', "help", NULL, "print this and exit"},
	{0, NULL, NULL, NULL},
};

static const char details[] =
	"DIR is the trace directory of a recording that goes on (xtrace.data): all its processes\n"
	"are told. PID is a single process. What they do while recording is paused is not in\n"
	"their logs, but for allocations, NVTX ranges and the making of CUDA graphs.\n\n"
	"Exit status: 0 if any process has done so, else 2.\n";

const struct command command_pause = {
	.name = "pause",
	.arguments = "[DIR | PID]",
	.summary = "Has processes that are recorded leave out what they do",
	.options = options,
	.details = details,
	.run = run_pause,
};

const struct command command_resume = {
	.name = "resume",
	.arguments = "[DIR | PID]",
	.summary = "Has paused processes be recorded again",
	.options = options,
	.details = details,
	.run = run_resume,
};
