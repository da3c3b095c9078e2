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
#include "merge/lines/line_source.h"
#include "merge/lines/modules.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/exporter.h"
#include "merge/sums/path_tables.h"
#include "merge/sums/run.h"

#define SMALL_PART  1000 /* leave out parts below this share of the run */
#define SMALL_LINE  20	 /* the same for the function of a line */
#define CALLERS_MAX 64	 /* functions with one caller may call each other */

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
	struct frame_list own = {0};
	struct line_sum *sum;
	uint32_t key[2], id;
	bool is_new;

	if (!(weights[WEIGHT_COUNT] | weights[WEIGHT_GPU_TIME] | weights[WEIGHT_GPU_IDLE] |
	      weights[WEIGHT_ALLOC_BYTES] | weights[WEIGHT_PEAK_BYTES]))
		return;
	key[0] = lines_place(lines, process, &total->owner, node, &own);
	key[1] = node;
	id = xt_intern(&lines->sum_keys, key, sizeof(key), &is_new);
	xt_grow(lines->sums, lines->sum_capacity, id);
	sum = &lines->sums[id - 1];
	if (is_new)
		*sum = (struct line_sum){.place = key[0], .node = node, .own = own};
	else
		free(own.list);
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

	if (begins_with(text, MODULE_MARK))
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

/* Returns the kind of part of a frame below a line of own code, or PART_NONE. */
static enum part_kind kind_of(struct lines *lines, const struct paths *paths, uint32_t node)
{
	uint32_t name = paths->nodes[node].name;

	xt_grow(lines->kinds, lines->kind_capacity, (size_t)name + 1);
	if (!lines->kinds[name])
		lines->kinds[name] = (uint8_t)(find_kind(paths, node) + 1);
	return (enum part_kind)(lines->kinds[name] - 1);
}

/* How a function is used. */
struct function_use {
	uint64_t ns;
	uint64_t hash;	   /* of the frames below it on the largest path */
	uint64_t other_ns; /* of paths with other frames below it */
	uint32_t caller;   /* key of the last line that calls it */
	uint32_t caller_count;
	uint32_t line_count; /* of its own lines, without small ones */
};

struct line_uses {
	uint32_t *modules; /* by folded name in lines.texts: the first name in run->paths */
	struct interner functions, callers;
	uint32_t *function_of; /* by key */
	uint64_t *ns;	       /* by key */
	struct function_use *used;
};

