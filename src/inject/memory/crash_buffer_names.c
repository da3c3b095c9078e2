/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends names to areas. Writer thread only.
 */
#include "inject/memory/crash_buffer_names.h"

#include <string.h>

#include "inject/memory/budget.h"
#include "inject/memory/crash_buffer.h"

#define OWN_AREAS  2 /* not charged to the budget */
#define DATA_BYTES (CRASH_BUFFER_NAMES_AREA_BYTES - XT_NAMES_DATA_OFFSET)

static struct xt_names_header *area; /* the area being filled; NULL: none yet */
static unsigned area_count;

void crash_buffer_name_add(enum xt_name_of of, uint64_t key, const char *text, size_t text_bytes)
{
	size_t bytes = (sizeof(struct xt_crash_buffer_name) + text_bytes + 7) & ~(size_t)7;
	struct xt_crash_buffer_name *name;

	if (bytes > DATA_BYTES)
		return;
	if (!area || DATA_BYTES - area->used_bytes < bytes) {
		if (area_count == CRASH_BUFFER_NAME_AREAS_MAX ||
		    (area_count >= OWN_AREAS && !budget_take(CRASH_BUFFER_NAMES_AREA_BYTES)))
			return;
		area_count++;
		area = crash_buffer_area(CRASH_BUFFER_NAMES_AREA_BYTES, XT_AREA_NAMES);
		if (!area)
			return;
	}
	name = (struct xt_crash_buffer_name *)((uint8_t *)area + XT_NAMES_DATA_OFFSET +
					       area->used_bytes);
	name->key = key;
	name->of = of;
	name->text_bytes = (uint32_t)text_bytes;
	memcpy(name->text, text, text_bytes);
	/* A kill may come at any moment: publish the name once it is complete. */
	__atomic_store_n(&area->used_bytes, area->used_bytes + bytes, __ATOMIC_RELEASE);
}
