/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the next input between launches. Good: other threads read it in advance, and the main
 * thread launches.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "pattern.h"

#define STEPS	  80
#define READERS	  8
#define READ_NS	  2000000
#define KERNEL_NS 1000000

static atomic_int next_input;
static bool is_read[STEPS]; /* under lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_read = PTHREAD_COND_INITIALIZER;

/* Blocks the thread like a read from a disk. */
static void read_input(void)
{
	struct timespec t = {0, READ_NS};

	nanosleep(&t, NULL);
}

static void *reader_main(void *unused)
{
	int input;

	while ((input = atomic_fetch_add(&next_input, 1)) < STEPS) {
		read_input();
		pthread_mutex_lock(&lock);
		is_read[input] = true;
		pthread_cond_signal(&was_read);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void wait_for(int input)
{
	pthread_mutex_lock(&lock);
	while (!is_read[input])
		pthread_cond_wait(&was_read, &lock);
	pthread_mutex_unlock(&lock);
}

STACK_FRAME static void step(const struct pattern *p, int input)
{
	if (p->is_bad)
		read_input();
	else
		wait_for(input);
	LAUNCH(p, p->stream, FULL_BLOCKS, KERNEL_NS); /* finding */
}

int main(int argc, char **argv)
{
	pthread_t readers[READERS];
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int i = 0; i < READERS && !p.is_bad; i++)
		if (pthread_create(&readers[i], NULL, reader_main, NULL))
			return 1;
	for (int i = 0; i < STEPS; i++)
		step(&p, i);
	for (int i = 0; i < READERS && !p.is_bad; i++)
		pthread_join(readers[i], NULL);
	return pattern_end(&p);
}
