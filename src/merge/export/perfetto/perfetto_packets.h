/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that are rare: those of generated code, and interned strings and stacks.
 */
#ifndef XT_MERGE_PERFETTO_PACKETS_H
#define XT_MERGE_PERFETTO_PACKETS_H

#include "merge/export/perfetto/perfetto_state.h"

void perfetto_put(struct perfetto *p, const Perfetto__Protos__TracePacket *packet);

/* Writes a packet of a sequence with interned data. */
void perfetto_put_interned(struct perfetto *p, const struct sequence *sequence,
			   Perfetto__Protos__InternedData *data);

/* Write a string or stack that a sequence has not seen yet. */
void perfetto_put_name(struct perfetto *p, struct sequence *sequence, uint32_t name);
void perfetto_put_text(struct perfetto *p, struct sequence *sequence, uint32_t text);
void perfetto_put_path(struct perfetto *p, struct sequence *sequence, uint32_t node);

/* Marks an id as written. */
void perfetto_mark(struct seen *seen, uint32_t id);
static inline bool perfetto_is_new(struct seen *seen, uint32_t id)
{
	if (id / 8 < seen->capacity && seen->bits[id / 8] >> id % 8 & 1)
		return false;
	perfetto_mark(seen, id);
	return true;
}

/* Intern a name of paths (id: the name + 1), a text of tracks, and a path, if any (its node). */
static inline void perfetto_intern_name(struct perfetto *p, struct sequence *sequence,
					uint32_t name)
{
	if (perfetto_is_new(&sequence->names, name))
		perfetto_put_name(p, sequence, name);
}
static inline void perfetto_intern_text(struct perfetto *p, struct sequence *sequence,
					uint32_t text)
{
	if (perfetto_is_new(&sequence->texts, text))
		perfetto_put_text(p, sequence, text);
}
static inline void perfetto_intern_path(struct perfetto *p, struct sequence *sequence,
					uint32_t node)
{
	if (node != PATH_ROOT && perfetto_is_new(&sequence->stacks, node))
		perfetto_put_path(p, sequence, node);
}

#endif
