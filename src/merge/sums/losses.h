/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that are missing from a log, by cause. Some were lost while recording, as the log's
 * account says. Others were written but cannot be read: the account's number of written rows minus
 * the rows read.
 */
#ifndef XT_MERGE_LOSSES_H
#define XT_MERGE_LOSSES_H

#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "xtrace/account.h"

/* The first losses are the accounts of xtrace/account.h, in the same order. */
enum loss {
	LOSS_OTHER = XT_ACCOUNTS, /* sum of the accounts with unknown names */
	LOSS_MISSING_KERNELS,
	LOSS_UNDELIVERED_KERNELS,
	LOSS_UNEXPLAINED_CALLS,
	LOSS_DAMAGED_CALLS,
	LOSS_DAMAGED_KERNELS,
	LOSS_DAMAGED_COPIES,
	LOSS_DAMAGED_MEMSETS,
	LOSS_DAMAGED_MEMORY,
	LOSS_DAMAGED_NODES,
	LOSS_DAMAGED_RANGES,
	LOSS_DAMAGED_CHUNKS,
	LOSS_MISSING_CHUNKS,
	LOSS_ENDS,
	LOSS_LOG_ACCOUNTS,
	LOSS_COUNT
};

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

/* Kernels without a record that the log's accounts count, as lost or as unfinished. */
uint64_t losses_explained_kernels(const struct model *model);

/*
 * Count and report missing kernels that no account explains. missing_count is the number of
 * launches without a kernel in the log. Returns how many were added.
 */
uint64_t losses_add_missing_kernels(uint64_t losses[LOSS_COUNT], const char *path,
				    const struct model *model, const struct xt_damage *damage,
				    uint64_t missing_count, struct report *report);

/* Returns the sum of an account over all logs, such as "python.stacks". 0 for unknown names. */
uint64_t losses_account(const uint64_t accounts[XT_ACCOUNTS], const char *name);

#endif
