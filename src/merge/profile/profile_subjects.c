/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subjects of a run profile, by level and id.
 */
#include <stdlib.h>

#include "base/tables.h"
#include "merge/profile/profile.h"

uint32_t subjects_index(struct subjects *s, enum profile_level level, uint32_t id)
{
	uint32_t hash = xt_hash_u64((uint64_t)level << 32 | id);
	struct xt_hash_slot *slot;

	if (s->count >= s->table.slot_count / 2)
		xt_hash_require(&s->table, s->count + 1);
	for (slot = xt_hash_first(&s->table, hash); slot->item;
	     slot = xt_hash_next(&s->table, slot))
		if (s->list[slot->item - 1].level == level && s->list[slot->item - 1].id == id)
			return slot->item - 1;
	xt_grow(&s->list, &s->capacity, s->count + 1, sizeof(*s->list));
	s->list[s->count] = (struct subject){.level = level, .id = id};
	*slot = (struct xt_hash_slot){hash, (uint32_t)++s->count};
	return (uint32_t)s->count - 1;
}

void subjects_free(struct subjects *s)
{
	free(s->list);
	xt_hash_free(&s->table);
	*s = (struct subjects){0};
}

void subject_add(struct subject *subject, int batch, double share, double value, double count)
{
	subject->whole_value += value;
	subject->whole_count += count;
	if (batch < 0)
		return;
	subject->values[batch] += value * share;
	subject->counts[batch] += count * share;
}
