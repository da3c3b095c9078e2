/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C code between Python frames. One function calls back, one calls back in a thread that Python did
 * not create, and one launches for a while without returning to Python.
 */
#include <pthread.h>
#include <stddef.h>
#include <time.h>

typedef int callback(int);

__attribute__((visibility("default"))) int bridge_call(callback *function, int argument);
__attribute__((visibility("default"))) int bridge_thread(callback *function, int argument);

typedef int launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		   void *stream, void **parameters, void **extra);

/* Rounds of bridge_spin() in all threads. */
__attribute__((visibility("default"))) extern unsigned long bridge_spun;
unsigned long bridge_spun;

__attribute__((visibility("default"))) void bridge_spin(launch *launch, void *function,
							unsigned duration_ms);

int bridge_call(callback *function, int argument)
{
	int result = function(argument);

	__asm__ volatile("" ::: "memory");
	return result;
}

struct job {
	callback *function;
	int argument;
};

static void *run(void *arg)
{
	const struct job *job = arg;

	bridge_call(job->function, job->argument);
	return NULL;
}

int bridge_thread(callback *function, int argument)
{
	struct job job = {function, argument};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, &job))
		return -1;
	return pthread_join(thread, NULL);
}

static unsigned long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000;
}

void bridge_spin(launch *launch, void *function, unsigned duration_ms)
{
	unsigned long end_ms = now_ms() + duration_ms;

	while (now_ms() < end_ms) {
		for (int i = 0; i < 20; i++)
			launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		__atomic_fetch_add(&bridge_spun, 1, __ATOMIC_RELAXED);
	}
}
