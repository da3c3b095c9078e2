/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by call path, at the peak and at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/export/summary/summary_memory.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/tables.h"

#define CACHE "CachingAllocator" /* in the names of functions of PyTorch's allocators */

static bool are_equal(const struct table *a, const struct table *b)
{
	for (size_t i = 0; i < a->count && a->count == b->count; i++)
		if (a->rows[i].id != b->rows[i].id || a->rows[i].value != b->rows[i].value)
			return false;
	return a->count == b->count;
}

/* Whether PyTorch's caching allocator holds memory, which it would use again. */
static bool has_cache(const struct run *run, const struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		for (uint32_t n = table->rows[i].id; n != PATH_ROOT; n = run->paths.nodes[n].parent)
			if (strstr(names_text(&run->paths.names, run->paths.nodes[n].name, NULL),
				   CACHE))
				return true;
	return false;
}

/* One table for both if they are equal. */
int summary_put_held_memory(struct sink *sink, const struct run *run)
{
	struct table peak = {0}, left = {0};
	int error = table_paths(&peak, &run->paths, WEIGHT_PEAK_BYTES);

	if (!error)
		error = table_paths(&left, &run->paths, WEIGHT_LEAKED_BYTES);
	if (!error && are_equal(&peak, &left)) {
		error = table_put_text(sink, run, &table_held, true);
	} else if (!error) {
		error = table_put_text(sink, run, &table_held_at_peak, true);
		if (!error)
			error = table_put_text(sink, run, &table_held_at_end, true);
	}
	if (!error && has_cache(run, &left))
		put_note(&sink->out, "PyTorch keeps freed memory to use it again. Its cache at "
				     "the end is no leak.");
	table_free(&peak);
	table_free(&left);
	return error;
}
