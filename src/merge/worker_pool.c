/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that read logs, or embed symbols into them. A lock protects the data shared with the main
 * thread. A reading belongs to its worker until it is complete, then to the main thread.
 */
#include "merge/worker_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "merge/apart.h"
#include "merge/symbolize/embed.h"

#define WORKERS_MAX 8

struct worker_pool {
	struct run *run; /* of all logs */
	struct log_job *jobs;
	size_t worker_count;
	size_t helper_count; /* of each worker */
	pthread_t workers[WORKERS_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Protected by the lock. */
	size_t begun;
	size_t done;
	bool stopping;
};

/* Returns the number of threads that the process may run at the same time. */
static unsigned processors(void)
{
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		return (unsigned)CPU_COUNT(&set);
	return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

size_t jobs_allowed(const struct run *run)
{
	return run->settings->jobs ? run->settings->jobs : processors();
}

/* Returns the next log to read, or NULL if there is none. */
static struct log_job *next_job(struct worker_pool *pool)
{
	struct log_job *job = NULL;

	pthread_mutex_lock(&pool->lock);
	while (!pool->stopping && pool->begun < pool->run->inputs->count &&
	       pool->begun > pool->done + pool->worker_count)
		pthread_cond_wait(&pool->changed, &pool->lock);
	if (!pool->stopping && pool->begun < pool->run->inputs->count)
		job = &pool->jobs[pool->begun++];
	pthread_mutex_unlock(&pool->lock);
	return job;
}

static void *read_logs(void *argument)
{
	struct worker_pool *pool = argument;
	struct log_job *job;

	while ((job = next_job(pool))) {
		log_job_read(job, pool->helper_count);
		pthread_mutex_lock(&pool->lock);
		job->is_read = true;
		pthread_cond_broadcast(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
	}
	return NULL;
}

/*
 * Starts up to that many threads. Returns their number. They block all signals: handlers run on the
 * main thread and remove unfinished files.
 */
static size_t start_threads(pthread_t *threads, size_t count, void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	size_t started = 0;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return 0;
	while (started < count && !pthread_create(&threads[started], NULL, run, argument))
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t smaller = a < b ? a : b;

	return smaller < c ? smaller : c;
}

struct worker_pool *worker_pool_start(struct run *run, struct sink *sinks, size_t sink_count)
{
	size_t count = run->inputs->count;
	size_t wanted = smallest(jobs_allowed(run), count, WORKERS_MAX);
	struct worker_pool *pool;

	if (wanted < 2 || !log_jobs_possible(run, sinks, sink_count))
		return NULL;
	pool = xt_calloc(1, sizeof(*pool));
	pool->jobs = xt_calloc(count, sizeof(*pool->jobs));
	pool->run = run;
	pool->helper_count = jobs_allowed(run) / wanted - 1;
	for (size_t j = 0; j < count; j++)
		log_job_init(&pool->jobs[j], run, sinks, sink_count, j);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	pthread_mutex_lock(&pool->lock);
	pool->worker_count = start_threads(pool->workers, wanted, read_logs, pool);
	pthread_mutex_unlock(&pool->lock);
	if (pool->worker_count)
		return pool;
	worker_pool_stop(pool);
	return NULL;
}

struct reading *worker_pool_wait(struct worker_pool *pool, size_t index)
{
	struct log_job *job = &pool->jobs[index];

	pthread_mutex_lock(&pool->lock);
	while (!job->is_read)
		pthread_cond_wait(&pool->changed, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	if (!job->is_opened) {
		worker_pool_release(pool, index);
		return NULL;
	}
	return log_job_join(job);
}

void worker_pool_release(struct worker_pool *pool, size_t index)
{
	log_job_free(&pool->jobs[index]);
	pthread_mutex_lock(&pool->lock);
	pool->done = index + 1;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

void worker_pool_stop(struct worker_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	for (size_t w = 0; w < pool->worker_count; w++)
		pthread_join(pool->workers[w], NULL);
	for (size_t j = 0; j < pool->run->inputs->count; j++)
		log_job_free(&pool->jobs[j]);
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->lock);
	free_all(pool->jobs, pool);
}

struct embed_job {
	struct report report; /* holds its lines until those of earlier logs are printed */
	int error;
};

struct embedding {
	const struct inputs *inputs;
	const char *torch_trace;
	struct debug_search *search;
	struct embed_job *jobs; /* one per log */
	pthread_mutex_t lock;
	size_t begun; /* protected by the lock */
};

static void *embed_logs(void *argument)
{
	struct embedding *e = argument;

	for (;;) {
		struct embed_job *job;
		size_t index;

		pthread_mutex_lock(&e->lock);
		index = e->begun++;
		pthread_mutex_unlock(&e->lock);
		if (index >= e->inputs->all_count)
			return NULL;
		job = &e->jobs[index];
		job->error = embed_symbols(&e->inputs->logs[index], e->torch_trace, e->search,
					   &job->report);
	}
}

int embed_all(const struct inputs *inputs, const char *torch_trace, size_t worker_count,
	      struct debug_search *search, struct report *report)
{
	struct embedding e = {.inputs = inputs,
			      .torch_trace = torch_trace,
			      .search = search,
			      .lock = PTHREAD_MUTEX_INITIALIZER};
	size_t count = smallest(worker_count ? worker_count : processors(), inputs->all_count,
				WORKERS_MAX);
	pthread_t workers[WORKERS_MAX];
	size_t started;
	int error = 0;

	e.jobs = xt_calloc(inputs->all_count + 1, sizeof(*e.jobs));
	for (size_t i = 0; i < inputs->all_count; i++)
		e.jobs[i].report.is_held = true;
	/* The main thread is one of the workers. It is the only one if no thread can be created. */
	started = start_threads(workers, count ? count - 1 : 0, embed_logs, &e);
	embed_logs(&e);
	for (size_t w = 0; w < started; w++)
		pthread_join(workers[w], NULL);
	for (size_t i = 0; i < inputs->all_count; i++) {
		report_release(report, &e.jobs[i].report);
		if (e.jobs[i].error)
			error = e.jobs[i].error;
	}
	free(e.jobs);
	pthread_mutex_destroy(&e.lock);
	return error;
}
