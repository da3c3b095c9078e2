/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the memory that the tracer uses. Any thread, also in cold paths of callbacks: no lock, no
 * malloc, no system call.
 */
#include "inject/memory/budget.h"

#include <stdatomic.h>

static atomic_size_t held = BUDGET_FIXED_BYTES;
static atomic_size_t allowed = BUDGET_PROCESS_BYTES;
static atomic_size_t most = BUDGET_FIXED_BYTES;
static atomic_uint_fast64_t refusals;

static void note(size_t bytes)
{
	size_t before = atomic_load(&most);

	while (before < bytes && !atomic_compare_exchange_weak(&most, &before, bytes))
		;
}

bool budget_take(size_t bytes)
{
	size_t now = atomic_load(&held);

	do {
		if (now + bytes > atomic_load(&allowed)) {
			atomic_fetch_add(&refusals, 1);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&held, &now, now + bytes));
	note(now + bytes);
	return true;
}

void budget_give_back(size_t bytes)
{
	atomic_fetch_sub(&held, bytes);
}

void budget_add_thread_buffer(size_t own_bytes)
{
	atomic_fetch_add(&allowed, BUDGET_THREAD_BYTES);
	note(atomic_fetch_add(&held, own_bytes) + own_bytes);
}

uint64_t budget_peak_bytes(void)
{
	return atomic_load(&most);
}

uint64_t budget_refusals(void)
{
	return atomic_load(&refusals);
}
