/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After each step, another thread updates statistics and holds a mutex meanwhile. The launching
 * thread reads them before the next step. Good: the other thread computes first, and holds the
 * mutex only to publish the result.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "idle.h"

static pthread_mutex_t statistics_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t statistics; /* under statistics_lock */
static sem_t requested;	    /* one update */
static sem_t started;	    /* the update holds the mutex */
static atomic_bool is_over;

STACK_FRAME static void update_statistics(uint64_t *sum) /* cause */
{
	compute(STEP_NS);
	*sum += 1;
}

static void *statistics_main(void *is_bad)
{
	uint64_t sum = 0;

	while (sem_wait(&requested) == 0 && !is_over) {
		if (!is_bad)
			update_statistics(&sum);
		pthread_mutex_lock(&statistics_lock);
		if (is_bad) {
			sem_post(&started);
			update_statistics(&sum);
		}
		statistics = sum;
		pthread_mutex_unlock(&statistics_lock);
	}
	return NULL;
}

STACK_FRAME static uint64_t read_statistics(void)
{
	uint64_t sum;

	pthread_mutex_lock(&statistics_lock); /* waits */
	sum = statistics;
	pthread_mutex_unlock(&statistics_lock);
	return sum;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	sem_init(&requested, 0, 0);
	sem_init(&started, 0, 0);
	if (pthread_create(&thread, NULL, statistics_main, p.is_bad ? &p : NULL))
		return 1;
	for (int step = 0; step < STEPS; step++) {
		idle_launch(&p);
		sem_post(&requested);
		if (p.is_bad)
			sem_wait(&started);
		read_statistics();
	}
	is_over = true;
	sem_post(&requested);
	pthread_join(thread, NULL);
	return pattern_end(&p);
}
