/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the idle programs; see idle.h.
 */
#include "idle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define JOBS_MAX 64

static struct {
	void (*job)(int number);
	int count;
	int next;
	bool is_done[JOBS_MAX];
	pthread_t threads[WORKERS];
} workers; /* under lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_done = PTHREAD_COND_INITIALIZER;

void idle_launch(const struct pattern *p)
{
	pattern_spin(p, p->stream, FULL_BLOCKS, KERNEL_NS);
}

static void *worker_main(void *unused)
{
	pthread_mutex_lock(&lock);
	while (workers.next < workers.count) {
		int number = workers.next++;

		pthread_mutex_unlock(&lock);
		workers.job(number);
		pthread_mutex_lock(&lock);
		workers.is_done[number] = true;
		pthread_cond_broadcast(&was_done);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

void workers_start(void (*job)(int number), int count)
{
	if (count > JOBS_MAX)
		abort();
	workers.job = job;
	workers.count = count;
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers.threads[i], NULL, worker_main, NULL)) {
			fprintf(stderr, "cannot create a thread\n");
			exit(1);
		}
}

void workers_wait(int number)
{
	pthread_mutex_lock(&lock);
	while (!workers.is_done[number])
		pthread_cond_wait(&was_done, &lock);
	pthread_mutex_unlock(&lock);
}

void workers_join(void)
{
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers.threads[i], NULL);
}

int idle_open_file(void)
{
	char path[] = "idle.XXXXXX";
	int file = mkstemp(path);

	if (file < 0) {
		perror("cannot create a file in the current folder");
		exit(1);
	}
	unlink(path);
	return file;
}
