/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads runs. Each log is profiled by a forked process, which runs xtrace merge and writes the
 * profile into a memfd. Several processes run at a time.
 */
#include "diff/load/load_runs.h"

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
#include "diff/base/json_read.h"
#include "diff/load/baseline.h"

#define FILE_BYTES_MAX (64 << 20)

cJSON *bench_runs_read_json(const char *folder, const char *name)
{
	char *path = xt_asprintf("%s/%s", folder, name), *text = NULL;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	cJSON *root = NULL;
	struct stat about;
	size_t bytes;

	if (file >= 0 && !fstat(file, &about) && S_ISREG(about.st_mode) &&
	    about.st_size <= FILE_BYTES_MAX)
		text = file_read(file, &bytes);
	if (text)
		root = json_parse(text, bytes);
	free(text);
	if (file >= 0)
		close(file);
	free(path);
	return root;
}

/* Reads a JSON document of this format; NULL if there is none. */
static cJSON *read_bench_file(const char *directory, const char *name, const char *format)
{
	cJSON *root = bench_runs_read_json(directory, name);
	const char *found = json_member_text(root, "format");

	if (found && !strcmp(found, format))
		return root;
	cJSON_Delete(root);
	return NULL;
}

/* Mean SM clock of all GPUs from gpu.json of a trace directory, in MHz. NAN if unknown. */
static double read_clock_mhz(const char *path)
{
	cJSON *gpu = read_bench_file(path, "gpu.json", "xtrace.gpu");
	const cJSON *device;
	double sum = 0.0, count = 0.0;

	cJSON_ArrayForEach(device, json_member(gpu, "devices"))
	{
		const cJSON *mean = json_member(json_member(device, "sm_mhz"), "mean");

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

static int read_profile(struct run_set *set, const char *document, size_t document_bytes,
			const char *origin, struct problems *problems)
{
	struct run_profile *run = run_profile_read(document, document_bytes, origin, problems);

	if (!run)
		return -EINVAL;
	run_set_add(set, run);
	return 0;
}

/* Documents with runs, by their "format" member. */
static const struct {
	const char *format;
	int (*read)(struct run_set *set, const char *document, size_t document_bytes,
		    const char *origin, struct problems *problems);
} run_formats[] = {{RUN_PROFILE_FORMAT, read_profile}, {BASELINE_FORMAT, baseline_read_side}};

#define RUN_FORMATS (sizeof(run_formats) / sizeof(run_formats[0]))

/* Reads a document of any known format. */
static int read_document(struct run_set *set, const char *path, struct problems *problems)
{
	size_t bytes = 0, f = 0;
	char *text = file_read_path(path, &bytes);
	cJSON *json = text ? json_parse(text, bytes) : NULL;
	const char *format = json_member_text(json, "format");
	int error = -EINVAL;

	while (f < RUN_FORMATS && (!format || strcmp(run_formats[f].format, format) != 0))
		f++;
	if (!text)
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
	else if (f == RUN_FORMATS)
		problems_add(problems, "%s is not a log, a run profile or a baseline", path);
	else
		error = run_formats[f].read(set, text, bytes, path, problems);
	cJSON_Delete(json);
	free(text);
	return error;
}

static bool is_document(const char *path)
{
	char first[2];

	return file_start(path, 0, first, sizeof(first)) && *first && strchr("{ \n", *first);
}

/* Adds a job for a log, whose path it takes over, and reserves the place of its run in the set. */
static void add_log(struct jobs *jobs, struct run_set *set, char *path)
{
	xt_grow(&jobs->list, &jobs->capacity, jobs->count + 1, sizeof(*jobs->list));
	run_set_add(set, NULL);
	jobs->list[jobs->count++] =
		(struct job){.path = path, .set = set, .place = set->count - 1, .output = -1};
}

/*
 * A bench directory contains several runs, of which those of the warm-up do not count. Any other
 * directory is one run.
 */
static int add_directory(struct jobs *jobs, struct run_set *set, const char *path,
			 struct problems *problems)
{
	cJSON *bench = read_bench_file(path, "bench.json", "xtrace.bench"), *run;
	int error = -EINVAL;

	if (!bench) {
		add_log(jobs, set, xt_strdup(path));
		return 0;
	}
	if (json_member(bench, "sides")) {
		problems_add(problems, "%s contains two sides: name %s/base or %s/new", path, path,
			     path);
	} else if (!cJSON_IsTrue(json_member(bench, "finished"))) {
		problems_add(problems, "%s: the benchmark was not completed; run it again", path);
	} else {
		error = 0;
		cJSON_ArrayForEach(run, json_member(bench, "runs"))
		{
			const char *name = json_member_text(run, "path");

			if (name && !cJSON_IsTrue(json_member(run, "warmup")))
				add_log(jobs, set, xt_asprintf("%s/%s", path, name));
		}
	}
	cJSON_Delete(bench);
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
	add_log(jobs, set, xt_strdup(path));
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
	job->pid = job->output < 0 ? -errno : subprocess_start("merge", arguments, job->output);
	if (job->pid > 0)
		return 0;
	problems_add(problems, "cannot start a process for %s: %s", job->path, strerror(-job->pid));
	job->pid = 0;
	return -EINVAL;
}

/* Insert the GPU clock into the profile document, so that a baseline keeps it. Replaces *text. */
static void add_clock(char **text, size_t *length, const char *path)
{
	double mhz = read_clock_mhz(path);
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
	struct run_profile **run = &job->set->runs[job->place];
	size_t bytes = 0;
	char *text = NULL;

	job->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) >= MERGE_FAILED)
		problems_add(problems, "cannot read %s", job->path);
	else
		text = file_read(job->output, &bytes);
	if (text) {
		add_clock(&text, &bytes, job->path);
		*run = run_profile_read(text, bytes, job->path, problems);
	}
	free(text);
	close(job->output);
	job->output = -1;
	return *run ? 0 : -EINVAL;
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
