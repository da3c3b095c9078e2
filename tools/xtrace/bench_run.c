/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bench directory and its runs. A run is xtrace record in its own process, its results, and the
 * state of the GPUs. Only files that belong to a bench are overwritten or removed.
 *
 * The output of the program goes to output.txt in the trace directory, because a terminal costs
 * time. If the run fails, the end of that output is printed.
 */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "program.h"
#include "cli/command.h"
#include "cli/message.h"
#include "data_dir.h"
#include "diff/load/load_runs.h"
#include "log/base/compare.h"
#include "log/base/new_file.h"

#define OLD_SUFFIX ".old"

static bool is_bench(const char *path)
{
	cJSON *root = bench_runs_read_json(path, BENCH_FILE);
	const char *format = cJSON_GetStringValue(cJSON_GetObjectItem(root, "format"));
	bool is_ours = format && !strcmp(format, BENCH_FORMAT);

	cJSON_Delete(root);
	return is_ours;
}

static int remove_bench(const char *path);

/* Removes one entry of a bench directory. Returns 0, or -errno after an error message. */
static int remove_entry(const char *folder, const char *name)
{
	bool is_run = begins_with(name, "run-") || begins_with(name, "warmup-");
	bool is_part = !strcmp(name, BENCH_BASE) || !strcmp(name, BENCH_NEW);
	char *path = NULL;
	int error;

	if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, BENCH_FILE))
		return 0;
	path = xt_asprintf("%s/%s", folder, name);
	if (is_run) {
		error = data_dir_remove(path);
	} else if (is_part && is_bench(path)) {
		error = remove_bench(path);
	} else {
		print_error("cannot remove '%s': it is not part of a bench; move it away", path);
		error = -EEXIST;
	}
	free(path);
	return error;
}

static int remove_bench(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int error = 0;

	if (!folder)
		return -errno;
	while (!error && (entry = readdir(folder)))
		error = remove_entry(path, entry->d_name);
	/* Remove bench.json last, because it marks the directory as a bench. */
	if (!error && unlinkat(dirfd(folder), BENCH_FILE, 0))
		error = -errno;
	closedir(folder);
	if (!error && rmdir(path))
		error = -errno;
	return error;
}

static int move_aside(const char *path)
{
	char *old = NULL;
	struct stat about;
	int error = 0;

	old = xt_asprintf("%s" OLD_SUFFIX, path);
	if (!lstat(old, &about) && !is_bench(old)) {
		print_error("cannot replace '%s': it is not an xtrace bench; move it away", old);
		error = -EEXIST;
	} else if (!lstat(old, &about)) {
		error = remove_bench(old);
	}
	if (!error && rename(path, old)) {
		error = -errno;
		print_error("cannot move '%s' to '%s': %m", path, old);
	}
	free(old);
	return error;
}

static int make_dir(const char *path)
{
	int error = mkdir(path, 0700) ? -errno : 0;

	/* An empty directory can be used. */
	if (error == -EEXIST && !rmdir(path) && !mkdir(path, 0700))
		error = 0;
	if (error == -EEXIST)
		print_error("cannot use '%s': it exists and is not an xtrace bench; choose another "
			    "directory with -o",
			    path);
	else if (error)
		print_error("cannot create '%s': %s", path, strerror(-error));
	return error;
}

static int write_json(const char *path, cJSON *root)
{
	int error = json_write(path, BENCH_FILE, root);

	if (error)
		print_error("cannot write '%s/" BENCH_FILE "': %s", path, strerror(-error));
	cJSON_Delete(root);
	return error;
}

static cJSON *make_head(void)
{
	cJSON *root = cJSON_CreateObject();

	cJSON_AddStringToObject(root, "format", BENCH_FORMAT);
	cJSON_AddNumberToObject(root, "format_version", 1);
	cJSON_AddStringToObject(root, "xtrace_version", XTRACE_VERSION);
	return root;
}

