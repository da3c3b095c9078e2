/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads runs. Each log is profiled by a forked process, which runs xtrace merge and writes the
 * profile into a memfd. Several processes run at a time.
 */
#include "diff/load/load_runs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "diff/load/baseline.h"

#define FILE_BYTES_MAX (64 << 20)

cJSON *bench_runs_read_json(const char *folder, const char *name)
{
	char *path = NULL, *text = NULL;
	struct stat about;
	cJSON *root = NULL;
	FILE *file;

	path = xt_asprintf("%s/%s", folder, name);
	file = fopen(path, "re");
	if (file && !fstat(fileno(file), &about) && S_ISREG(about.st_mode) &&
	    about.st_size <= FILE_BYTES_MAX)
		text = xt_malloc((size_t)about.st_size + 1);
	if (text)
		root = cJSON_ParseWithLength(text, fread(text, 1, (size_t)about.st_size, file));
	free(text);
	if (file)
		fclose(file);
	free(path);
	return root;
}

/* Reads a JSON document of this format; NULL if there is none. */
static cJSON *read_bench_file(const char *directory, const char *name, const char *format)
{
	cJSON *root = bench_runs_read_json(directory, name);
	const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "format"));

	if (found && !strcmp(found, format))
		return root;
	cJSON_Delete(root);
	return NULL;
}

static void add_run(const char *path, const cJSON *run, char **paths, size_t *count)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "path"));

	if (!name || cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(run, "warmup")))
		return;
	paths[*count] = xt_asprintf("%s/%s", path, name);
	++*count;
}

/*
 * List the runs of a bench directory without warm-up runs; free them with bench_runs_free().
 * Returns 0, -ENOENT if path is not a bench directory, or -EINVAL after adding a problem.
 */
static int bench_runs_find(const char *path, char ***paths_out, size_t *count_out,
			   struct problems *problems)
{
	cJSON *bench = read_bench_file(path, "bench.json", "xtrace.bench");
	const cJSON *runs = cJSON_GetObjectItemCaseSensitive(bench, "runs"), *run;
	int error = -EINVAL;

	*paths_out = NULL;
	*count_out = 0;
	if (!bench)
		return -ENOENT;
	if (cJSON_GetObjectItemCaseSensitive(bench, "sides")) {
		problems_add(problems, "%s contains two sides: name %s/base or %s/new", path, path,
			     path);
	} else if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(bench, "finished"))) {
		problems_add(problems, "%s: the benchmark was not completed; run it again", path);
	} else {
		*paths_out = xt_calloc((size_t)cJSON_GetArraySize(runs) + 1, sizeof(**paths_out));
		cJSON_ArrayForEach(run, runs) add_run(path, run, *paths_out, count_out);
		error = 0;
	}
	cJSON_Delete(bench);
	return error;
}

static void bench_runs_free(char **paths, size_t count)
{
	for (size_t p = 0; paths && p < count; p++)
		free(paths[p]);
	free(paths);
}

/* Mean SM clock of all GPUs from gpu.json of a trace directory, in MHz. NAN if unknown. */
static double bench_runs_clock_mhz(const char *path)
{
	cJSON *gpu = read_bench_file(path, "gpu.json", "xtrace.gpu");
	const cJSON *device;
	double sum = 0.0, count = 0.0;

	cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(gpu, "devices"))
	{
		const cJSON *clock = cJSON_GetObjectItemCaseSensitive(device, "sm_mhz");
		const cJSON *mean = cJSON_GetObjectItemCaseSensitive(clock, "mean");

		if (!cJSON_IsNumber(mean))
			continue;
		sum += mean->valuedouble;
		count += 1.0;
	}
	cJSON_Delete(gpu);
	return count > 0.0 ? sum / count : NAN;
}

#define ARGUMENTS_MAX 16
#define MERGE_FAILED  2 /* lowest exit status without output */

struct job {
	char *path;
	struct run_set *set;
	size_t place; /* index in the set */
	pid_t pid;
	int output;
};

struct jobs {
	struct job *list;
	size_t count, capacity;
};

