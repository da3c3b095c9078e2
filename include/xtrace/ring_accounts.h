/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts that are sums of counters in the crash buffer. The tracer writes them from its own
 * memory, recovery from the crash buffer. Names: xtrace/account.h. Any thread.
 */
#ifndef XTRACE_RING_ACCOUNTS_H
#define XTRACE_RING_ACCOUNTS_H

#include "xtrace/crash_buffer_format.h"

/* A counter summed over all rings, and its part outside of rings. */
static const struct xt_ring_account {
	const char *name;
	enum xt_ring_counter counter;
	enum xt_crash_buffer_counter outside; /* XT_CRASH_BUFFER_COUNTERS: none */
} xt_ring_accounts[] = {
	{"nodes.seen", XT_RING_NODES_SEEN, XT_CRASH_BUFFER_COUNTERS},
	{"nodes.lost", XT_RING_NODES_LOST, XT_CRASH_BUFFER_NODES_LOST},
	{"ranges.seen", XT_RING_RANGES_SEEN, XT_CRASH_BUFFER_RANGES_SEEN},
	{"ranges.lost", XT_RING_RANGES_LOST, XT_CRASH_BUFFER_RANGES_LOST},
	{"skips.lost", XT_RING_SKIPS_LOST, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.walked", XT_RING_STACK_WALKS, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.hits", XT_RING_STACK_HITS, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.audited", XT_RING_STACK_AUDITS, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.mismatched", XT_RING_STACK_MISMATCHES, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.truncated", XT_RING_STACKS_TRUNCATED, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.transient", XT_RING_STACKS_TRANSIENT, XT_CRASH_BUFFER_COUNTERS},
	{"stacks.lost", XT_RING_STACKS_LOST, XT_CRASH_BUFFER_STACKS_LOST},
	{"python.stacks", XT_RING_PYTHON_STACKS, XT_CRASH_BUFFER_COUNTERS},
	{"python.finalizing", XT_RING_PYTHON_FINALIZING, XT_CRASH_BUFFER_COUNTERS},
	{"python.unreadable", XT_RING_PYTHON_UNREADABLE, XT_CRASH_BUFFER_COUNTERS},
	{"python.unplaced", XT_RING_PYTHON_UNPLACED, XT_CRASH_BUFFER_COUNTERS},
	{"python.unknown", XT_RING_PYTHON_MISSING, XT_CRASH_BUFFER_COUNTERS},
	{"threads.waited_ns", XT_RING_WAITED_NS, XT_CRASH_BUFFER_COUNTERS},
};

/* Counters outside of rings only, except those of calls, which must add up. */
static const struct xt_crash_buffer_account {
	const char *name;
	enum xt_crash_buffer_counter counter;
} xt_crash_buffer_accounts[] = {
	{"kernels.invalid", XT_CRASH_BUFFER_KERNELS_INVALID},
	{"kernels.lost.write_failed", XT_CRASH_BUFFER_KERNELS_WRITE_FAILED},
	{"copies.invalid", XT_CRASH_BUFFER_COPIES_INVALID},
	{"copies.lost.write_failed", XT_CRASH_BUFFER_COPIES_WRITE_FAILED},
	{"sets.invalid", XT_CRASH_BUFFER_SETS_INVALID},
	{"sets.lost.write_failed", XT_CRASH_BUFFER_SETS_WRITE_FAILED},
	{"memory.lost.write_failed", XT_CRASH_BUFFER_MEMORY_WRITE_FAILED},
	{"cupti.dropped", XT_CRASH_BUFFER_CUPTI_DROPPED},
	{"buffers.discarded", XT_CRASH_BUFFER_BUFFERS_DISCARDED},
	{"buffers.lost", XT_CRASH_BUFFER_BUFFERS_LOST},
	{"buffers.invalid", XT_CRASH_BUFFER_BUFFERS_INVALID},
	{"modules.lost", XT_CRASH_BUFFER_MODULES_LOST},
	{"names.lost", XT_CRASH_BUFFER_NAMES_LOST},
};

#endif
