/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts that are sums of counters in the spool and of nothing else. The tracer writes them
 * from its own memory, recovery from the spool. Names: xtrace/account.h. Any thread.
 */
#ifndef XTRACE_RING_ACCOUNTS_H
#define XTRACE_RING_ACCOUNTS_H

#include "xtrace/spool_format.h"

/* A counter over all rings, and what the process counts outside of them. */
static const struct xt_ring_account {
	const char *name;
	enum xt_ring_counter counter;
	enum xt_spool_counter outside; /* XT_SPOOL_COUNTERS: none */
} xt_ring_accounts[] = {
	{"nodes.seen", XT_RING_NODES_SEEN, XT_SPOOL_COUNTERS},
	{"nodes.lost", XT_RING_NODES_LOST, XT_SPOOL_NODES_LOST},
	{"ranges.seen", XT_RING_RANGES_SEEN, XT_SPOOL_RANGES_SEEN},
	{"ranges.lost", XT_RING_RANGES_LOST, XT_SPOOL_RANGES_LOST},
	{"skips.lost", XT_RING_SKIPS_LOST, XT_SPOOL_COUNTERS},
	{"stacks.walked", XT_RING_STACK_WALKS, XT_SPOOL_COUNTERS},
	{"stacks.hits", XT_RING_STACK_HITS, XT_SPOOL_COUNTERS},
	{"stacks.audited", XT_RING_STACK_AUDITS, XT_SPOOL_COUNTERS},
	{"stacks.mismatched", XT_RING_STACK_MISMATCHES, XT_SPOOL_COUNTERS},
	{"stacks.truncated", XT_RING_STACKS_TRUNCATED, XT_SPOOL_COUNTERS},
	{"stacks.transient", XT_RING_STACKS_TRANSIENT, XT_SPOOL_COUNTERS},
	{"stacks.lost", XT_RING_STACKS_LOST, XT_SPOOL_STACKS_LOST},
	{"python.stacks", XT_RING_PYTHON_STACKS, XT_SPOOL_COUNTERS},
	{"python.finalizing", XT_RING_PYTHON_FINALIZING, XT_SPOOL_COUNTERS},
	{"python.unreadable", XT_RING_PYTHON_UNREADABLE, XT_SPOOL_COUNTERS},
	{"python.unplaced", XT_RING_PYTHON_UNPLACED, XT_SPOOL_COUNTERS},
	{"python.unknown", XT_RING_PYTHON_MISSING, XT_SPOOL_COUNTERS},
	{"threads.waited_ns", XT_RING_WAITED_NS, XT_SPOOL_COUNTERS},
};

/* What the process counts outside of rings alone; but for calls, whose counts have to add up. */
static const struct xt_spool_account {
	const char *name;
	enum xt_spool_counter counter;
} xt_spool_accounts[] = {
	{"kernels.invalid", XT_SPOOL_KERNELS_INVALID},
	{"kernels.lost.write_failed", XT_SPOOL_KERNELS_WRITE_FAILED},
	{"copies.invalid", XT_SPOOL_COPIES_INVALID},
	{"copies.lost.write_failed", XT_SPOOL_COPIES_WRITE_FAILED},
	{"sets.invalid", XT_SPOOL_SETS_INVALID},
	{"sets.lost.write_failed", XT_SPOOL_SETS_WRITE_FAILED},
	{"memory.lost.write_failed", XT_SPOOL_MEMORY_WRITE_FAILED},
	{"cupti.dropped", XT_SPOOL_CUPTI_DROPPED},
	{"buffers.discarded", XT_SPOOL_BUFFERS_DISCARDED},
	{"buffers.lost", XT_SPOOL_BUFFERS_LOST},
	{"buffers.invalid", XT_SPOOL_BUFFERS_INVALID},
	{"modules.lost", XT_SPOOL_MODULES_LOST},
	{"names.lost", XT_SPOOL_NAMES_LOST},
};

#endif
