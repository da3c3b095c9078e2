/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers that add rows to the model's tables.
 */
#ifndef XT_MERGE_ROW_OF_ID_H
#define XT_MERGE_ROW_OF_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "merge/read/model.h"

/*
 * Ids are dense, so a table has about as many slots as rows. Lost chunks leave gaps. An id beyond a
 * gap of this size is damage, and must not cost memory.
 */
#define MODEL_GAP_MAX (1u << 20)
#define MODEL_IDS_MAX (UINT32_MAX - 1)

static inline bool is_possible(uint64_t id, size_t defined)
{
	return id && id <= MODEL_IDS_MAX && id <= MODEL_GAP_MAX + 2 * (uint64_t)defined;
}

/* Returns the row of a valid id, created if needed. */
static inline void *row_of_id(void *rows, size_t *capacity, size_t *count, size_t *defined,
			      uint64_t id, size_t row_bytes)
{
	xt_grow(rows, capacity, id + 1, row_bytes);
	if (*count <= id)
		*count = id + 1;
	(*defined)++;
	return *(char **)rows + id * row_bytes;
}
#define ROW_OF_ID(table, id)                                                                       \
	row_of_id(&(table).rows, &(table).capacity, &(table).count, &(table).defined, (id),        \
		  sizeof(*(table).rows))
#define NEXT_ROW(table) ROW_OF_ID(table, (table).count)

static inline uint32_t narrow(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static inline uint32_t intern(struct model *model, struct xt_bytes text)
{
	return names_intern(&model->names, text.length ? text.data : "", text.length);
}

#endif
