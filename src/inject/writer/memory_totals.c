/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/memory_totals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "inject/memory/budget.h"
#include "xtrace/log_format.h"

/* The table at its largest, with the smaller one from which it grows. */
#define TABLE_BYTES ((size_t)MEMORY_TOTALS_MAX * 3 * sizeof(struct xt_allocation))

static void give_up(struct memory_totals *totals)
{
	totals->is_unknown = true;
	memory_totals_free(totals);
}

static void add(struct memory_totals *totals, const struct cupti_activity_memory *memory)
{
	const struct xt_allocation new = {.address = memory->address,
					  .bytes = memory->bytes,
					  .time_ns = memory->timestamp_ns,
					  .gpu = memory->device_id};
	struct xt_allocation old;
	int outcome = -ENOSPC;

	if (!totals->allocations.slots && !budget_take(TABLE_BYTES)) {
		totals->is_unknown = true;
		return;
	}
	if (totals->allocations.count < MEMORY_TOTALS_MAX)
		outcome = xt_allocations_add(&totals->allocations, &new, &old);
	if (outcome < 0) {
		give_up(totals);
		return;
	}
	if (outcome)
		totals->bytes[old.gpu] -= old.bytes;
	totals->bytes[new.gpu] += new.bytes;
	totals->is_used[new.gpu] = true;
}

void memory_totals_take(struct memory_totals *totals, const struct cupti_activity_memory *memory)
{
	struct xt_allocation old;

	if (totals->is_unknown || !xt_memory_is_on_gpu(memory->memory_kind) ||
	    memory->device_id >= MEMORY_TOTALS_DEVICES_MAX)
		return;
	if (memory->operation == XT_CUPTI_MEMORY_ALLOC)
		add(totals, memory);
	else if (xt_allocations_remove(&totals->allocations, memory->address, memory->timestamp_ns,
				       &old))
		totals->bytes[old.gpu] -= old.bytes;
}

bool memory_totals_text(const struct memory_totals *totals, uint64_t now_ns, char *out,
			size_t out_bytes)
{
	int length = snprintf(out, out_bytes, "%" PRIu64, now_ns);
	bool is_used = false;

	for (unsigned d = 0; d < MEMORY_TOTALS_DEVICES_MAX; d++) {
		if (!totals->is_used[d])
			continue;
		is_used = true;
		if ((size_t)length < out_bytes)
			length += snprintf(out + length, out_bytes - (size_t)length, " %u:%" PRIu64,
					   d, totals->bytes[d]);
	}
	return is_used && !totals->is_unknown && (size_t)length < out_bytes;
}

void memory_totals_free(struct memory_totals *totals)
{
	if (totals->allocations.slots)
		budget_give_back(TABLE_BYTES);
	xt_allocations_free(&totals->allocations);
}
