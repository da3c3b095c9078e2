/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver state of each thread. Allocated when the thread first calls the driver, freed when the
 * thread exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simgpu/sim.h"

static __thread struct sim_thread *self __attribute__((tls_model("initial-exec")));
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

static void thread_exit(void *data)
{
	struct sim_thread *thread = data;

	if (thread->own_streams)
		thread->free_own_streams(thread);
	free(thread->context_stack);
	free(thread);
	self = NULL;
}

static void make_exit_key(void)
{
	if (pthread_key_create(&exit_key, thread_exit)) {
		fputs("xtrace simulated GPU: no thread key is left\n", stderr);
		abort();
	}
}

static struct sim_thread *thread_begin(void)
{
	struct sim_thread *thread = calloc(1, sizeof(*thread));

	if (!thread) {
		fputs("xtrace simulated GPU: no memory for a thread\n", stderr);
		abort();
	}
	pthread_once(&exit_key_once, make_exit_key);
	pthread_setspecific(exit_key, thread);
	thread->tid = (int)syscall(SYS_gettid);
	self = thread;
	return thread;
}

struct sim_thread *sim_thread(void)
{
	struct sim_thread *thread = self;

	return __builtin_expect(thread != NULL, 1) ? thread : thread_begin();
}
