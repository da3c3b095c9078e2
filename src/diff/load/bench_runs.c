/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads bench.json and gpu.json.
 */
#include "diff/load/bench_runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

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
static cJSON *read_document(const char *directory, const char *name, const char *format)
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

int bench_runs_find(const char *path, char ***paths_out, size_t *count_out,
		    struct problems *problems)
{
	cJSON *bench = read_document(path, "bench.json", "xtrace.bench");
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

void bench_runs_free(char **paths, size_t count)
{
	for (size_t p = 0; paths && p < count; p++)
		free(paths[p]);
	free(paths);
}

double bench_runs_clock_mhz(const char *path)
{
	cJSON *gpu = read_document(path, "gpu.json", "xtrace.gpu");
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
