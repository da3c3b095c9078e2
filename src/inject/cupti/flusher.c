/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared with the flusher thread. Its calls may block forever, so all waits for it have a
 * timeout.
 */
#include "inject/cupti/flusher.h"

#include <stdatomic.h>
#include <stddef.h>

#include "inject/runtime/clock.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/debug_log.h"
#include "inject/runtime/sleep.h"

#define SLOW_FLUSH_NS UINT64_C(1000000)

static _Atomic(void (*)(void)) requested_work;
static atomic_bool allowed, stopping, done;
static atomic_uint_fast64_t dropped_records, cpu_ns, flush_count;

void flusher_flush(uint32_t flag)
{
	uint64_t start_ns = monotonic_ns(), took_ns;
	size_t dropped = 0;

	cupti.cuptiActivityFlushAll(flag);
	took_ns = monotonic_ns() - start_ns;
	if (cupti.cuptiActivityGetNumDroppedRecords &&
	    cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == XT_CUPTI_SUCCESS)
		atomic_fetch_add(&dropped_records, dropped);
	if (took_ns >= SLOW_FLUSH_NS || dropped || flag == XT_CUPTI_FLUSH_FORCED)
		debug_log(DEBUG_CUPTI, "%s flush took %llu us; CUPTI dropped %zu records",
			  flag == XT_CUPTI_FLUSH_FORCED ? "forced" : "slow",
			  (unsigned long long)took_ns / 1000, dropped);
	atomic_store(&cpu_ns, xt_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	atomic_fetch_add(&flush_count, 1);
}

/* Clear the request only when done: flusher_run() waits for that. */
void flusher_do_work(void)
{
	void (*work)(void) = atomic_load(&requested_work);

	if (work)
		work();
	atomic_compare_exchange_strong(&requested_work, &work, NULL);
}

bool flusher_run(void (*work)(void), uint64_t timeout_ns)
{
	uint64_t deadline_ns = monotonic_ns() + timeout_ns;

	atomic_store(&requested_work, work);
	while (atomic_load(&requested_work) && !atomic_load(&done) && monotonic_ns() < deadline_ns)
		xt_sleep_ns(1000000);
	return !atomic_exchange(&requested_work, NULL);
}

void flusher_allow(void)
{
	atomic_store(&allowed, true);
}

bool flusher_is_allowed(void)
{
	return atomic_load(&allowed);
}

bool flusher_is_stopping(void)
{
	return atomic_load(&stopping);
}

void flusher_mark_done(void)
{
	atomic_store(&done, true);
}

void flusher_stop(void)
{
	atomic_store(&stopping, true);
}

bool flusher_is_done(void)
{
	return atomic_load(&done);
}

uint64_t flusher_flush_count(void)
{
	return atomic_load(&flush_count);
}

uint64_t flusher_cpu_ns(void)
{
	return atomic_load(&cpu_ns);
}

uint64_t flusher_dropped_records(void)
{
	return atomic_load(&dropped_records);
}
