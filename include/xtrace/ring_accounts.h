/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounts that are the sums of a counter over all rings and of nothing else: the tracer writes
 * them from its rings, recovery from those of the spool. (Names: xtrace/account.h.) Any thread.
 */
#ifndef XTRACE_RING_ACCOUNTS_H
#define XTRACE_RING_ACCOUNTS_H

#include "xtrace/spool_format.h"

static const struct xt_ring_account {
	const char *name;
	enum xt_ring_counter counter;
} xt_ring_accounts[] = {
	{"nodes.seen", XT_RING_NODES_SEEN},
	{"skips.lost", XT_RING_SKIPS_LOST},
	{"stacks.walked", XT_RING_STACK_WALKS},
	{"stacks.hits", XT_RING_STACK_HITS},
	{"stacks.audited", XT_RING_STACK_AUDITS},
	{"stacks.mismatched", XT_RING_STACK_MISMATCHES},
	{"stacks.truncated", XT_RING_STACKS_TRUNCATED},
	{"stacks.transient", XT_RING_STACKS_TRANSIENT},
	{"stacks.lost", XT_RING_STACKS_LOST},
	{"python.stacks", XT_RING_PYTHON_STACKS},
	{"python.finalizing", XT_RING_PYTHON_FINALIZING},
	{"python.unreadable", XT_RING_PYTHON_UNREADABLE},
	{"python.unplaced", XT_RING_PYTHON_UNPLACED},
	{"python.unknown", XT_RING_PYTHON_MISSING},
	{"threads.waited_ns", XT_RING_WAITED_NS},
};

#endif
