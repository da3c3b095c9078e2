/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds GPU work of calls made while recording was paused. The list of those calls died with the
 * process. But every other call has a row in the log or a record in a ring.
 */
#include "log/recover/recover_pauses.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/compare.h"

static int compare_calls(const void *a, const void *b, void *rows)
{
	const struct recovery_work *x = (const struct recovery_work *)rows + *(const uint32_t *)a;
	const struct recovery_work *y = (const struct recovery_work *)rows + *(const uint32_t *)b;

	return x->correlation_id < y->correlation_id ? -1 : x->correlation_id > y->correlation_id;
}

int recovery_index_calls(struct recovery *recovery)
{
	recovery->work_by_call = calloc(recovery->work_count + 1, sizeof(*recovery->work_by_call));
	if (!recovery->work_by_call)
		return -ENOMEM;
	for (size_t i = 0; i < recovery->work_count; i++)
		recovery->work_by_call[i] = (uint32_t)i;
	qsort_r(recovery->work_by_call, recovery->work_count, sizeof(*recovery->work_by_call),
		compare_calls, recovery->work);
	return 0;
}

void recovery_note_call(struct recovery *recovery, uint32_t correlation_id)
{
	size_t low = FIRST_NOT(i, 0, recovery->work_count,
			       recovery->work[recovery->work_by_call[i]].correlation_id <
				       correlation_id);

	for (; low < recovery->work_count; low++) {
		struct recovery_work *work = &recovery->work[recovery->work_by_call[low]];

		if (work->correlation_id != correlation_id || work->has_call)
			return;
		work->has_call = true;
	}
}

void recovery_note_switch(struct recovery *recovery, uint64_t time_ns, bool is_on)
{
	if (!recovery_grow(&recovery->switches, &recovery->switch_capacity, recovery->switch_count,
			   sizeof(*recovery->switches))) {
		recovery->error = -ENOMEM;
		return;
	}
	recovery->switches[recovery->switch_count++] = (struct recovery_switch){time_ns, is_on};
}

COMPARE_BY(compare_switches, struct recovery_switch, UP(time_ns) UP(is_on))

void recovery_index_switches(struct recovery *recovery)
{
	if (recovery->switch_count)
		qsort(recovery->switches, recovery->switch_count, sizeof(*recovery->switches),
		      compare_switches);
}

bool recovery_is_skipped(const struct recovery *recovery, const struct recovery_work *work)
{
	size_t low;

	if (work->has_call || work->kind == XT_KIND_MEMORY)
		return false;
	low = FIRST_NOT(i, 0, recovery->switch_count,
			recovery->switches[i].time_ns <= work->start_ns);
	return low && !recovery->switches[low - 1].is_on;
}
