/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subjects of a run profile by what they are.
 */
#include <errno.h>
#include <stdlib.h>

#include "merge/base/grow.h"
#include "merge/profile/profile.h"

#define FIRST_SLOTS 1024u

static uint32_t slot_of(const struct subjects *s, enum profile_level level, uint32_t id)
{
	uint64_t h = ((uint64_t)level << 32 | id) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(h >> 32) & (s->slot_count - 1);
}

static int enlarge(struct subjects *s)
{
	uint32_t *old = s->slots;

	s->slot_count = s->slot_count ? s->slot_count * 2 : FIRST_SLOTS;
	s->slots = calloc(s->slot_count, sizeof(*s->slots));
	if (!s->slots) {
		s->slots = old;
		s->slot_count /= 2;
		return -ENOMEM;
	}
	free(old);
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t slot = slot_of(s, s->list[i].level, s->list[i].id);

		while (s->slots[slot])
			slot = (slot + 1) & (s->slot_count - 1);
		s->slots[slot] = i + 1;
	}
	return 0;
}

uint32_t subjects_index(struct subjects *s, enum profile_level level, uint32_t id)
{
	uint32_t slot;

	if (s->count >= s->slot_count / 2 && enlarge(s) < 0)
		return UINT32_MAX;
	for (slot = slot_of(s, level, id); s->slots[slot]; slot = (slot + 1) & (s->slot_count - 1))
		if (s->list[s->slots[slot] - 1].level == level &&
		    s->list[s->slots[slot] - 1].id == id)
			return s->slots[slot] - 1;
	if (grow(&s->list, &s->capacity, s->count + 1, sizeof(*s->list)) < 0)
		return UINT32_MAX;
	s->list[s->count] = (struct subject){.level = level, .id = id};
	s->slots[slot] = (uint32_t)++s->count;
	return (uint32_t)s->count - 1;
}

void subjects_free(struct subjects *s)
{
	free(s->list);
	free(s->slots);
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