/* Makes the directory, and moves an older bench aside. */
static int claim(const char *path_given)
{
	size_t length = strlen(path_given);
	char *path;
	int error = 0;

	while (length > 1 && path_given[length - 1] == '/')
		length--;
	path = xt_strndup(path_given, length);
	if (xt_new_file_check(path)) {
		print_error("cannot use '%s': %s", path, xt_new_file_error(XT_NEW_FILE_PLANTED));
		error = -EACCES;
	}
	if (!error && is_bench(path))
		error = move_aside(path);
	if (!error)
		error = make_dir(path);
	free(path);
	return error;
}

int bench_dir_create(struct bench *bench)
{
	int error = claim(bench->output);
	cJSON *root, *sides;

	if (!error && bench->side_count == 2) {
		root = make_head();
		sides = cJSON_AddArrayToObject(root, "sides");
		for (size_t s = 0; s < bench->side_count; s++)
			cJSON_AddItemToArray(sides, cJSON_CreateString(bench->sides[s].name));
		error = write_json(bench->output, root);
		for (size_t s = 0; !error && s < bench->side_count; s++)
			error = make_dir(bench->sides[s].path);
	}
	for (size_t s = 0; !error && s < bench->side_count; s++)
		error = bench_dir_write(&bench->sides[s], false);
	return error;
}

static cJSON *run_json(const struct bench_run *run)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "path", run->name);
	cJSON_AddNumberToObject(object, "order", run->order);
	cJSON_AddBoolToObject(object, "warmup", run->is_warmup);
	cJSON_AddNumberToObject(object, "wall_ns", (double)run->wall_ns);
	cJSON_AddNumberToObject(object, "gpu_time_ns", (double)run->gpu_time_ns);
	cJSON_AddBoolToObject(object, "complete", run->is_complete);
	return object;
}

int bench_dir_write(const struct bench_side *side, bool is_whole)
{
	cJSON *root = make_head(), *list = cJSON_AddArrayToObject(root, "command");

	for (char **argument = side->command; *argument; argument++)
		cJSON_AddItemToArray(list, cJSON_CreateString(*argument));
	cJSON_AddBoolToObject(root, "finished", is_whole);
	list = cJSON_AddArrayToObject(root, "runs");
	for (size_t r = 0; r < side->run_count; r++)
		cJSON_AddItemToArray(list, run_json(&side->runs[r]));
	return write_json(side->path, root);
}

#define SUMMARY_LIMIT (512 << 20)
#define TAIL_BYTES    2000

