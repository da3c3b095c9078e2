/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuInit() and fork handling. cuInit() loads the library that CUDA_INJECTION64_PATH names, as
 * NVIDIA's driver does.
 *
 * A child of an initialised process cannot use the device, as with a real GPU: all its calls fail
 * with CUDA_ERROR_NOT_INITIALIZED. A child forked before cuInit() can use it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "simgpu/sim.h"

enum state { STATE_NEW, STATE_READY, STATE_FORKED };

static _Atomic int state;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

bool sim_is_ready(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == STATE_READY;
}

bool sim_is_usable(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) != STATE_FORKED;
}

static void before_fork(void)
{
	pthread_mutex_lock(&init_lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&init_lock);
}

static void after_fork_in_child(void)
{
	if (sim_is_ready())
		atomic_store(&state, STATE_FORKED);
	pthread_mutex_init(&init_lock, NULL);
}

/* Failures are reported on stderr. NVIDIA's driver is silent. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library;
	int (*initialize)(void);

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "xtrace simulated GPU: CUDA_INJECTION64_PATH: %s\n", dlerror());
		return;
	}
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (!initialize) {
		fprintf(stderr, "xtrace simulated GPU: %s has no InitializeInjection\n", path);
		return;
	}
	initialize();
}

unsigned sim_set_up_begin(void)
{
	unsigned in_use = atomic_load(&sim_switches.was_used);

	atomic_fetch_add(&sim_switches.set_up_count, in_use);
	if (sim_config()->set_up_ms) /* sleeping is a cancellation point */
		usleep((useconds_t)(1000 * sim_config()->set_up_ms));
	return in_use;
}

void sim_set_up_end(unsigned begun)
{
	atomic_fetch_sub(&sim_switches.set_up_count, begun);
}

CUresult sim_init(unsigned int flags)
{
	static __thread bool is_inside; /* cuInit() called from the injected library */
	CUresult result = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_is_ready() || is_inside)
		return CUDA_SUCCESS;
	if (!sim_is_usable())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&init_lock);
	if (!sim_is_ready()) {
		if (!sim_config()->device_count) {
			result = CUDA_ERROR_NO_DEVICE;
		} else {
			is_inside = true;
			inject();
			is_inside = false;
			sim_set_up_end(sim_set_up_begin());
			pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
			atomic_store_explicit(&state, STATE_READY, memory_order_release);
			sim_resource_notify(XT_CUPTI_RESOURCE_CU_INIT_FINISHED, NULL, NULL, NULL);
		}
	}
	pthread_mutex_unlock(&init_lock);
	return result;
}

CUresult sim_driver_get_version(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}
