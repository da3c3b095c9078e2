/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Select the rows with a significant change and sort them.
 */
#include "diff/compare/changes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char *const shown_totals[] = {"gpu-time",	  "gpu-busy", "gpu-idle",	"wall",
				    "iterations", "launches", "launch-latency", "waits",
				    "copies",	  "bytes",    "peak-memory",	NULL};

double change_size(const struct comparison_row *row)
{
	double size = fabs(row->effects[METRIC_VALUE].change);

	return isnan(size) ? -1.0 : size;
}

const struct profile_entry *change_entry(const struct comparison_row *row)
{
	return row->shown[SIDE_NEW] ? row->shown[SIDE_NEW] : row->shown[SIDE_BASE];
}

/* Largest change first; rows of time before bytes and counts. */
static int compare_changes(const void *a, const void *b)
{
	const struct comparison_row *x = *(const struct comparison_row *const *)a;
	const struct comparison_row *y = *(const struct comparison_row *const *)b;
	double x_size = change_size(x), y_size = change_size(y);

	if ((x->unit == UNIT_NS) != (y->unit == UNIT_NS))
		return x->unit == UNIT_NS ? -1 : 1;
	if (x_size != y_size)
		return x_size > y_size ? -1 : 1;
	return strcmp(x->key, y->key);
}

const struct comparison_row **changes_list(const struct comparison *comparison, bool of_paths,
					   size_t *count_out)
{
	const struct comparison_row **rows = xt_calloc(comparison->row_count + 1, sizeof(*rows));
	size_t count = 0;

	*count_out = 0;
	for (size_t r = 0; r < comparison->row_count; r++) {
		const struct comparison_row *row = &comparison->rows[r];

		const struct effect *effect = &row->effects[METRIC_VALUE];

		/* A row that occurs only outside of iterations has no values. */
		if (row->change && level_specs[row->level].has_frames == of_paths &&
		    (effect->base != 0 || effect->new != 0))
			rows[count++] = row;
	}
	qsort(rows, count, sizeof(*rows), compare_changes);
	*count_out = count;
	return rows;
}
