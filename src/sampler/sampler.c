/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "log/base/compare.h"
#include "log/base/monotonic.h"
#include "sampler/observe.h"
#include "sampler/perf_events.h"
#include "sampler/process_modules.h"
#include "sampler/process_read.h"
#include "sampler/remote_unwind.h"
#include "sampler/sampling.h"

/* A round may take this share of the time. Otherwise the next one is later. */
#define BUSY_PERCENT 25

#define JITTER_NS 100000000

/* Up to here, each thread is observed in each round. */
#define THREADS_OF_EVERY_ROUND 64
/* A thread that was blocked for so many rounds is observed in one of QUIET_SHARE rounds. */
#define QUIET_ROUNDS 32
#define QUIET_SHARE  8

#define DESCRIPTORS_MAX	     32768
#define DESCRIPTORS_RESERVED 16 /* for files that are closed after a read */

struct sampler {
	pthread_t thread;
	int stop_event;
	int end_event; /* readable: a program asked for the end */
	_Atomic bool is_stopping;
	struct sampling sampling;
	struct process_tree tree;
	struct perf_events *perf; /* NULL: refused */
	char why_no_perf[SAMPLER_WHY_BYTES], why_no_memory[SAMPLER_WHY_BYTES];
	char *data_dir;
	struct rlimit limit; /* of descriptors, before */
	bool raised_limit;
	uint64_t next_ns, late_ns, round, cost_ns, jittered_ns;
};

/* Main threads matter most, and threads that run change all the time. */
static bool is_due(const struct sampler *sampler, const struct sampled_process *process,
		   const struct sampled_thread *thread)
{
	return process->thread_count <= THREADS_OF_EVERY_ROUND ||
	       thread->quiet_rounds < QUIET_ROUNDS || thread->tid == process->pid ||
	       (sampler->round + (uint64_t)thread->tid) % QUIET_SHARE == 0;
}

static void observe_process(struct sampler *sampler, struct sampled_process *process)
{
	struct sampling *sampling = &sampler->sampling;

	process->is_python_fresh = false;
	sampling_prepare(process, monotonic_ns());
	for (size_t i = 0; i < process->thread_count && !sampler->is_stopping; i++) {
		struct sampled_thread *thread = process->threads[i];

		if (!thread->has_ended && is_due(sampler, process, thread))
			observe_thread(sampling, process, thread);
	}
}

/* Observes new threads at once: a short process may end before the next round. */
static void observe_new_threads(struct sampler *sampler)
{
	struct sampling *sampling = &sampler->sampling;

	for (size_t i = 0; i < sampling->processes.count && !sampler->is_stopping; i++) {
		struct sampled_process *process = sampling->processes.list[i];

		for (size_t t = 0; t < process->thread_count && !process->has_no_log; t++) {
			struct sampled_thread *thread = process->threads[t];

			if (thread->is_known || thread->has_ended)
				continue;
			sampling_prepare(process, monotonic_ns());
			observe_thread(sampling, process, thread);
		}
	}
}

static void flush_log(struct sampler *sampler, struct sampled_process *process, uint64_t now_ns)
{
	for (size_t i = 0; i < process->thread_count; i++)
		if (process->threads[i]->id)
			thread_rows_split(&process->threads[i]->rows, cpu_log_rows(process->log));
	sampling_note_write(&sampler->sampling,
			    cpu_log_flush(process->log, &sampler->sampling.tables, now_ns));
}

static void flush_logs(struct sampler *sampler)
{
	struct process_table *table = &sampler->sampling.processes;
	uint64_t now_ns = monotonic_ns();

	for (size_t i = 0; i < table->count && !sampler->is_stopping; i++)
		if (table->list[i]->log && cpu_log_is_due(table->list[i]->log, now_ns))
			flush_log(sampler, table->list[i], now_ns);
}

/*
 * Setting a period drops what has passed of the old one, on all CPUs that the thread ran on. So it
 * is done just after a sample, and not often.
 */
static void drain(struct sampler *sampler)
{
	uint64_t now_ns;

	if (!sampler->perf)
		return;
	sampler->sampling.has_root_sample = false;
	perf_events_drain(sampler->perf, observe_sample, &sampler->sampling);
	now_ns = monotonic_ns();
	if (!sampler->sampling.has_root_sample || now_ns - sampler->jittered_ns < JITTER_NS)
		return;
	perf_events_jitter(sampler->perf);
	sampler->jittered_ns = now_ns;
}

/* Plans the next round. Rounds that cost too much reduce the rate. */
static void plan(struct sampler *sampler, uint64_t begin_ns, uint64_t end_ns)
{
	struct sampling *sampling = &sampler->sampling;
	uint64_t cost_ns = end_ns - begin_ns, wait_ns, least_ns;

	/* 80 to 120 % of the period. */
	wait_ns = sampling->period_ns / 1000 * (800 + sampling_random(sampling, 401));
	sampler->cost_ns = (sampler->cost_ns * 7 + cost_ns) / 8;
	least_ns = sampler->cost_ns * 100 / BUSY_PERCENT;
	if (least_ns > wait_ns) {
		sampler->late_ns += least_ns - wait_ns;
		wait_ns = least_ns;
	}
	sampler->next_ns = larger(begin_ns + wait_ns, end_ns);
}