static void add_use(struct line_uses *uses, uint32_t key, uint64_t ns, uint64_t hash,
		    uint32_t caller)
{
	uint32_t call[2] = {uses->function_of[key], caller};
	struct function_use *use = &uses->used[call[0]];
	bool is_new;

	saturating_add(&uses->ns[key], ns);
	saturating_add(&use->ns, ns);
	use->hash = use->hash ? use->hash : hash;
	if (use->hash != hash)
		saturating_add(&use->other_ns, ns);
	if (!caller)
		return;
	xt_intern(&uses->callers, call, sizeof(call), &is_new);
	use->caller_count += is_new;
	use->caller = caller;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
	return (hash ^ more ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/*
 * Follows a path outwards. The functions of own code, the lines of libraries and the outermost
 * operator below a line identify its way.
 */
static void add_uses(struct line_uses *uses, struct lines *lines, const struct paths *paths,
		     const struct line_sum *sum)
{
	const struct path_node *places = lines->places.nodes;
	uint64_t hash = 1, ns = sum->weights[WEIGHT_GPU_TIME];
	uint32_t place = sum->place, outermost = NAME_EMPTY;

	for (uint32_t n = sum->node, i = 0; ns && place != PATH_ROOT; n = paths->nodes[n].parent) {
		enum part_kind kind = kind_of(lines, paths, n);

		if (n == sum->own.list[i]) {
			uint32_t key = places[place].name;

			place = places[place].parent;
			add_use(uses, key, ns, mix(hash, outermost), places[place].name);
			hash = mix(hash, (uint64_t)uses->function_of[key] << 32);
			i++;
		} else if (kind == PART_LINE) {
			hash = mix(hash, paths->nodes[n].name);
		} else if (kind == PART_OPERATOR) {
			outermost = paths->nodes[n].name;
		}
	}
}

/*
 * Returns how many lines call a function of own code, or its only caller, if these lines tell more
 * than its own lines do: if it is a wrapper. Returns 0 if it is none.
 */
static uint32_t wrapper_callers(const struct line_uses *uses, uint32_t function, int depth)
{
	const struct function_use *use = &uses->used[function];
	uint32_t count = use->caller_count;

	if (!use->ns || use->other_ns > use->ns / SMALL_LINE || depth == CALLERS_MAX)
		return 0;
	if (count == 1)
		count = wrapper_callers(uses, uses->function_of[use->caller], depth + 1);
	return count > use->line_count ? count : 0;
}

static bool is_wrapper(const struct line_uses *uses, uint32_t key)
{
	return wrapper_callers(uses, uses->function_of[key], 0);
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

/* Adds a sum to a part, which is created if needed. Returns its node. */
static uint32_t add_part(struct lines *lines, const struct paths *paths, uint32_t parent,
			 uint32_t name, enum part_kind kind, const struct line_sum *sum)
{
	uint32_t node = paths_child(&lines->tree, parent, name);
	const uint64_t *weights = sum->weights;
	struct line_part *part;

	xt_grow(lines->parts, lines->part_capacity, (size_t)node + 1);
	part = &lines->parts[node];
	part->kind = kind;
	saturating_add(&part->gpu_ns, weights[WEIGHT_GPU_TIME]);
	saturating_add(&part->pass_ns[sum->pass], weights[WEIGHT_GPU_TIME]);
	saturating_add(&part->idle_ns, weights[WEIGHT_GPU_IDLE]);
	saturating_add(&part->count, weights[WEIGHT_COUNT]);
	saturating_add(&part->steps.gpu_ns, sum->steps.gpu_ns);
	if (sum->pass == PASS_BACKWARD || sum->pass == PASS_RECOMPUTE)
		saturating_add(&part->step_backward_ns, sum->steps.gpu_ns);
	saturating_add(&part->steps.count, sum->steps.count);
	saturating_add(&part->steps.idle_ns, sum->steps.idle_ns);
	if (is_own_allocation(paths, sum->node)) {
		saturating_add(&part->alloc_bytes, weights[WEIGHT_ALLOC_BYTES]);
		saturating_add(&part->peak_bytes, weights[WEIGHT_PEAK_BYTES]);
	} else {
		saturating_add(&part->pool_bytes, weights[WEIGHT_ALLOC_BYTES]);
	}
	return node;
}

/* Adds a sum to the row of a line, which has one for all its functions. Returns its node. */
static uint32_t add_row(struct lines *lines, const struct paths *paths, uint32_t place,
			const struct line_sum *sum)
{
	const struct path_node *places = lines->places.nodes;
	uint32_t node, caller = places[places[place].parent].name;
	struct line_key key = {0};
	struct line_part *row;
	bool is_new;

	if (place != PATH_ROOT)
		key = *lines_key(lines, places[place].name);
	if (key.file != NAME_EMPTY)
		key.function = NAME_EMPTY;
	node = add_part(lines, paths, PATH_ROOT,
			xt_intern(&lines->row_keys, &key, sizeof(key), &is_new), PART_OWN, sum);
	row = &lines->parts[node];
	if (is_new) {
		row->place = place;
		row->inner = sum->place;
		row->caller = caller;
	} else if (row->caller != caller) {
		row->caller = LINE_SEVERAL;
	}
	return node;
}

/* Notes the line of a sum at all nodes within its wrappers. The largest sum comes first. */
static void note_charged(struct lines *lines, const struct paths *paths, const struct line_sum *sum,
			 uint32_t charged)
{
	xt_grow(lines->charged, lines->charged_capacity, (size_t)sum->node + 1);
	for (uint32_t n = sum->node; n != charged && !lines->charged[n]; n = paths->nodes[n].parent)
		lines->charged[n] = sum->key;
}

/* Adds a sum to the line outside of all wrappers, and to the parts below that line. */
static void charge(struct lines *lines, const struct paths *paths, const struct line_uses *uses,
		   struct line_sum *sum, struct frame_list *below)
{
	const struct path_node *places = lines->places.nodes;
	uint32_t place = sum->place, part, charged = PATH_ROOT, n, last = sum->node;
	uint32_t inner[PART_OWN] = {0};
	size_t skipped = 0;

	while (place != PATH_ROOT && places[place].parent != PATH_ROOT &&
	       is_wrapper(uses, places[place].name)) {
		place = places[place].parent;
		skipped++;
	}
	part = add_row(lines, paths, place, sum);
	sum->key = places[place].name;
	xt_grow(lines->sums_of, lines->sums_of_capacity, (size_t)sum->node + 1);
	sum->next = lines->sums_of[sum->node];
	lines->sums_of[sum->node] = (uint32_t)(sum - lines->sums) + 1;
	if (place != PATH_ROOT)
		charged = sum->own.list[skipped];
	if (skipped)
		note_charged(lines, paths, sum, charged);
	if (sum->weights[WEIGHT_GPU_IDLE])
		last = path_of_idle_class(paths, sum->node);
	else if (!sum->weights[WEIGHT_COUNT])
		return;
	for (below->count = 0, n = sum->node; n != charged; n = paths->nodes[n].parent) {
		enum part_kind kind = kind_of(lines, paths, n);

		if (kind == PART_LINE)
			list_append(*below, n);
		else if (kind != PART_NONE && (!inner[kind] || kind == PART_OPERATOR))
			inner[kind] = n;
	}
	inner[PART_OPERATOR] = inner[PART_NODE] ? inner[PART_NODE] : inner[PART_OPERATOR];
	inner[PART_NODE] = 0;
	inner[PART_WORK] = last;
	while (below->count)
		part = add_part(lines, paths, part, paths->nodes[below->list[--below->count]].name,
				PART_LINE, sum);
	for (enum part_kind kind = PART_MODULE; kind <= PART_WORK; kind++)
		if (inner[kind]) {
			uint32_t name = paths->nodes[inner[kind]].name;

			part = add_part(
				lines, paths, part,
				kind == PART_MODULE ? uses->modules[lines->modules[name]] : name,
				kind == PART_WORK ? kind : kind_of(lines, paths, inner[kind]), sum);
		}
}

static int compare_parts(const void *a, const void *b, void *context)
{
	const struct line_part *parts = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct line_part *x = &parts[i], *y = &parts[j];

	if (x->gpu_ns != y->gpu_ns)
		return x->gpu_ns > y->gpu_ns ? -1 : 1;
	if (x->idle_ns != y->idle_ns)
		return x->idle_ns > y->idle_ns ? -1 : 1;
	return i < j ? -1 : 1;
}

/* Links each part to its children, largest first. */
static void link_children(struct lines *lines)
{
	uint32_t count = lines->tree.node_count - 1;
	uint32_t *nodes = xt_calloc(count + 1, sizeof(*nodes));

	xt_grow(lines->parts, lines->part_capacity, (size_t)count + 1);
	for (uint32_t i = 0; i < count; i++)
		nodes[i] = i + 1;
	SORT_BY(nodes, count, compare_parts, lines->parts);
	for (uint32_t i = count; i-- > 0;) {
		struct line_part *parent = &lines->parts[lines->tree.nodes[nodes[i]].parent];

		lines->parts[nodes[i]].next = parent->first_child;
		parent->first_child = nodes[i];
		parent->child_count++;
	}
	free(nodes);
}

/* Gives ids to the parts below one. Leaves out a library's line that only leads to another. */
static void list_parts(struct lines *lines, const struct line_part *above,
		       const struct line_part *least)
{
	struct line_part *parts = lines->parts;

	for (uint32_t n = above->first_child, shown; n; n = parts[n].next) {
		for (shown = n; parts[shown].kind == PART_LINE && parts[shown].child_count == 1 &&
				parts[parts[shown].first_child].kind == PART_LINE;)
			shown = parts[shown].first_child;
		if (parts[n].kind != PART_OWN && parts[n].gpu_ns < least->gpu_ns &&
		    parts[n].idle_ns < least->idle_ns)
			continue;
		xt_append(lines->order, lines->order_count, lines->order_capacity, shown);
		parts[shown].id = (uint32_t)lines->order_count;
		parts[shown].parent = above->id;
		parts[shown].line_id = above->line_id ? above->line_id : parts[shown].id;
		list_parts(lines, &parts[shown], least);
	}
}

static int compare_sums(const void *a, const void *b)
{
	const struct line_sum *x = a, *y = b;
	uint64_t more = x->weights[WEIGHT_GPU_TIME], other = y->weights[WEIGHT_GPU_TIME];

	return more != other	    ? (more > other ? -1 : 1)
	       : x->node != y->node ? (x->node < y->node ? -1 : 1)
				    : (x->place > y->place) - (x->place < y->place);
}

static uint64_t part_of(uint64_t steps, uint64_t share, uint64_t whole)
{
	return whole ? (uint64_t)((unsigned __int128)steps * smaller(share, whole) / whole) : 0;
}

/* Divides the times in steps among the lines of a path, of which nearly all paths have one. */
static void find_steps(struct lines *lines, const struct run *run)
{
	const struct steps *steps = steps_of(run);

	for (size_t s = 0; s < lines->sum_keys.count; s++) {
		struct line_sum *sum = &lines->sums[s];
		const uint64_t *own = sum->weights, *all = run->paths.nodes[sum->node].weights;
		const struct step_weights *path;

		if (!steps || sum->node >= steps->weights.capacity)
			continue;
		path = &steps->weights.list[sum->node];
		sum->steps.gpu_ns =
			part_of(path->gpu_ns, own[WEIGHT_GPU_TIME], all[WEIGHT_GPU_TIME]);
		sum->steps.count = part_of(path->count, own[WEIGHT_COUNT], all[WEIGHT_COUNT]);
		sum->steps.idle_ns =
			part_of(path->idle_ns, own[WEIGHT_GPU_IDLE], all[WEIGHT_GPU_IDLE]);
	}
}

static const char *module_path(const struct paths *paths, uint32_t name)
{
	const char *text = names_text(&paths->names, name, NULL);

	return begins_with(text, MODULE_MARK) ? text + strlen(MODULE_MARK) : NULL;
}

/* Lists the modules with others inside: "layers.3" of "layers.3.mlp". */
static void find_outer(struct interner *outer, const struct paths *paths)
{
	bool is_new;

	for (uint32_t n = 0; n < paths->names.count; n++) {
		const char *path = module_path(paths, n);

		for (const char *dot = path; dot && (dot = strchr(dot, '.')); dot++)
			xt_intern(outer, path, (size_t)(dot - path), &is_new);
	}
}

/* Modules that differ only in their layer get one name, as in the table of modules. */
static void fold_modules(struct line_uses *uses, struct lines *lines, const struct paths *paths)
{
	struct interner outer = {0};
	bool is_new;

	find_outer(&outer, paths);
	lines->modules = xt_calloc(paths->names.count, sizeof(*lines->modules));
	for (uint32_t n = 0; n < paths->names.count; n++) {
		const char *path = module_path(paths, n);
		char *folded;

		if (!path)
			continue;
		xt_intern(&outer, path, strlen(path), &is_new);
		folded = module_folded(path, !is_new);
		lines->modules[n] = names_intern(&lines->texts, folded, strlen(folded));
		free(folded);
	}
	uses->modules = xt_calloc(lines->texts.count, sizeof(*uses->modules));
	for (uint32_t n = paths->names.count; n-- > 0;)
		uses->modules[lines->modules[n]] = n;
	interner_free(&outer);
}

static void find_functions(struct line_uses *uses, const struct lines *lines)
{
	bool is_new;

	uses->function_of = xt_calloc(lines->keys.count + 1, sizeof(*uses->function_of));
	uses->ns = xt_calloc(lines->keys.count + 1, sizeof(*uses->ns));
	uses->used = xt_calloc(lines->keys.count + 1, sizeof(*uses->used));
	for (uint32_t k = 1; k <= lines->keys.count; k++)
		uses->function_of[k] = xt_intern(&uses->functions, lines_key(lines, k),
						 offsetof(struct line_key, line), &is_new);
}

static void count_lines(struct line_uses *uses, const struct lines *lines)
{
	for (uint32_t k = 1; k <= lines->keys.count; k++) {
		struct function_use *use = &uses->used[uses->function_of[k]];

		use->line_count += uses->ns[k] > use->ns / SMALL_LINE;
	}
}

static void lines_end(struct sink *sink, const struct run *run)
{
	struct lines *lines = sink->state;
	struct line_uses uses = {0};
	struct frame_list below = {0};
	const struct line_part least = {
		.gpu_ns = table_sum(&run->paths, WEIGHT_GPU_TIME) / SMALL_PART + 1,
		.idle_ns = table_sum(&run->paths, WEIGHT_GPU_IDLE) / SMALL_PART + 1};

	find_steps(lines, run);
	find_functions(&uses, lines);
	fold_modules(&uses, lines, &run->paths);
	SORT(lines->sums, lines->sum_keys.count, compare_sums);
	for (size_t s = 0; s < lines->sum_keys.count; s++)
		add_uses(&uses, lines, &run->paths, &lines->sums[s]);
	count_lines(&uses, lines);
	for (size_t s = 0; s < lines->sum_keys.count; s++) {
		lines->sums[s].pass = pass_of(&run->paths, lines->sums[s].node);
		charge(lines, &run->paths, &uses, &lines->sums[s], &below);
	}
	link_children(lines);
	list_parts(lines, &(struct line_part){.first_child = lines->parts[0].first_child}, &least);
	line_sources_read(lines, run);
	interner_free(&uses.functions);
	interner_free(&uses.callers);
	free_all(uses.modules, uses.function_of, uses.ns, uses.used, below.list);
}

static void lines_free_state(struct sink *sink)
{
	struct lines *lines = sink->state;

	for (size_t i = 0; i < lines->order_count; i++)
		free(lines->parts[lines->order[i]].source.texts.texts);
	for (size_t s = 0; s < lines->sum_keys.count; s++)
		free(lines->sums[s].own.list);
	names_free(&lines->texts);
	paths_free(&lines->places);
	paths_free(&lines->tree);
	interner_free(&lines->keys);
	interner_free(&lines->sum_keys);
	interner_free(&lines->row_keys);
	free_all(lines->known, lines->charged, lines->kinds, lines->modules, lines->sums,
		 lines->sums_of, lines->parts, lines->order);
}

const struct exporter analysis_lines = {.state_bytes = sizeof(struct lines),
					.begin = lines_begin,
					.total = add_total,
					.end = lines_end,
					.free = lines_free_state};
