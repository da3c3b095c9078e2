/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/rank_spread.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/sums/tables.h"

#define NOTABLE_PART  20   /* differences below 1/20 of the mean are noise */
#define NOTABLE_SHARE 1000 /* so are those below 1/1000 of the time of all paths */

static void close_log(struct path_spread *path)
{
	if (!path->open_log)
		return;
	if (!path->count || path->open_ns > path->max_ns) {
		path->max_ns = path->open_ns;
		path->max_log = path->open_log - 1;
	}
	if (!path->count || path->open_ns < path->min_ns)
		path->min_ns = path->open_ns;
	path->sum_ns += path->open_ns;
	path->count++;
	path->open_log = 0;
	path->open_ns = 0;
}

void rank_spread_add(struct rank_spread *spread, uint32_t node, size_t log, uint64_t ns)
{
	struct path_spread *path;

	xt_grow(&spread->paths, &spread->capacity, (size_t)node + 1, sizeof(*spread->paths));
	path = &spread->paths[node];
	if (path->open_log != log + 1)
		close_log(path);
	path->open_log = (uint32_t)log + 1;
	path->open_ns += ns;
}

static bool is_collective(const struct paths *paths, uint32_t node)
{
	size_t length;
	const char *name = names_text(&paths->names, paths->nodes[node].name, &length);

	return leaf_is_collective(name, length);
}

static uint64_t difference_ns(const struct path_spread *path)
{
	return path->max_ns - path_spread_mean_ns(path);
}

static int compare(const void *a, const void *b, void *context)
{
	const struct rank_spread *spread = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t more = difference_ns(&spread->paths[x]), other = difference_ns(&spread->paths[y]);

	return more != other ? (more > other ? -1 : 1) : (x < y ? -1 : x > y);
}

void rank_spread_finish(struct rank_spread *spread, const struct paths *paths)
{
	size_t count = spread->capacity < paths->node_count ? spread->capacity : paths->node_count;
	uint64_t largest_ns = 0; /* time of all paths in a log, roughly: the means */

	spread->rows = xt_malloc((count + 1) * sizeof(*spread->rows));
	for (uint32_t n = 0; n < count; n++) {
		close_log(&spread->paths[n]);
		largest_ns += path_spread_mean_ns(&spread->paths[n]);
	}
	for (uint32_t n = 0; n < count; n++) {
		const struct path_spread *path = &spread->paths[n];
		uint64_t ns = path->count > 1 ? difference_ns(path) : 0;

		if (ns > path_spread_mean_ns(path) / NOTABLE_PART &&
		    ns > largest_ns / NOTABLE_SHARE && !is_collective(paths, n))
			spread->rows[spread->row_count++] = n;
	}
	if (spread->row_count)
		qsort_r(spread->rows, spread->row_count, sizeof(*spread->rows), compare, spread);
}

void rank_spread_free(struct rank_spread *spread)
{
	free(spread->paths);
	free(spread->rows);
	*spread = (struct rank_spread){0};
}
