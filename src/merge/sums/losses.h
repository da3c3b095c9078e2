/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not in a log that should be, by cause: what its account says was lost while recording,
 * and what damage to the log has cost since, which is what the account says was written less what
 * can be read.
 */
#ifndef XT_MERGE_LOSSES_H
#define XT_MERGE_LOSSES_H

#include <stdint.h>

#include "merge/base/report.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "xtrace/account.h"

/* The first are the accounts of xtrace/account.h, by their place there. */
enum loss {
	LOSS_OTHER = XT_ACCOUNTS, /* counted under a name that this program does not know */
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

/* For programs: the account, or what is like one for damage; and for people: what was lost, and why. */
const char *losses_name(unsigned loss);
const char *losses_what(unsigned loss);

#define LOSS_BYTES 160

/* "1 call: the ring was full", into LOSS_BYTES. */
void losses_describe(char *out, size_t out_bytes, unsigned loss, uint64_t count);

/*
 * Adds up what is lost of a log, and warns of it. damage is that of both readings; the rows of all
 * kinds that the merge reads are counted in the model. All accounts of the log are added to accounts.
 */
void losses_count(uint64_t losses[LOSS_COUNT], uint64_t accounts[XT_ACCOUNTS],
		  const struct input *log, const struct model *model,
		  const struct xt_damage *damage, struct report *report);

/*
 * Adds the kernels that are missing and that no account explains, and warns of them.
 * missing_count: launched, without a kernel in the log. Returns how many were added.
 */
uint64_t losses_add_missing_kernels(uint64_t losses[LOSS_COUNT], const char *path,
				    const struct model *model, const struct xt_damage *damage,
				    uint64_t missing_count, struct report *report);

#endif