/* Reads a file from its beginning. The caller frees the text; NULL and errno on failure. */
static char *read_all(int file, size_t *length_out)
{
	size_t length = 0, room = 1u << 16;
	char *text = xt_malloc(room);
	ssize_t got = 1;

	while (got > 0) {
		if (length == room)
			text = xt_reallocarray(text, room *= 2, 1);
		got = pread(file, text + length, room - length, (off_t)length);
		length += got > 0 ? (size_t)got : 0;
	}
	if (got) {
		free(text);
		text = NULL;
	}
	*length_out = length;
	return text;
}

static int read_profile(struct run_set *set, const char *document, size_t document_bytes,
			const char *origin, struct problems *problems)
{
	struct run_profile *run;
	int error = run_profile_read(&run, document, document_bytes, origin, problems);

	if (error)
		run_profile_free(run);
	else
		run_set_add(set, run);
	return error;
}

static const struct run_format profile_format = {"xtrace-profile", read_profile};

static const struct run_format *const run_formats[] = {&profile_format, &baseline_format, NULL};

/* Reads a document of any known format. */
static int read_document(struct run_set *set, const char *path, struct problems *problems)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), error = -EINVAL;
	size_t length = 0;
	char *text = file < 0 ? NULL : read_all(file, &length);
	cJSON *json = text ? cJSON_ParseWithLength(text, length) : NULL;
	const cJSON *format = cJSON_GetObjectItemCaseSensitive(json, "format");
	const struct run_format *const *f = run_formats;

	while (*f && (!cJSON_IsString(format) || strcmp((*f)->format, format->valuestring) != 0))
		f++;
	if (!text)
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
	else if (!*f)
		problems_add(problems, "%s is not a log, a run profile or a baseline", path);
	else
		error = (*f)->read(set, text, length, path, problems);
	cJSON_Delete(json);
	free(text);
	if (file >= 0)
		close(file);
	return error;
}

static bool is_document(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	char first = '\0';
	ssize_t got = file < 0 ? 0 : read(file, &first, 1);

	if (file >= 0)
		close(file);
	return got == 1 && (first == '{' || first == ' ' || first == '\n');
}

/* Adds a job for a log, and reserve the place of its run in the set. */
static void add_log(struct jobs *jobs, struct run_set *set, const char *path)
{
	xt_grow(&jobs->list, &jobs->capacity, jobs->count + 1, sizeof(*jobs->list));
	run_set_add(set, NULL);
	jobs->list[jobs->count++] = (struct job){
		.path = xt_strdup(path), .set = set, .place = set->count - 1, .output = -1};
}

/* A bench directory contains several runs; any other directory is one run. */
static int add_directory(struct jobs *jobs, struct run_set *set, const char *path,
			 struct problems *problems)
{
	char **runs;
	size_t count;
	int error = bench_runs_find(path, &runs, &count, problems);

	if (error == -ENOENT) {
		add_log(jobs, set, path);
		return 0;
	}
	for (size_t r = 0; !error && r < count; r++)
		add_log(jobs, set, runs[r]);
	bench_runs_free(runs, count);
	return error;
}

/* Reads a document now; add a job for a log. */
static int add_name(struct jobs *jobs, struct run_set *set, const char *path,
		    struct problems *problems)
{
	struct stat status;

	if (stat(path, &status) < 0) {
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	if (S_ISDIR(status.st_mode))
		return add_directory(jobs, set, path, problems);
	if (is_document(path))
		return read_document(set, path, problems);
	add_log(jobs, set, path);
	return 0;
}

static int start(struct job *job, const struct load_options *options, struct problems *problems)
{
	const char *arguments[ARGUMENTS_MAX] = {"merge", "-q",	 "--profile", "-",
						"--by",	 "none", "--lines",   "on"};
	int count = 8;

	if (options->iteration) {
		arguments[count++] = "--iteration";
		arguments[count++] = options->iteration;
	}
	if (options->warmup) {
		arguments[count++] = "--warmup";
		arguments[count++] = options->warmup;
	}
	arguments[count++] = "--";
	arguments[count] = job->path;
	job->output = memfd_create("xtrace profile", MFD_CLOEXEC);
	if (job->output < 0)
		return -errno;
	job->pid = subprocess_start("merge", arguments, job->output);
	if (job->pid > 0)
		return 0;
	problems_add(problems, "cannot start a process for %s: %s", job->path, strerror(-job->pid));
	job->pid = 0;
	return -EINVAL;
}

/* Insert the GPU clock into the profile document, so that a baseline keeps it. Replaces *text. */
static void add_clock(char **text, size_t *length, const char *path)
{
	double mhz = bench_runs_clock_mhz(path);
	char *longer;

	if (isnan(mhz) || !*length || (*text)[0] != '{')
		return;
	longer = xt_asprintf("{\"clock_mhz\":%.9g,%.*s", mhz, (int)*length - 1, *text + 1);
	free(*text);
	*text = longer;
	*length = strlen(longer);
}

static int finish(struct job *job, int status, struct problems *problems)
{
	size_t length = 0;
	char *text = NULL;
	int error = -EINVAL;

	job->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) >= MERGE_FAILED)
		problems_add(problems, "cannot read %s", job->path);
	else
		text = read_all(job->output, &length);
	if (text) {
		add_clock(&text, &length, job->path);
		error = run_profile_read(&job->set->runs[job->place], text, length, job->path,
					 problems);
	}
	if (error) {
		run_profile_free(job->set->runs[job->place]);
		job->set->runs[job->place] = NULL;
	}
	free(text);
	close(job->output);
	job->output = -1;
	return error;
}

