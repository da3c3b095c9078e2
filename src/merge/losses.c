/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of losses.
 */
#include "merge/losses.h"

#include <stdbool.h>
#include <string.h>

const struct loss_cause loss_causes[LOSS_COUNT] = {
	[LOSS_RING_FULL] = {"calls.lost.ring_full", "calls: the ring was full"},
	[LOSS_NO_RING] = {"calls.lost.no_ring", "calls: there was no ring for the thread"},
	[LOSS_NESTED] = {"calls.lost.nested", "calls: too many within each other"},
	[LOSS_KILLED] = {"calls.lost.killed", "calls: the process was killed"},
	[LOSS_CALLS_UNWRITTEN] = {"calls.lost.write_failed", "calls: could not be written"},
	[LOSS_STACKS] = {"stacks.lost", "stacks: did not fit into the ring"},
	[LOSS_STACKS_MISMATCHED] = {"stacks.mismatched", "stacks: a check found another"},
	[LOSS_NODES] = {"nodes.lost", "graph nodes: the ring was full"},
	[LOSS_RANGES] = {"ranges.lost", "NVTX events: the ring was full"},
	[LOSS_KERNELS_INVALID] = {"kernels.invalid", "kernels: record without valid times"},
	[LOSS_COPIES_INVALID] = {"copies.invalid", "copies: record without valid times"},
	[LOSS_SETS_INVALID] = {"sets.invalid", "sets: record without valid times"},
	[LOSS_KERNELS_UNWRITTEN] = {"kernels.lost.write_failed", "kernels: could not be written"},
	[LOSS_COPIES_UNWRITTEN] = {"copies.lost.write_failed", "copies: could not be written"},
	[LOSS_SETS_UNWRITTEN] = {"sets.lost.write_failed", "sets: could not be written"},
	[LOSS_MEMORY_UNWRITTEN] = {"memory.lost.write_failed",
				   "allocations and frees: could not be written"},
	[LOSS_CUPTI_DROPPED] = {"cupti.dropped", "records that CUPTI dropped"},
	[LOSS_BUFFERS] = {"buffers.discarded", "activity buffers: none was free"},
	[LOSS_OTHER] = {NULL, "other"},
};

/* The format says by which words such names are known, those of later versions, too. */
static bool counts_a_loss(const char *name)
{
	static const char *const words[] = {".lost", ".invalid", ".dropped", ".discarded",
					    ".mismatched"};

	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
		if (strstr(name, words[w]))
			return true;
	return false;
}

static bool is_known(const char *name)
{
	for (int l = 0; l < LOSS_COUNT; l++)
		if (loss_causes[l].account && !strcmp(loss_causes[l].account, name))
			return true;
	return false;
}

static void count(uint64_t *sum, uint64_t value, const char *what, const char *path,
		  struct report *report)
{
	*sum += value;
	if (value)
		report_warn(report, "%s: %llu lost while recording (%s)", path,
			    (unsigned long long)value, what);
}

void losses_count(uint64_t losses[LOSS_COUNT], const struct model *model, const char *path,
		  struct report *report)
{
	for (int l = 0; l < LOSS_COUNT; l++)
		if (loss_causes[l].account)
			count(&losses[l], model_account(model, loss_causes[l].account),
			      loss_causes[l].what, path, report);
	for (size_t a = 0; a < model->account.count; a++) {
		const struct pair *pair = &model->account.rows[a];
		const char *name = names_text(&model->names, pair->key, NULL);

		if (counts_a_loss(name) && !is_known(name))
			count(&losses[LOSS_OTHER], pair->value, name, path, report);
	}
}
