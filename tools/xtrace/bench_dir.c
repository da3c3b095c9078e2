/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bench directory and its bench.json. Only files that belong to a bench are overwritten or
 * removed.
 */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/message.h"
#include "data_dir.h"
#include "diff/load/load_runs.h"
#include "json_file.h"
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
	int error = json_file_write(path, BENCH_FILE, root);

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
