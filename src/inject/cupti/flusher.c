/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher thread. Whatever it calls may block, for ever if need be: nobody waits for it
 * without a bound.
 */
#include "inject/cupti/flusher.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "inject/runtime/clock.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/sleep.h"
#include "inject/cupti/cupti_handoff.h"

#define PERIOD_MS     50
#define STOP_CHECK_MS 2

#define MULTIPROCESSOR_COUNT 16 /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */

static _Atomic(void (*)(void)) wanted_work;
static atomic_bool allowed, stopping, done, gpus_known;
static atomic_uint_fast64_t dropped_records, cpu_ns;
static struct gpu_names gpus;

void flusher_flush(uint32_t flag)
{
	size_t dropped = 0;

	cupti.cuptiActivityFlushAll(flag);
	if (cupti.cuptiActivityGetNumDroppedRecords &&
	    cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == XT_CUPTI_SUCCESS)
		atomic_fetch_add(&dropped_records, dropped);
	atomic_store(&cpu_ns, xt_clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* The driver is initialised by the time it is asked: cuInit() has returned to its caller, or has
 * at least come as far as to load us. Until then it says that it is not, and is asked again. */
static void ask_for_gpus(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get_count)(int *);
	int (*get_name)(char *, int, int);
	int (*get_uuid)(void *, int);
	int (*get_attribute)(int *, int, int);
	int count = 0;

	if (!driver)
		return;
	get_count = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
	get_name = (int (*)(char *, int, int))dlsym(driver, "cuDeviceGetName");
	get_uuid = (int (*)(void *, int))dlsym(driver, "cuDeviceGetUuid_v2");
	get_attribute = (int (*)(int *, int, int))dlsym(driver, "cuDeviceGetAttribute");
	if (get_count && get_name && !get_count(&count)) {
		for (int device = 0; device < count && device < GPUS_MAX; device++) {
			/* A CUdevice is the ordinal of the device. */
			if (get_name(gpus.names[device], GPU_NAME_BYTES - 1, device))
				break;
			if (get_uuid && get_uuid(gpus.uuids[device], device))
				memset(gpus.uuids[device], 0, GPU_UUID_BYTES);
			if (get_attribute && get_attribute(&gpus.multiprocessors[device],
							   MULTIPROCESSOR_COUNT, device))
				gpus.multiprocessors[device] = 0;
			gpus.count++;
		}
		atomic_store(&gpus_known, true);
	}
	dlclose(driver);
}

/* The work is taken away only when it is done: flusher_run() looks for that. */
static void do_wanted_work(void)
{
	void (*work)(void) = atomic_load(&wanted_work);

	if (work)
		work();
	atomic_compare_exchange_strong(&wanted_work, &work, NULL);
}

bool flusher_run(void (*work)(void), uint64_t patience_ns)
{
	uint64_t deadline_ns = monotonic_ns() + patience_ns;

	atomic_store(&wanted_work, work);
	while (atomic_load(&wanted_work) && !atomic_load(&done) && monotonic_ns() < deadline_ns)
		xt_sleep_ns(1000000);
	return !atomic_exchange(&wanted_work, NULL);
}

void *flusher_main(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "xtrace-flush");
	while (!atomic_load(&stopping)) {
		for (unsigned ms = 0; ms < PERIOD_MS && !atomic_load(&stopping);
		     ms += STOP_CHECK_MS) {
			xt_sleep_ns(STOP_CHECK_MS * 1000000);
			do_wanted_work();
		}
		cupti_handoff_return_if_due();
		if (!atomic_load(&allowed) || cupti_handoff_is_away())
			continue;
		flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
		if (!atomic_load(&gpus_known))
			ask_for_gpus();
	}
	if (atomic_load(&allowed) && !cupti_handoff_is_away()) {
		if (!atomic_load(&gpus_known))
			ask_for_gpus();
		/* Complete records first; then whatever is left, finished or not. */
		flusher_flush(XT_CUPTI_FLUSH_COMPLETED);
		flusher_flush(XT_CUPTI_FLUSH_FORCED);
	}
	atomic_store(&done, true);
	return NULL;
}

void flusher_allow(void)
{
	atomic_store(&allowed, true);
}

void flusher_stop(void)
{
	atomic_store(&stopping, true);
}

bool flusher_is_done(void)
{
	return atomic_load(&done);
}

const struct gpu_names *flusher_gpu_names(void)
{
	return atomic_load(&gpus_known) ? &gpus : NULL;
}

uint64_t flusher_cpu_ns(void)
{
	return atomic_load(&cpu_ns);
}

uint64_t flusher_dropped_records(void)
{
	return atomic_load(&dropped_records);
}
