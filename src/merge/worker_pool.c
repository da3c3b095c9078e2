/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that read logs. One lock protects the data shared with the main thread. A reading belongs
 * to its worker until it is complete, then to the main thread.
 */
#include "merge/worker_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "merge/log_job.h"

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

unsigned processors(void)
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

static void *run_worker(void *argument)
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

/* Workers block all signals: handlers run on the main thread and remove unfinished files. */
static void start_workers(struct worker_pool *pool, size_t count)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	pthread_mutex_lock(&pool->lock);
	for (size_t w = 0; w < count; w++) {
		if (pthread_create(&pool->workers[w], NULL, run_worker, pool))
			break;
		pool->worker_count++;
	}
	pthread_mutex_unlock(&pool->lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static size_t workers_wanted(const struct run *run)
{
	size_t wanted = jobs_allowed(run);

	if (wanted > run->inputs->count)
		wanted = run->inputs->count;
	return wanted > WORKERS_MAX ? WORKERS_MAX : wanted;
}

void worker_pool_start(struct worker_pool **pool_out, struct run *run, struct sink *sinks,
		       size_t sink_count)
{
	size_t wanted = workers_wanted(run), count = run->inputs->count;
	struct worker_pool *pool;

	*pool_out = NULL;
	if (wanted < 2 || !log_jobs_possible(run, sinks, sink_count))
		return;
	pool = xt_calloc(1, sizeof(*pool));
	pool->jobs = xt_calloc(count, sizeof(*pool->jobs));
	pool->run = run;
	pool->helper_count = jobs_allowed(run) / wanted - 1;
	for (size_t j = 0; j < count; j++)
		log_job_init(&pool->jobs[j], run, sinks, sink_count, j);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	start_workers(pool, wanted);
	if (pool->worker_count) {
		*pool_out = pool;
		return;
	}
	worker_pool_stop(pool);
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
	free(pool->jobs);
	free(pool);
}
