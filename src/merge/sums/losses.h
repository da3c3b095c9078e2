/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that are missing from a log, by cause. Some were lost while recording, as the log's
 * account says. Others were written but cannot be read: the account's number of written rows minus
 * the rows read.
 */
#ifndef XT_MERGE_LOSSES_H
#define XT_MERGE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/base/report.h"
#include "merge/read/correlate.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "xtrace/account.h"

struct graph_launches;

/* Losses that are no accounts: X(id, name, what was lost, and why). "other": unknown accounts. */
#define OTHER_LOSSES(X)                                                                            \
	X(OTHER, "other", "other")                                                                 \
	X(MISSING_KERNELS, "kernels.missing",                                                      \
	  "kernels: launched, but the log has no record of them")                                  \
	X(UNDELIVERED_KERNELS, "kernels.undelivered",                                              \
	  "kernels: CUPTI delivered none, it may not support this "                                \
	  "driver or GPU")                                                                         \
	X(UNEXPLAINED_CALLS, "calls.unexplained",                                                  \
	  "calls: seen, but neither written nor counted as lost")                                  \
	X(DAMAGED_CALLS, "calls.damaged", "calls: in damaged parts of the log")                    \
	X(DAMAGED_KERNELS, "kernels.damaged", "kernels: in damaged parts of the log")              \
	X(DAMAGED_COPIES, "copies.damaged", "copies: in damaged parts of the log")                 \
	X(DAMAGED_MEMSETS, "sets.damaged", "memsets: in damaged parts of the log")                 \
	X(DAMAGED_MEMORY, "memory.damaged", "allocations and frees: in damaged parts of the log")  \
	X(DAMAGED_NODES, "nodes.damaged", "graph nodes: in damaged parts of the log")              \
	X(DAMAGED_RANGES, "ranges.damaged", "NVTX events: in damaged parts of the log")            \
	X(DAMAGED_CHUNKS, "chunks.damaged",                                                        \
	  "chunks of the log: damaged (a chunk is a block of records)")                            \
	X(MISSING_CHUNKS, "chunks.missing", "chunks of the log: missing")                          \
	X(ENDS, "ends.missing", "log ends: missing, with an unknown number of events")             \
	X(LOG_ACCOUNTS, "accounts.missing",                                                        \
	  "log accounts: absent, or older than the rows of the log")

/* The first losses are the accounts of xtrace/account.h, in the same order. */
#define LOSS_ID(id, name, what) LOSS_##id,
enum loss { LOSS_LAST_ACCOUNT = XT_ACCOUNTS - 1, OTHER_LOSSES(LOSS_ID) LOSS_COUNT };

/* Over all logs. */
struct loss_sums {
	uint64_t counts[LOSS_COUNT];
	uint64_t accounts[XT_ACCOUNTS]; /* by index in xt_accounts */
	size_t logs_without_cost;	/* logs that lack the cost of the tracer */
	size_t logs_open;		/* logs not closed, so their last account is not final */
	size_t logs_cut_off; /* logs of killed processes, with an account up to some moment */
};

/* losses_name() is the key in the JSON summary; losses_what() says what was lost and why. */
const char *losses_name(unsigned loss);
const char *losses_what(unsigned loss);

#define LOSS_BYTES 160

/* Formats a loss such as "1 call: the ring was full". out needs LOSS_BYTES. */
void losses_describe(char *out, size_t out_bytes, unsigned loss, uint64_t count);

/*
 * Adds up the losses of a log and warn about them. damage is that of both passes. The model has the
 * number of rows read. All accounts of the log are added to accounts.
 */
void losses_count(uint64_t losses[LOSS_COUNT], uint64_t accounts[XT_ACCOUNTS],
		  const struct input *log, const struct model *model,
		  const struct xt_damage *damage, struct report *report);

/*
 * Count and report missing kernels that no account explains. missing_count is the number of
 * launches without a kernel in the log. Returns how many were added.
 */
uint64_t losses_add_missing_kernels(uint64_t losses[LOSS_COUNT], const char *path,
				    const struct model *model, const struct xt_damage *damage,
				    uint64_t missing_count, struct report *report);

/* Returns the sum of an account over all logs, such as "python.stacks". 0 for unknown names. */
uint64_t losses_account(const struct loss_sums *losses, const char *name);

/*
 * Launches whose kernels are missing.
 *
 * Every successful launch has a kernel, with two exceptions: a launch that was captured into a
 * graph, and the launch of a graph without kernels. A graph launch has one kernel for each kernel
 * node of its executable graph. The state belongs to one pass over one log.
 */

/* Zeros are empty. */
struct missing {
	struct interner execs;	       /* index in graphs by graph_exec */
	struct graph_launches *graphs; /* entry 0 is unused */
	size_t graph_count, graph_capacity;
	uint32_t last; /* index in graphs of the last lookup */
	bool has_graph_launch;
	/* Launches of graphs whose instantiation is not in the log, as if it began later. */
	uint64_t unseen_launch_count;
};

/*
 * Adds a successful graph launch that was not captured. graph_exec: XT_CALL_GRAPH_EXEC. Sets
 * *has_no_kernel_out if the graph has no kernels, only copies or memsets.
 */
void missing_note_graph_launch(struct missing *missing, const struct model *model,
			       uint32_t graph_exec, bool *has_no_kernel_out);

/* Adds a kernel that ran as a node of a graph. It may come before its launch. */
void missing_note_graph_kernel(struct missing *missing, const struct model *model,
			       uint64_t graph_node_id);

/*
 * Number of missing kernels, once all events are read and joined. damage: of both passes. If the
 * log does not show which launches were captured, returns 0 and adds the launches without a kernel
 * that no account explains to *unclear_count.
 */
uint64_t missing_count(const struct missing *missing, const struct model *model,
		       const struct xt_damage *damage, const struct correlate_counts *counts,
		       uint64_t *unclear_count);

void missing_free(struct missing *missing);

#endif
