/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that programs attached to NVTX ranges and marks with the payload extension (column 12 of
 * RANGE).
 */
#ifndef XT_MERGE_RANGE_VALUES_H
#define XT_MERGE_RANGE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/model.h"

#define RANGE_VALUES_MAX 128 /* per range; the tracer writes fewer */

struct range_value {
	struct xt_bytes name;
	struct xt_bytes value;
	bool is_number; /* a JSON number that a double represents exactly */
};

/* An id of a log, which may be damaged. */
static inline uint32_t id_or_none(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
}

/*
 * Writes the values given at the begin and the end of a range (XT_STRING_ID; 0: none). Returns
 * their number. If two values have the same name, the later one counts. They point into the model.
 */
size_t range_values(const struct model *model, uint32_t begin, uint32_t end,
		    struct range_value values[RANGE_VALUES_MAX]);

/* Returns the same values as a JSON object, which the caller frees. */
char *range_values_json(const struct model *model, uint32_t begin, uint32_t end);

#endif
