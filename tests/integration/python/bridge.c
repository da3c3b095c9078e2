/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C between Python and Python: a function that is known to stand between two frames when it calls
 * back, and one that does so in a thread which Python did not make.
 */
#include <pthread.h>
#include <stddef.h>

typedef int callback(int);

__attribute__((visibility("default"))) int bridge_call(callback *function, int argument);
__attribute__((visibility("default"))) int bridge_thread(callback *function, int argument);

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
