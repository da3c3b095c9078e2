/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that read logs. What is shared between them and the main thread is under one lock; a
 * reading belongs to its worker until it is read, then to the main thread.
 */
#include "merge/worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "merge/read/model_load.h"

struct job {
	struct run run; /* a stand-in: what events count */
	struct reading reading;
	bool is_read;
	bool is_opened; /* else it is for who waits to say what is wrong */
};

struct crew {
	struct run *run; /* of all logs */
	struct job *jobs;
	size_t worker_count;
	pthread_t workers[CREW_WORKERS_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock: */
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

static void read_job(struct job *job, const char *path)
{
	struct reading *reading = &job->reading;
	struct xt_reader *reader;

	if (xt_reader_open(path, &reader))
		return;
	reading->error = model_load(&reading->model, reader);
	xt_reader_close(reader);
	if (!reading->error && xt_reader_open(path, &reader)) {
		model_free(reading->model);
		reading->model = NULL;
		return;
	}
	job->is_opened = true;
	if (reading->error)
		return;
	reading->process.model = reading->model;
	reading->error = reading_events(reading, reader, false, NULL);
	xt_reader_close(reader);
}

/* The next log that may be begun, or NULL: there is none any more. */
static struct job *next_job(struct crew *crew, size_t *index)
{
	struct job *job = NULL;

	pthread_mutex_lock(&crew->lock);
	while (!crew->stopping && crew->begun < crew->run->inputs->count &&
	       crew->begun > crew->done + crew->worker_count)
		pthread_cond_wait(&crew->changed, &crew->lock);
	if (!crew->stopping && crew->begun < crew->run->inputs->count) {
		*index = crew->begun++;
		job = &crew->jobs[*index];
	}
	pthread_mutex_unlock(&crew->lock);
	return job;
}

static void *work_off(void *argument)
{
	struct crew *crew = argument;
	struct job *job;
	size_t index;

	while ((job = next_job(crew, &index))) {
		read_job(job, crew->run->inputs->logs[index].path);
		pthread_mutex_lock(&crew->lock);
		job->is_read = true;
		pthread_cond_broadcast(&crew->changed);
		pthread_mutex_unlock(&crew->lock);
	}
	return NULL;
}

/* Signals are the main thread's: its handlers remove what is unfinished. */
static void start_workers(struct crew *crew, size_t count)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	pthread_mutex_lock(&crew->lock);
	for (size_t w = 0; w < count; w++) {
		if (pthread_create(&crew->workers[w], NULL, work_off, crew))
			break;
		crew->worker_count++;
	}
	pthread_mutex_unlock(&crew->lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static size_t workers_wanted(const struct run *run)
{
	size_t wanted = run->settings->jobs;

	if (!wanted)
		wanted = processors();
	if (wanted > run->inputs->count)
		wanted = run->inputs->count;
	return wanted > CREW_WORKERS_MAX ? CREW_WORKERS_MAX : wanted;
}

int crew_hire(struct crew **crew_out, struct run *run, struct sink *sinks, size_t sink_count)
{
	size_t wanted = workers_wanted(run), count = run->inputs->count;
	struct crew *crew;

	*crew_out = NULL;
	if (wanted < 2 || run->selection || run->wants_findings ||
	    reading_is_listened_to(sinks, sink_count))
		return 0;
	crew = calloc(1, sizeof(*crew));
	if (crew)
		crew->jobs = calloc(count, sizeof(*crew->jobs));
	if (!crew || !crew->jobs) {
		free(crew);
		return -ENOMEM;
	}
	crew->run = run;
	for (size_t j = 0; j < count; j++) {
		struct job *job = &crew->jobs[j];

		job->run = (struct run){.settings = run->settings,
					.weights = run->weights,
					.weights_needed = run->weights_needed,
					.wants_origins = run->wants_origins};
		job->reading = (struct reading){
			.run = &job->run, .sinks = sinks, .sink_count = sink_count};
	}
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->changed, NULL);
	start_workers(crew, wanted);
	if (crew->worker_count) {
		*crew_out = crew;
		return 0;
	}
	crew_dismiss(crew);
	return 0;
}

struct reading *crew_wait(struct crew *crew, size_t index)
{
	struct job *job = &crew->jobs[index];

	pthread_mutex_lock(&crew->lock);
	while (!job->is_read)
		pthread_cond_wait(&crew->changed, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
	if (!job->is_opened) {
		crew_done(crew, index);
		return NULL;
	}
	for (size_t c = 0; c < sizeof(job->run.counted) / sizeof(*job->run.counted); c++)
		crew->run->counted[c] += job->run.counted[c];
	job->reading.run = crew->run;
	return &job->reading;
}

static void free_job(struct job *job)
{
	reading_free(&job->reading);
	model_free(job->reading.model);
	job->reading = (struct reading){0};
}

void crew_done(struct crew *crew, size_t index)
{
	free_job(&crew->jobs[index]);
	pthread_mutex_lock(&crew->lock);
	crew->done = index + 1;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
}

void crew_dismiss(struct crew *crew)
{
	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->stopping = true;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	for (size_t w = 0; w < crew->worker_count; w++)
		pthread_join(crew->workers[w], NULL);
	for (size_t j = 0; j < crew->run->inputs->count; j++)
		free_job(&crew->jobs[j]);
	pthread_cond_destroy(&crew->changed);
	pthread_mutex_destroy(&crew->lock);
	free(crew->jobs);
	free(crew);
}