static void round_of_all(struct sampler *sampler)
{
	struct sampling *sampling = &sampler->sampling;
	uint64_t begin_ns = monotonic_ns();

	process_tree_begin(&sampler->tree, begin_ns);
	for (size_t i = 0; i < sampling->processes.count; i++) {
		struct sampled_process *process = sampling->processes.list[i];

		if (!process->has_no_log && !process->has_ended)
			observe_process(sampler, process);
	}
	process_tree_scan(&sampler->tree, sampling);
	if (sampler->tree.is_due)
		observe_new_threads(sampler);
	process_tree_sweep(sampling);
	flush_logs(sampler);
	sampler->round++;
	plan(sampler, begin_ns, monotonic_ns());
}

static void wait_for_work(struct sampler *sampler)
{
	struct pollfd polled[] = {
		{.fd = sampler->stop_event, .events = POLLIN},
		{.fd = sampler->perf ? perf_events_descriptor(sampler->perf) : -1,
		 .events = POLLIN},
		{.fd = sampler->sampling.claims.epoll_fd, .events = POLLIN},
	};
	uint64_t now_ns = monotonic_ns(),
		 left_ns = sampler->next_ns > now_ns ? sampler->next_ns - now_ns : 0;
	const struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};

	if (ppoll(polled, 3, &left, NULL) <= 0)
		return;
	if (polled[1].revents)
		perf_events_drop_ended(sampler->perf);
	if (polled[2].revents && claims_answer(&sampler->sampling.claims))
		eventfd_write(sampler->end_event, 1);
}

/* Records the counts of the whole recording, in the log of the program. */
static void record_totals(struct sampler *sampler)
{
	const struct sampling *sampling = &sampler->sampling;
	struct sampled_process *root = process_table_find(&sampling->processes, sampling->root);
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"cpu.sampler.cpu_ns", xt_clock_ns(CLOCK_THREAD_CPUTIME_ID)},
		{"cpu.late_ns", sampler->late_ns},
		{"cpu.lost.observations", sampling->lost_observations},
		{"cpu.lost.processes", sampling->lost_processes},
		{"cpu.lost.perf", sampler->perf ? sampler->perf->lost_count : 0},
	};

	for (size_t i = 0; root && root->log && i < sizeof(rows) / sizeof(rows[0]); i++)
		cpu_log_account(root->log, rows[i].name, rows[i].value);
}

static void *sampler_run(void *context)
{
	struct sampler *sampler = context;
	struct sampling *sampling = &sampler->sampling;

	prctl(PR_SET_NAME, "xtrace-sampler");
	while (!sampler->is_stopping) {
		wait_for_work(sampler);
		drain(sampler);
		if (!sampler->is_stopping && monotonic_ns() >= sampler->next_ns)
			round_of_all(sampler);
	}
	record_totals(sampler);
	while (sampling->processes.count)
		sampling_end_process(sampling, sampling->processes.list[0]);
	return NULL;
}

/* Files of thousands of threads stay open. Children of xtrace started before this. */
static void raise_limit(struct sampler *sampler)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	sampler->limit = limit;
	limit.rlim_cur = smaller(limit.rlim_max, DESCRIPTORS_MAX);
	if (limit.rlim_cur > sampler->limit.rlim_cur && !setrlimit(RLIMIT_NOFILE, &limit))
		sampler->raised_limit = true;
}

static uint32_t count_open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/*
 * Divides the descriptors that are left. A quarter is for libraries. A log without one cannot be
 * written, so most of the others are for logs and the claims of their processes.
 * A file of a thread without one is opened for each read.
 */
static void share_descriptors(struct sampler *sampler)
{
	struct sampling *sampling = &sampler->sampling;
	uint32_t used = count_open_descriptors() + DESCRIPTORS_RESERVED, left = 0;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > used)
		left = (uint32_t)smaller(limit.rlim_cur, DESCRIPTORS_MAX) - used;
	elf_image_files_max = left / 4;
	left -= elf_image_files_max;
	sampling->log_limit = larger(smaller(left / 8 * 3, SAMPLER_LOGS_MAX), 1);
	left = left > 2 * sampling->log_limit ? left - 2 * sampling->log_limit : 0;
	sampling->descriptor_budget = (int)left;
}

static void open_perf(struct sampler *sampler, const struct sampler_options *options)
{
	char *why = sampler->why_no_perf;

	/* Each of its threads would need events of its own on each CPU. */
	if (options->is_running)
		snprintf(why, SAMPLER_WHY_BYTES,
			 "sampling began while the program ran; use 'xtrace record --cpu'");
	else if (perf_events_open(&sampler->perf, options->root, options->hz, why,
				  SAMPLER_WHY_BYTES))
		sampler->perf = NULL;
	if (sampler->perf)
		sampler->sampling.facts.sees_kernel = sampler->perf->sees_kernel;
	else
		sampler->sampling.facts.why_no_perf = why;
}

