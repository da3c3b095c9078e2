/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the logs of a made-up distributed training job on a virtual clock, and what really
 * happened in it.
 *
 * 	make_ranks SCENARIO SEED FOLDER [RANKS [STEPS [PARTS]]]
 *
 * The folder must exist and have no logs. It gets a log for each rank and truth.json; two_jobs has
 * a second job and truth.2.json. RANKS and STEPS may be large: 1024 ranks of 3,000 steps have
 * about 100,000 launches each, a third of them collectives. With PARTS, each kernel is launched so
 * often. Above 64 ranks, the truth has no collectives.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "run.h"

#define RANKS_OF_SMALL_JOB 64
#define SECOND_RANK	   100 /* first rank of a second job */

static int copy_file(const char *from, const char *to)
{
	FILE *source = fopen(from, "rb"), *target = fopen(to, "wb");
	char buffer[1 << 14];
	size_t bytes;
	int error = source && target ? 0 : -errno;

	while (!error && (bytes = fread(buffer, 1, sizeof(buffer), source)) > 0)
		if (fwrite(buffer, 1, bytes, target) != bytes)
			error = -EIO;
	if (source)
		fclose(source);
	if (target && fclose(target))
		error = -errno;
	return error;
}

/* A late log starts somewhere in a step, after the first of them. */
static uint64_t log_start_ns(const struct job *job, uint32_t rank)
{
	if (job->fault != FAULT_LATE_LOG || rank != job->guilty)
		return 0;
	return 10000000 + job->fault_step * (job->step_ns + job->step_ns / 3);
}

static void open_logs(const struct job *job, struct rank_log *logs, const char *folder)
{
	/* Logs of small jobs have several chunks, too. */
	uint32_t rows = job->rank_count > RANKS_OF_SMALL_JOB ? 4096 : 256;

	for (uint32_t r = 0; r < job->rank_count; r++) {
		if (job->fault == FAULT_MISSING && r == job->guilty) {
			logs[r] = (struct rank_log){.job = job, .rank = r};
			continue;
		}
		rank_log_open(&logs[r], job, r, folder, log_start_ns(job, r), rows);
	}
}

/* When the job would have ended without its fault, with the same jitter. */
static uint64_t end_without_fault(const struct job *job, struct rank_log *logs)
{
	struct job healthy = *job;

	healthy.fault = FAULT_NONE;
	healthy.pause_count = 0;
	for (uint32_t r = 0; r < job->rank_count; r++)
		logs[r] = (struct rank_log){.job = &healthy, .rank = r};
	return run_job(&healthy, logs, NULL);
}

static int run(struct job *job, struct rank_log *logs, const char *folder, const char *truth_name)
{
	char path[PATH_BYTES];
	struct truth truth;
	uint64_t end_ns;
	int error;

	snprintf(path, sizeof(path), "%s/%s", folder, truth_name);
	error = truth_open(&truth, job, path, job->rank_count <= RANKS_OF_SMALL_JOB);
	if (error)
		return error;
	truth.end_without_fault_ns = end_without_fault(job, logs);
	open_logs(job, logs, folder);
	end_ns = run_job(job, logs, &truth);
	if (!end_ns)
		return -ENOMEM;
	/* Ranks that wait for ever are ended by somebody, some time later. */
	for (uint32_t r = 0; r < job->rank_count; r++)
		rank_log_close(&logs[r],
			       end_ns + (job->fault == FAULT_HANG ? UINT64_C(1000000000) : 0));
	if (job->fault == FAULT_DUPLICATE) {
		snprintf(path, sizeof(path), "%s/copy.xtr", folder);
		error = copy_file(logs[job->guilty].path, path);
	}
	return error ? error : truth_close(&truth, logs, end_ns);
}

static int make(const char *scenario, uint64_t seed, const char *folder,
		const struct job_limits *limits, bool is_second)
{
	struct rank_log *logs;
	struct job *job = calloc(1, sizeof(*job));
	int error = job ? job_make(job, scenario, seed, limits) : -ENOMEM;

	if (error)
		return error;
	job->first_host = is_second ? HOSTS_MAX : 0;
	/* Some second jobs have the same ranks as the first, others differ by the job id only. */
	job->first_rank = is_second && seed % 2 ? SECOND_RANK : 0;
	logs = calloc(job->rank_count, sizeof(*logs));
	error = logs ? run(job, logs, folder, is_second ? "truth.2.json" : "truth.json") : -ENOMEM;
	free(logs);
	job_free(job);
	free(job);
	return error;
}

/* One log for each rank is open. */
static void allow_files(uint32_t ranks)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= ranks + 16)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: make_ranks SCENARIO SEED FOLDER [RANKS [STEPS [PARTS]]]\nscenarios:");
	for (const char *const *name = job_scenarios(); *name; name++)
		fprintf(stderr, " %s", *name);
	fputc('\n', stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct job_limits limits = {0};
	uint64_t seed;
	int error;

	if (argc < 4 || argc > 7)
		return usage();
	seed = strtoull(argv[2], NULL, 10);
	limits.ranks = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
	limits.steps = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 0;
	limits.parts = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 10) : 0;
	allow_files(limits.ranks);
	error = make(argv[1], seed, argv[3], &limits, false);
	if (!error && !strcmp(argv[1], "two_jobs"))
		error = make(argv[1], seed + 1000000, argv[3], &limits, true);
	if (error == -EINVAL)
		return usage();
	if (error)
		fprintf(stderr, "make_ranks: %s\n", strerror(-error));
	return error != 0;
}
