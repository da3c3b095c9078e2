/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/rank_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/ranks/communicators.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"

#define RANKS_MAX 1000000 /* larger numbers are no ranks */

/* Writes "0-3, 7". present: by rank. */
static char *list_ranks(const uint8_t *present, size_t count)
{
	char *text = xt_strdup("");

	for (size_t r = 0, until; r < count; r = until) {
		char *longer;

		for (until = r; until < count && present[until]; until++)
			;
		if (until == r) {
			until++;
			continue;
		}
		if (until - r == 1)
			longer = xt_asprintf("%s%s%zu", text, text[0] ? ", " : "", r);
		else
			longer =
				xt_asprintf("%s%s%zu-%zu", text, text[0] ? ", " : "", r, until - 1);
		free(text);
		text = longer;
	}
	return text;
}

/* Marks the ranks of the job, of at most RANKS_MAX. */
static uint8_t *rank_marks(const struct run *run, size_t *count)
{
	*count = 0;
	for (size_t l = 0; l < run->inputs->count; l++) {
		const struct input *log = &run->inputs->logs[l];

		if (log->rank < RANKS_MAX && log->rank >= *count)
			*count = (size_t)log->rank + 1;
		if (log->world_size <= RANKS_MAX && log->world_size > *count)
			*count = log->world_size;
	}
	return xt_calloc(*count + 1, 1);
}

char *communicator_ranks_text(const struct run *run, const struct communicator *communicator)
{
	size_t count;
	uint8_t *marks = rank_marks(run, &count);
	char *text;

	for (size_t m = 0; m < communicator->member_count; m++) {
		uint32_t rank = run->inputs->logs[communicator->members[m].log->log].rank;

		if (rank < count)
			marks[rank] = 1;
	}
	text = list_ranks(marks, count);
	free(marks);
	return text;
}

char *missing_ranks_text(const struct run *run)
{
	size_t count;
	uint8_t *marks = rank_marks(run, &count);
	uint32_t world_size = run->inputs->logs[0].world_size;
	char *text;

	memset(marks, world_size == count, count);
	for (size_t l = 0; l < run->inputs->count; l++) {
		const struct input *log = &run->inputs->logs[l];

		/* Logs of several jobs, or of none, say nothing of others. */
		if (log->world_size != world_size)
			memset(marks, 0, count);
		else if (log->rank < count)
			marks[log->rank] = 0;
	}
	text = list_ranks(marks, count);
	free(marks);
	return text;
}