/* Wait for any running job. */
static int wait_for_one(struct jobs *jobs, struct problems *problems)
{
	int status;
	pid_t pid;

	do
		pid = waitpid(-1, &status, 0);
	while (pid < 0 && errno == EINTR);
	for (size_t i = 0; i < jobs->count && pid > 0; i++)
		if (jobs->list[i].pid == pid)
			return finish(&jobs->list[i], status, problems);
	return pid < 0 ? -errno : 0;
}

static int run_jobs(struct jobs *jobs, const struct load_options *options,
		    struct problems *problems)
{
	size_t next = 0, running = 0;
	int result = 0;

	while (next < jobs->count || running) {
		int error;

		if (next < jobs->count && running < options->workers_count) {
			error = start(&jobs->list[next++], options, problems);
			running += !error;
		} else {
			error = wait_for_one(jobs, problems);
			running--;
		}
		result = result ? result : error;
	}
	return result;
}

static void drop_missing(struct run_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (set->runs[i])
			set->runs[kept++] = set->runs[i];
	set->count = kept;
}

/* Adds all names of an argument. */
static int add_names(struct jobs *jobs, struct run_set *set, const char *argument,
		     struct problems *problems)
{
	char *names = xt_strdup(argument), *rest = names, *name;
	int result = 0;

	while ((name = strsep(&rest, ","))) {
		int error = name[0] ? add_name(jobs, set, name, problems) : 0;

		result = result ? result : error;
	}
	free(names);
	return result;
}

static void jobs_free(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		free(jobs->list[i].path);
	free(jobs->list);
}

int load_apply_iteration(void *context, const struct option_row *row, const char *value)
{
	struct load_options *load = (void *)((char *)context + row->offset);

	load->is_per_iteration = true;
	load->iteration = strcmp(value, LOAD_DETECTED) ? value : NULL;
	return *value ? 0 : -EINVAL;
}

int load_apply_warmup(void *context, const struct option_row *row, const char *value)
{
	struct load_options *load = (void *)((char *)context + row->offset);
	const struct option_row number = {.max = row->max};
	unsigned count;

	load->is_per_iteration = true;
	load->warmup = value;
	return option_number(&count, &number, value);
}

int load_runs(struct run_set *sets, char *const *arguments, size_t set_count,
	      const struct load_options *options, struct problems *problems)
{
	struct jobs jobs = {0};
	int result = 0, error;

	for (size_t s = 0; s < set_count; s++) {
		error = add_names(&jobs, &sets[s], arguments[s], problems);
		result = result ? result : error;
	}
	error = run_jobs(&jobs, options, problems);
	result = result ? result : error;
	for (size_t s = 0; s < set_count; s++) {
		drop_missing(&sets[s]);
		for (size_t r = 0; r < sets[s].count && !options->is_per_iteration; r++)
			run_profile_use_whole(sets[s].runs[r]);
	}
	jobs_free(&jobs);
	return result;
}

int load_check(const char *argument, struct problems *problems)
{
	struct run_set set = {0};
	struct jobs jobs = {0};
	int error = add_names(&jobs, &set, argument, problems);

	jobs_free(&jobs);
	run_set_free(&set);
	return error;
}
