/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that read logs. One lock protects the data shared with the main thread. A reading belongs
 * to its worker until it is complete, then to the main thread.
 */
#include "merge/worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "merge/read/model_load.h"
#include "merge/symbolize/host_stacks.h"
#include "merge/events.h"

struct job {
	struct run run; /* collects the counts of its events */
	struct reading reading;
	bool is_read;
	bool is_opened; /* otherwise the waiting thread reports the error */
};

struct worker_pool {
	struct run *run; /* of all logs */
	struct job *jobs;
	size_t worker_count;
	bool has_helpers; /* each worker has a second thread */
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

static void read_job(struct job *job, const struct input *log, bool has_helper)
{
	struct reading *reading = &job->reading;
	struct xt_reader *reader;

	reading->error = model_open(log, NULL, &reading->model, &reader);
	job->is_opened = reading->error || reader;
	if (!reader)
		return;
	reading->process.model = reading->model;
	reading->error = host_stacks_find(reading->model);
	if (!reading->error)
		reading->error = reading_events(reading, reader, has_helper, NULL);
	xt_reader_close(reader);
}

/* Returns the next log to read, or NULL if there is none. */
static struct job *next_job(struct worker_pool *pool, size_t *index)
{
	struct job *job = NULL;

	pthread_mutex_lock(&pool->lock);
	while (!pool->stopping && pool->begun < pool->run->inputs->count &&
	       pool->begun > pool->done + pool->worker_count)
		pthread_cond_wait(&pool->changed, &pool->lock);
	if (!pool->stopping && pool->begun < pool->run->inputs->count) {
		*index = pool->begun++;
		job = &pool->jobs[*index];
	}
	pthread_mutex_unlock(&pool->lock);
	return job;
}

static void *run_worker(void *argument)
{
	struct worker_pool *pool = argument;
	struct job *job;
	size_t index;

	while ((job = next_job(pool, &index))) {
		read_job(job, &pool->run->inputs->logs[index], pool->has_helpers);
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

int worker_pool_start(struct worker_pool **pool_out, struct run *run, struct sink *sinks,
		      size_t sink_count)
{
	size_t wanted = workers_wanted(run), count = run->inputs->count;
	struct worker_pool *pool;

	*pool_out = NULL;
	if (wanted < 2 || run->selection || run->wants_findings ||
	    sinks_want_events(sinks, sink_count))
		return 0;
	pool = calloc(1, sizeof(*pool));
	if (pool)
		pool->jobs = calloc(count, sizeof(*pool->jobs));
	if (!pool || !pool->jobs) {
		free(pool);
		return -ENOMEM;
	}
	pool->run = run;
	pool->has_helpers = jobs_allowed(run) >= 2 * wanted;
	for (size_t j = 0; j < count; j++) {
		struct job *job = &pool->jobs[j];

		job->run = (struct run){.inputs = run->inputs,
					.cpu_logs = run->cpu_logs,
					.settings = run->settings,
					.weights = run->weights,
					.weights_needed = run->weights_needed,
					.wants_origins = run->wants_origins,
					.compares_ranks = run->compares_ranks};
		job->reading = (struct reading){
			.run = &job->run,
			.sinks = sinks,
			.sink_count = sink_count,
			.process.log = &run->inputs->logs[j],
		};
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	start_workers(pool, wanted);
	if (pool->worker_count) {
		*pool_out = pool;
		return 0;
	}
	worker_pool_stop(pool);
	return 0;
}

struct reading *worker_pool_wait(struct worker_pool *pool, size_t index)
{
	struct job *job = &pool->jobs[index];

	pthread_mutex_lock(&pool->lock);
	while (!job->is_read)
		pthread_cond_wait(&pool->changed, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	if (!job->is_opened) {
		worker_pool_release(pool, index);
		return NULL;
	}
	for (size_t c = 0; c < sizeof(job->run.counted) / sizeof(*job->run.counted); c++)
		pool->run->counted[c] += job->run.counted[c];
	job->reading.run = pool->run;
	return &job->reading;
}

static void free_job(struct job *job)
{
	reading_free(&job->reading);
	model_free(job->reading.model);
	job->reading = (struct reading){0};
}

void worker_pool_release(struct worker_pool *pool, size_t index)
{
	free_job(&pool->jobs[index]);
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
		free_job(&pool->jobs[j]);
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->lock);
	free(pool->jobs);
	free(pool);
}