static int add_root(struct sampler *sampler, const struct sampler_options *options)
{
	struct sampled_process *root =
		sampling_add_process(&sampler->sampling, sampler->sampling.root);

	if (!root)
		return -ESRCH;
	if (!sampling_claim(&sampler->sampling, root))
		return -EADDRINUSE;
	/* Its stack before exec is that of xtrace itself. */
	root->awaits_exec = !options->is_running && root->stack_start != 0;
	if (options->ask_permission && process_memory_is_refused(root->pid, root->stack_start))
		options->ask_permission();
	process_memory_explain(root->pid, root->stack_start, sampler->why_no_memory,
			       SAMPLER_WHY_BYTES);
	if (sampler->why_no_memory[0])
		sampler->sampling.facts.why_no_memory = sampler->why_no_memory;
	return 0;
}

static void free_sampler(struct sampler *sampler)
{
	if (sampler->perf)
		perf_events_close(sampler->perf);
	if (sampler->raised_limit)
		setrlimit(RLIMIT_NOFILE, &sampler->limit);
	if (sampler->stop_event >= 0)
		close(sampler->stop_event);
	if (sampler->end_event >= 0)
		close(sampler->end_event);
	claims_close(&sampler->sampling.claims);
	process_tree_close(&sampler->tree);
	cpu_log_tables_free(&sampler->sampling.tables);
	free(sampler->sampling.processes.list);
	remote_unwind_close();
	free_all(sampler->data_dir, sampler);
}

/* Signals are for the main thread. */
static int start_thread(struct sampler *sampler)
{
	sigset_t all, mask;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	error = pthread_create(&sampler->thread, NULL, sampler_run, sampler);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return -error;
}

static int prepare(struct sampler *sampler, const struct sampler_options *options)
{
	struct sampling *sampling = &sampler->sampling;
	char why[SAMPLER_WHY_BYTES];
	int error;

	if (access("/proc/self/schedstat", R_OK))
		return -ENOSYS;
	error = cpu_log_tables_init(&sampling->tables);
	if (error)
		return error;
	sampler->data_dir = strdup(options->data_dir);
	sampler->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sampler->end_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!sampler->data_dir || sampler->stop_event < 0 || sampler->end_event < 0)
		return -ENOMEM;
	claims_open(&sampling->claims, sampler->data_dir);
	sampling->root = options->root;
	sampling->own_pid = getpid();
	sampling->is_late = options->is_running;
	sampling->facts.hz = options->hz;
	sampling->period_ns = 1000000000 / options->hz;
	sampling->start_ns = monotonic_ns();
	sampling->random = sampling->start_ns | 1;
	sampler->next_ns = sampling->start_ns;
	process_tree_open(&sampler->tree);
	raise_limit(sampler);
	/* Without libunwind there are still the innermost frames. */
	remote_unwind_open(options->library_dir, why, sizeof(why));
	open_perf(sampler, options);
	share_descriptors(sampler);
	return add_root(sampler, options);
}

int sampler_start(struct sampler **out, const struct sampler_options *options)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int error;

	*out = NULL;
	if (!sampler)
		return -ENOMEM;
	sampler->stop_event = sampler->end_event = sampler->tree.loadavg = -1;
	sampler->sampling.claims.epoll_fd = -1;
	error = prepare(sampler, options);
	if (!error)
		error = start_thread(sampler);
	if (error) {
		while (sampler->sampling.processes.count)
			sampling_end_process(&sampler->sampling,
					     sampler->sampling.processes.list[0]);
		free_sampler(sampler);
		return error;
	}
	*out = sampler;
	return 0;
}

const char *sampler_why_no_memory(const struct sampler *sampler)
{
	return sampler->why_no_memory;
}

int sampler_end_descriptor(const struct sampler *sampler)
{
	return sampler->end_event;
}

void sampler_stop(struct sampler *sampler, struct sampler_result *result)
{
	*result = (struct sampler_result){0};
	if (!sampler)
		return;
	sampler->is_stopping = true;
	eventfd_write(sampler->stop_event, 1);
	pthread_join(sampler->thread, NULL);
	result->process_count = sampler->sampling.total_logs;
	result->thread_count = (uint32_t)sampler->sampling.total_threads;
	result->lost_processes = sampler->sampling.lost_processes;
	result->run_ns = sampler->sampling.total_run_ns;
	result->write_error = sampler->sampling.write_error;
	result->log_limit = sampler->sampling.log_limit;
	result->is_untraceable = sampler->sampling.is_root_untraceable;
	result->observation_count = sampler->sampling.total_observations;
	snprintf(result->why_no_perf, sizeof(result->why_no_perf), "%s", sampler->why_no_perf);
	snprintf(result->why_no_memory, sizeof(result->why_no_memory), "%s",
		 sampler->why_no_memory);
	free_sampler(sampler);
}