/* Prints the last lines of the output to stderr. */
static void show_tail(int fd)
{
	char text[TAIL_BYTES + 1], *newline;
	off_t end = lseek(fd, 0, SEEK_END);
	off_t from = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
	ssize_t length = end > 0 ? pread(fd, text, TAIL_BYTES, from) : 0;

	text[length > 0 ? length : 0] = '\0';
	newline = from ? strchr(text, '\n') : NULL;
	if (newline)
		memmove(text, newline + 1, strlen(newline));
	if (*text)
		fprintf(stderr, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
}

static int run_record(const struct bench *bench, const struct bench_side *side, const char *path,
		      int output, int *status_out)
{
	const struct child_care care = {
		.output = output,
		.tick = bench->watch ? gpu_watch_tick : NULL,
		.context = bench->watch,
		.period_ns = GPU_WATCH_PERIOD_NS,
	};
	size_t count = 0, words = 0;
	const char **arguments;
	int error;

	while (side->command[words])
		words++;
	arguments = xt_calloc(words + bench->passed_count + 6, sizeof(*arguments));
	arguments[count++] = bench->paths.program;
	arguments[count++] = "record";
	arguments[count++] = "-o";
	arguments[count++] = path;
	for (size_t i = 0; i < bench->passed_count; i++)
		arguments[count++] = bench->passed[i];
	arguments[count++] = "--";
	memcpy(arguments + count, side->command, words * sizeof(*arguments));
	error = child_run((char *const *)arguments, NULL, &care, status_out);
	free(arguments);
	return error;
}

/* Parses RFC 3339 with nanoseconds, as in info.json. Returns ns since 1970, or 0. */
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

/*
 * Reads from info.json when the run was and how it ended. Returns 0, -ENODATA if the recording
 * did not finish, or -ECHILD if the program ended with a status other than 0, which is in
 * *status_out.
 */
static int read_info(const char *path, struct bench_run *run, uint64_t *start_ns_out,
		     int *status_out)
{
	cJSON *info = bench_runs_read_json(path, DATA_DIR_INFO);
	const cJSON *status = cJSON_GetObjectItem(info, "exit_status");
	int error = -ENODATA;

	if (cJSON_IsNumber(status)) {
		run->wall_ns =
			(uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(info, "duration_ns"));
		*start_ns_out =
			read_time(cJSON_GetStringValue(cJSON_GetObjectItem(info, "start_time")));
		*status_out = status->valueint;
		error = *status_out ? -ECHILD : 0;
	}
	cJSON_Delete(info);
	return error;
}

/* Returns the document of xtrace merge --summary, or NULL. */
static cJSON *read_summary(const char *path)
{
	const char *const arguments[] = {"merge",   "--summary", "-",  "--top", "1",
					 "--quiet", "--",	 path, NULL};
	int fd = memfd_create("summary", MFD_CLOEXEC);
	cJSON *root = NULL;
	struct stat about;
	char *text;

	if (fd < 0)
		return NULL;
	if (subprocess_run("merge", arguments, fd) <= STATUS_INCOMPLETE && !fstat(fd, &about) &&
	    about.st_size > 0 && about.st_size < SUMMARY_LIMIT) {
		text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (text != MAP_FAILED) {
			root = cJSON_ParseWithLength(text, (size_t)about.st_size);
			munmap(text, (size_t)about.st_size);
		}
	}
	close(fd);
	return root;
}

#define UUIDS_MAX 256

static size_t find_uuids(const cJSON *summary, const char **uuids)
{
	const cJSON *process, *device;
	size_t count = 0;

	cJSON_ArrayForEach(process, cJSON_GetObjectItem(summary, "processes"))
	{
		cJSON_ArrayForEach(device, cJSON_GetObjectItem(process, "devices"))
		{
			const char *uuid =
				cJSON_GetStringValue(cJSON_GetObjectItem(device, "uuid"));

			if (uuid && count < UUIDS_MAX)
				uuids[count++] = uuid;
		}
	}
	return count;
}

static void read_watch(struct bench *bench, const char *path, struct bench_run *run,
		       uint64_t start_ns, const cJSON *summary)
{
	const char *uuids[UUIDS_MAX];
	cJSON *state;
	int error;

	if (!bench->watch)
		return;
	gpu_watch_end(bench->watch, start_ns, start_ns + run->wall_ns, uuids,
		      find_uuids(summary, uuids));
	run->has_gpu = true;
	run->gpu = gpu_watch_sum(bench->watch);
	run->other_pid = gpu_watch_other(bench->watch);
	state = gpu_watch_json(bench->watch);
	error = json_write(path, DATA_DIR_GPU, state);
	if (error)
		print_error("cannot write '%s/" DATA_DIR_GPU "': %s", path, strerror(-error));
	cJSON_Delete(state);
}

/* Reads the results from the logs. Returns 0, or -ENODATA after an error message. */
static int read_logs(struct bench *bench, const char *path, struct bench_run *run,
		     uint64_t start_ns)
{
	cJSON *summary = read_summary(path);
	const cJSON *totals = cJSON_GetObjectItem(summary, "totals");
	const cJSON *gpu_time = cJSON_GetObjectItem(totals, "gpu_time_ns");
	int error = 0;

	read_watch(bench, path, run, start_ns, summary);
	if (cJSON_IsNumber(gpu_time) && gpu_time->valuedouble > 0) {
		run->gpu_time_ns = (uint64_t)gpu_time->valuedouble;
		run->is_complete = cJSON_IsTrue(
			cJSON_GetObjectItem(cJSON_GetObjectItem(summary, "trust"), "complete"));
		run->is_done = true;
	} else {
		print_error("cannot measure '%s': it has no GPU work; see '%s/" DATA_DIR_OUTPUT "'",
			    path, path);
		error = -ENODATA;
	}
	cJSON_Delete(summary);
	return error;
}

static void print_failed(const struct bench_side *side, const struct bench_run *run, int status)
{
	const char *of = side->name, *space = *of ? " " : "";
	char **command = side->command;
	/* A shell ends with the status of its command line. */
	bool is_line = command[1] && command[2] && !strcmp(command[0], "/bin/sh") &&
		       !strcmp(command[1], "-c");
	const char *program = command[is_line ? 2 : 0];

	if (status > STATUS_SIGNAL)
		print_error("%s%s%s failed: '%s' was ended by signal %d (%s)", of, space, run->name,
			    program, status - STATUS_SIGNAL, strsignal(status - STATUS_SIGNAL));
	else
		print_error("%s%s%s failed: '%s' ended with exit status %d", of, space, run->name,
			    program, status);
}

/* Copies the output into the trace directory, which xtrace record has created by now. */
static void keep_output(int fd, const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = folder < 0 ? -1
			      : openat(folder, DATA_DIR_OUTPUT,
				       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char buffer[1 << 16];
	off_t at = 0;
	ssize_t n;

	while (file >= 0 && (n = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		if (write(file, buffer, (size_t)n) != n)
			break;
		at += n;
	}
	if (file >= 0)
		close(file);
	if (folder >= 0)
		close(folder);
}

/* Opens a nameless file next to the runs. Returns -1 if the output is not captured. */
static int open_output(const struct bench *bench, const struct bench_side *side)
{
	int fd;

	if (bench->shows_output)
		return -1;
	fd = open(side->path, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : memfd_create("output", MFD_CLOEXEC);
}

/* Makes one run and fills in *run. Returns 0, or another value after an error message. */
static int bench_run(struct bench *bench, struct bench_side *side, struct bench_run *run)
{
	int output = open_output(bench, side), status = 0, error;
	uint64_t start_ns = 0;
	char *path = NULL;

	path = xt_asprintf("%s/%s", side->path, run->name);
	mkdir(path,
	      0700); /* xtrace record keeps its result in a folder that exists, even if empty */
	if (bench->watch)
		gpu_watch_begin(bench->watch);
	error = run_record(bench, side, path, output, &status);
	if (error) {
		print_error("cannot run xtrace record: %s", strerror(-error));
		goto out;
	}
	if (output >= 0)
		keep_output(output, path);
	error = read_info(path, run, &start_ns, &status);
	if (error && output >= 0)
		show_tail(output);
	if (error == -ECHILD)
		print_failed(side, run, status);
	else if (error)
		print_error("cannot read '%s': it was not recorded", path);
	else
		error = read_logs(bench, path, run, start_ns);
out:
	if (output >= 0)
		close(output);
	free(path);
	return error;
}

void bench_sides_init(struct bench *bench, size_t runs_max, char **command, char **command_new)
{
	bench->run_count = 0;
	bench->side_count = command_new ? 2 : 1;
	for (size_t s = 0; s < bench->side_count; s++) {
		struct bench_side *side = &bench->sides[s];

		*side = (struct bench_side){.name = s		  ? BENCH_NEW
						    : command_new ? BENCH_BASE
								  : "",
					    .command = s ? command_new : command,
					    .runs = xt_calloc(runs_max, sizeof(*side->runs))};
		side->path =
			xt_asprintf("%s%s%s", bench->output, *side->name ? "/" : "", side->name);
	}
}

void bench_sides_free(struct bench *bench)
{
	for (size_t s = 0; s < bench->side_count; s++) {
		free(bench->sides[s].runs);
		free(bench->sides[s].path);
		bench->sides[s] = (struct bench_side){0};
	}
	bench->side_count = 0;
}

int bench_sides_run(struct bench *bench, struct bench_side *side, bool is_warmup)
{
	struct bench_run *run = &side->runs[side->run_count++];
	unsigned number = (unsigned)side->run_count - (is_warmup ? 0 : bench->warmups);
	int error;

	run->order = ++bench->run_count;
	run->is_warmup = is_warmup;
	snprintf(run->name, sizeof(run->name), "%s-%03u", is_warmup ? "warmup" : "run", number);
	error = bench_run(bench, side, run);
	if (!error)
		return bench_dir_write(side, false);
	side->run_count--;
	return error;
}
