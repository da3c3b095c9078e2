/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums GPU time by line of own code.
 */
#include "merge/lines/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/exporter.h"
#include "merge/sums/path_tables.h"
#include "merge/sums/run.h"

#define SMALL_PART		1000 /* leave out parts below this share of the run */
#define NEARLY_ALL(part, whole) ((part) >= (whole) - (whole) / 20)

static int lines_begin(struct sink *sink)
{
	struct lines *lines = sink->state;

	names_init(&lines->texts);
	paths_init(&lines->places);
	paths_init(&lines->tree);
	return 0;
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	const uint64_t *weights = total->weights;
	struct lines *lines = sink->state;
	struct line_sum *sum;
	uint32_t key[2], id;
	bool is_new;

	if (!(weights[WEIGHT_COUNT] | weights[WEIGHT_GPU_TIME] | weights[WEIGHT_GPU_IDLE] |
	      weights[WEIGHT_ALLOC_BYTES] | weights[WEIGHT_PEAK_BYTES]))
		return;
	key[0] = lines_place(lines, process, &total->owner, node);
	key[1] = node;
	id = xt_intern(&lines->sum_keys, key, sizeof(key), &is_new);
	xt_grow(lines->sums, lines->sum_capacity, id);
	sum = &lines->sums[id - 1];
	sum->place = key[0];
	sum->node = node;
	for (int w = 0; w < WEIGHTS; w++)
		saturating_add(&sum->weights[w], weights[w]);
}

static enum part_kind find_kind(const struct paths *paths, uint32_t node)
{
	static const char *const glue[] = {".<locals>.wrap", ".<locals>._wrap",
					   ".<locals>.decorate", ".<locals>._fn ",
					   ".<locals>.inner"};
	const char *text = frame_text(paths, node);
	unsigned marks = marks_of(paths, node);

	if (begins_with(text, "[module] "))
		return PART_MODULE;
	if (marks & (MARK_TORCH_BACKWARD | MARK_TORCH_RECOMPUTE) && text[0] == '[')
		return PART_NODE;
	if (begins_with(text, "at::_ops::") || begins_with(text, "[hlo "))
		return PART_OPERATOR;
	if (!(marks & (MARK_PYTHON | MARKS_USER)) ||
	    begins_with(text, "Module._wrapped_call_impl (") ||
	    begins_with(text, "Module._call_impl ("))
		return PART_NONE;
	for (size_t g = 0; g < sizeof(glue) / sizeof(glue[0]); g++)
		if (strstr(text, glue[g]) && !(marks & MARKS_USER))
			return PART_NONE;
	return PART_LINE;
}

/* What a frame below a line of own code is, if it can be a part. */
static enum part_kind kind_of(struct lines *lines, const struct paths *paths, uint32_t node)
{
	uint32_t name = paths->nodes[node].name;

	xt_grow(lines->kinds, lines->kind_capacity, (size_t)name + 1);
	if (!lines->kinds[name])
		lines->kinds[name] = (uint8_t)(find_kind(paths, node) + 1);
	return (enum part_kind)(lines->kinds[name] - 1);
}

/* How a line, or a function, is used. */
struct line_use {
	uint64_t ns;
	uint64_t hash;	   /* of the frames below it on the largest path */
	uint64_t other_ns; /* of paths with other frames below it */
	uint32_t caller;   /* key of a line that calls it */
	bool has_several_callers;
};

struct line_uses {
	struct interner functions;
	uint32_t *function_of; /* by key */
	struct line_use *keys, *functions_used;
};

static void add_use(struct line_use *use, uint64_t ns, uint64_t hash, uint32_t caller)
{
	saturating_add(&use->ns, ns);
	use->hash = use->hash ? use->hash : hash;
	if (use->hash != hash)
		saturating_add(&use->other_ns, ns);
	use->has_several_callers |= caller && use->caller && use->caller != caller;
	use->caller = caller ? caller : use->caller;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
	return (hash ^ more ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* Follows a path outwards. The lines and the outermost operator below a line identify its way. */
static void add_uses(struct line_uses *uses, struct lines *lines, const struct paths *paths,
		     const struct line_sum *sum, const struct frame_list *own)
{
	const struct path_node *places = lines->places.nodes;
	uint64_t hash = 1, ns = sum->weights[WEIGHT_GPU_TIME];
	uint32_t place = sum->place, outermost = NAME_EMPTY;

	for (uint32_t n = sum->node, i = 0; ns && i < own->count; n = paths->nodes[n].parent) {
		enum part_kind kind = kind_of(lines, paths, n);

		if (n == own->list[i]) {
			uint32_t key = places[place].name;
			uint32_t caller = places[places[place].parent].name;
			uint64_t way = mix(hash, outermost);

			add_use(&uses->keys[key], ns, way, caller);
			add_use(&uses->functions_used[uses->function_of[key]], ns, way, caller);
			hash = mix(hash, (uint64_t)key << 32);
			place = places[place].parent;
			i++;
		} else if (kind == PART_LINE) {
			hash = mix(hash, paths->nodes[n].name);
		} else if (kind == PART_OPERATOR) {
			outermost = paths->nodes[n].name;
		}
	}
}

/* Whether a function of own code only passes on the work of several lines that call it. */
static bool is_wrapper(const struct line_uses *uses, uint32_t key)
{
	const struct line_use *line = &uses->keys[key];
	const struct line_use *function = &uses->functions_used[uses->function_of[key]];

	return function->has_several_callers && line->ns && NEARLY_ALL(line->ns, function->ns) &&
	       line->other_ns <= line->ns / 20;
}

static enum line_pass pass_of(const struct paths *paths, uint32_t node)
{
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		unsigned marks = marks_of(paths, node);

		if (marks & MARK_TORCH_OPTIMIZER)
			return PASS_OPTIMIZER;
		if (marks & MARK_TORCH_RECOMPUTE)
			return PASS_RECOMPUTE;
		if (marks & MARK_TORCH_BACKWARD)
			return PASS_BACKWARD;
	}
	return PASS_FORWARD;
}

/* Whether own code called the function that allocated memory. Its caller is the parent's parent. */
static bool is_own_allocation(const struct paths *paths, uint32_t node)
{
	return marks_of(paths, paths->nodes[paths->nodes[node].parent].parent) & MARKS_USER;
}

