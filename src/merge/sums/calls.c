/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls by function.
 */
#include "merge/sums/calls.h"

#include <stdbool.h>

#include "log/base/grow.h"
#include "merge/naming/joined_paths.h"

#define FAILURE_SLOTS (2 * CALLS_FAILURES_MAX)

static struct call_row *row_of(struct calls *calls, uint32_t name)
{
	struct call_row *row;

	if (grow(&calls->places, &calls->place_capacity, (size_t)name + 1, sizeof(*calls->places)) <
	    0)
		return NULL;
	if (calls->places[name])
		return &calls->rows[calls->places[name] - 1];
	if (calls->count >= CALLS_FUNCTIONS_MAX && name != NAME_EMPTY)
		return row_of(calls, NAME_EMPTY);
	if (grow(&calls->rows, &calls->capacity, calls->count + 1, sizeof(*calls->rows)) < 0)
		return NULL;
	row = &calls->rows[calls->count];
	*row = (struct call_row){.name = name, .min_ns = UINT64_MAX};
	calls->places[name] = (uint32_t)++calls->count;
	return row;
}

static bool is_same(const struct failure *a, const struct failure *b)
{
	return a->name == b->name && a->node == b->node && a->process == b->process &&
	       a->result == b->result;
}

/* failure->count is ignored. */
static int add_failure(struct calls *calls, const struct failure *failure)
{
	uint64_t hash =
		((uint64_t)failure->name << 32 | failure->node) ^
		(failure->result + ((uint64_t)failure->process << 32)) * 0xc2b2ae3d27d4eb4fu;
	uint32_t s = (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 32) & (FAILURE_SLOTS - 1);

	if (!calls->failures) {
		calls->failures = calloc(FAILURE_SLOTS, sizeof(*calls->failures));
		if (!calls->failures)
			return -ENOMEM;
	}
	while (calls->failures[s].count && !is_same(&calls->failures[s], failure))
		s = (s + 1) & (FAILURE_SLOTS - 1);
	if (!calls->failures[s].count) {
		if (calls->failure_count == CALLS_FAILURES_MAX) {
			calls->other_failure_count++;
			return 0;
		}
		calls->failures[s] = *failure;
		calls->failure_count++;
	}
	calls->failures[s].count++;
	return 0;
}

int calls_add(struct calls *calls, uint32_t process, const struct frames *frames,
	      const struct launch *call, uint64_t duration_ns, uint64_t result)
{
	uint32_t name = frames_api_name(frames, call->stack, call->api);
	struct call_row *row = row_of(calls, name);

	if (!row || histogram_add(&row->durations, duration_ns) < 0)
		return -ENOMEM;
	row->count++;
	row->total_ns += duration_ns;
	if (duration_ns < row->min_ns)
		row->min_ns = duration_ns;
	if (duration_ns > row->max_ns)
		row->max_ns = duration_ns;
	if (!result)
		return 0;
	row->failed_count++;
	return add_failure(calls, &(struct failure){
					  .process = process,
					  .name = name,
					  .node = frames_has_stack(frames, call->stack)
							  ? joined_paths_node(frames, call->stack)
							  : PATH_ROOT,
					  .result = result,
				  });
}

void calls_free(struct calls *calls)
{
	for (size_t r = 0; r < calls->count; r++)
		histogram_free(&calls->rows[r].durations);
	free(calls->rows);
	free(calls->places);
	free(calls->failures);
	*calls = (struct calls){0};
}

uint64_t calls_p99_ns(const struct call_row *row)
{
	return histogram_value(&row->durations, row->count - row->count / 100, row->min_ns,
			       row->max_ns);
}

static int compare_rows(const void *a, const void *b)
{
	const struct call_row *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int compare_failures(const void *a, const void *b)
{
	const struct failure *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->result != y->result)
		return x->result < y->result ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

void calls_sort(struct calls *calls)
{
	if (calls->count)
		qsort(calls->rows, calls->count, sizeof(*calls->rows), compare_rows);
	if (calls->failures)
		qsort(calls->failures, FAILURE_SLOTS, sizeof(*calls->failures), compare_failures);
}
