/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/sqlite/sqlite_gaps.h"

#include <stdlib.h>

#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/sums/exporter.h"
#include "merge/sums/timeline.h"

/* The work of one owner, which ended gaps. */
struct gap_end {
	uint32_t node; /* its path; 0: the user's selection leaves it out */
	bool has_gaps;
};

static struct gap_end *end_of(struct sqlite *s, const struct owner *owner, int64_t *id_out)
{
	uint32_t place = aggregate_index(&s->gap_owners, owner);

	xt_grow(&s->gap_ends, &s->gap_end_capacity, (size_t)place + 1, sizeof(*s->gap_ends));
	*id_out = s->gap_end_base + place;
	return &s->gap_ends[place];
}

void sqlite_put_gap(struct sink *sink, const struct process *process, const struct stretch *stretch)
{
	struct sqlite *s = sink->state;
	int64_t id;

	if (!stretch->has_gap)
		return;
	end_of(s, stretch->owner, &id)->has_gaps = true;
	sqlite_number(s, INSERT_GAP, 1, s->process_id);
	if (stretch->device < TIMELINE_DEVICES_MAX - 1)
		sqlite_number(s, INSERT_GAP, 2, stretch->device);
	else
		sqlite_null(s, INSERT_GAP, 2);
	sqlite_number(s, INSERT_GAP, 3, id);
	sqlite_number(s, INSERT_GAP, 4, sqlite_time(process, stretch->gap_from_ns));
	sqlite_number(s, INSERT_GAP, 5, sqlite_limited(stretch->start_ns - stretch->gap_from_ns));
	for (int class = 0; class < IDLE_CLASSES; class ++) {
		int64_t idle_ns = sqlite_limited(stretch->idle_ns[class]);

		/* Most gaps have one class, and a bound value stays. */
		if (idle_ns || s->gap_idle_ns[class])
			sqlite_number(s, INSERT_GAP, 6 + class, idle_ns);
		s->gap_idle_ns[class] = idle_ns;
	}
	sqlite_put(sink, INSERT_GAP);
}

void sqlite_add_gap_end(struct sink *sink, const struct total *total, uint32_t node)
{
	int64_t id;

	if (total->owner.leaf <= LEAF_MEMSET && total->owner.leaf != LEAF_CALL)
		end_of(sink->state, &total->owner, &id)->node = node;
}

void sqlite_put_gap_ends(struct sink *sink)
{
	struct sqlite *s = sink->state;

	for (uint32_t e = 0; e < s->gap_owners.count; e++) {
		s->has_gaps_left_out |= s->gap_ends[e].has_gaps && !s->gap_ends[e].node;
		if (!s->gap_ends[e].has_gaps || !s->gap_ends[e].node)
			continue;
		sqlite_number(s, INSERT_GAP_END, 1, s->gap_end_base + e);
		sqlite_number(s, INSERT_GAP_END, 2, s->gap_ends[e].node);
		sqlite_put(sink, INSERT_GAP_END);
	}
	s->gap_end_base += s->gap_owners.count;
}

void sqlite_forget_gaps(struct sqlite *s)
{
	aggregate_free(&s->gap_owners);
	free(s->gap_ends);
	s->gap_ends = NULL;
	s->gap_end_capacity = 0;
}
