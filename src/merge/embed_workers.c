/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/embed_workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/worker_pool.h"
#include "merge/symbolize/embed.h"

struct job {
	struct report report; /* holds its lines until those of earlier logs are printed */
	int error;
};

struct embedding {
	const struct inputs *inputs;
	const char *torch_trace;
	struct debug_search *search;
	struct job *jobs; /* one per log */
	pthread_mutex_t lock;
	size_t begun; /* protected by the lock */
};

static void *run_worker(void *argument)
{
	struct embedding *e = argument;

	for (;;) {
		struct job *job;
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

/* The main thread is one of the workers. It is the only one if no thread can be created. */
static void run_workers(struct embedding *e, size_t count)
{
	pthread_t workers[WORKERS_MAX];
	sigset_t all, before;
	size_t started = 0;

	/* Only the main thread handles signals. */
	sigfillset(&all);
	if (!pthread_sigmask(SIG_SETMASK, &all, &before)) {
		while (started + 1 < count &&
		       !pthread_create(&workers[started], NULL, run_worker, e))
			started++;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	run_worker(e);
	for (size_t w = 0; w < started; w++)
		pthread_join(workers[w], NULL);
}

int embed_all(const struct inputs *inputs, const char *torch_trace, size_t worker_count,
	      struct debug_search *search, struct report *report)
{
	struct embedding e = {.inputs = inputs,
			      .torch_trace = torch_trace,
			      .search = search,
			      .lock = PTHREAD_MUTEX_INITIALIZER};
	size_t count = worker_count ? worker_count : processors();
	int error = 0;

	if (count > inputs->all_count)
		count = inputs->all_count;
	if (count > WORKERS_MAX)
		count = WORKERS_MAX;
	e.jobs = xt_calloc(inputs->all_count + 1, sizeof(*e.jobs));
	for (size_t i = 0; i < inputs->all_count; i++)
		e.jobs[i].report.is_held = true;
	run_workers(&e, count);
	for (size_t i = 0; i < inputs->all_count; i++) {
		report_release(report, &e.jobs[i].report);
		if (e.jobs[i].error)
			error = e.jobs[i].error;
	}
	free(e.jobs);
	pthread_mutex_destroy(&e.lock);
	return error;
}
