/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the tree of call paths from the sums by owner (aggregate.h).
 */
#include "merge/sums/build_tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/naming/joined_paths.h"
#include "merge/naming/frames.h"
#include "merge/read/collectives.h"
#include "merge/read/xla.h"
#include "merge/sums/reading.h"

#define NOTABLE_PART  20   /* differences below 1/20 of the mean are noise */
#define NOTABLE_SHARE 1000 /* so are those below 1/1000 of the time of all paths */

struct tree_builder {
	struct run *run;
	const struct process *process;
	const struct idle_paths *idle_paths;
	struct paths *paths;
	uint32_t *chain; /* for paths_chain() */
	size_t chain_capacity;
	struct placed_range {
		uint32_t node; /* in the tree of ranges */
		uint32_t frames_before;
		bool is_hidden;
		bool is_root; /* a program without a Python frame before it */
	} * nest;
	size_t nest_capacity;
	bool is_compilation;   /* while adding the path to a compilation of XLA */
	bool is_rootless;      /* paths begin without the root of --by */
	uint32_t launch_range; /* while adding what created a graph node: the launch's range */
};

static uint32_t intern(struct tree_builder *p, const char *text)
{
	return names_intern(&p->paths->names, text, strlen(text));
}

uint32_t clean_name(struct names *names, const char *text)
{
	size_t length = strlen(text);
	char *clean = xt_malloc(text_clean_bound(length) + 1);
	uint32_t name = names_intern(names, clean, text_clean(clean, text, length, ';'));

	free(clean);
	return name;
}

static bool has_contexts(const struct model *model, const struct stream *row)
{
	for (size_t s = 1; s < model->streams.count; s++) {
		const struct stream *other = &model->streams.rows[s];

		if (other->defined && other->device == row->device &&
		    other->context != row->context)
			return true;
	}
	return false;
}

/* The name that the program set, as " (name)"; "" if none. The caller frees it. */
static char *format_title(const struct model *model, enum xt_range_operation kind, uint32_t context,
			  uint64_t number)
{
	const char *title = model_title(model, kind, context, number);

	return xt_asprintf(title[0] ? " (%s)" : "", title);
}

/* Stream numbers are unique only within a context. Name the context if the device has several. */
static uint32_t name_stream(struct tree_builder *p, uint32_t id)
{
	const struct model *model = p->process->model;
	const struct stream *row = &model->streams.rows[id];
	char *context, *stream, *label;
	uint32_t name;

	if (!row->defined)
		return intern(p, "[unknown stream]");
	context = format_title(model, XT_RANGE_NAME_CONTEXT, 0, row->context);
	stream = format_title(model, XT_RANGE_NAME_STREAM, row->context, row->stream);
	if (has_contexts(model, row))
		label = xt_asprintf("[GPU%u context %u%s stream %u%s]", row->device, row->context,
				    context, row->stream, stream);
	else
		label = xt_asprintf("[GPU%u stream %u%s]", row->device, row->stream, stream);
	name = clean_name(&p->paths->names, label);
	free_all(label, context, stream);
	return name;
}

static uint32_t name_device(struct tree_builder *p, uint32_t device)
{
	char *title = format_title(p->process->model, XT_RANGE_NAME_DEVICE, 0, device);
	char *label = xt_asprintf("[GPU%u%s]", device, title);
	uint32_t name = clean_name(&p->paths->names, label);

	free_all(label, title);
	return name;
}

static uint32_t name_thread(struct tree_builder *p, uint32_t id)
{
	const struct model *model = p->process->model;
	const struct thread *thread = &model->threads.rows[id];
	const char *text = names_text(&model->names, thread->name, NULL);
	uint32_t name;
	char *label;

	if (!thread->tid)
		return intern(p, "[unknown thread]");
	label = xt_asprintf("%s (%u)", text[0] ? text : "[no name]", thread->tid);
	name = clean_name(&p->paths->names, label);
	free(label);
	return name;
}

/* The root node of an owner's path. */
static uint32_t add_root(struct tree_builder *p, uint32_t root)
{
	uint32_t node = PATH_ROOT, process = process_root(p->process, p->run->settings);

	switch (p->run->settings->by) {
	case BY_DEVICE:
		node = paths_child(p->paths, node,
				   root == ROOT_UNKNOWN ? intern(p, "[unknown GPU]")
				   : root == ROOT_HOST	? intern(p, "[host]")
							: name_device(p, root));
		break;
	case BY_STREAM:
		node = paths_child(p->paths, node,
				   root == ROOT_HOST ? intern(p, "[no stream]")
						     : name_stream(p, root));
		break;
	case BY_THREAD:
		node = paths_child(p->paths, node, name_thread(p, root));
		break;
	case BY_NONE:
	case BY_PROCESS:
	case BY_RANK:
		break;
	}
	return process == NAME_EMPTY ? node : paths_child(p->paths, node, process);
}

/* Stores the nested NVTX ranges in p->nest, outermost first. Returns their number. */
static int list_ranges(struct tree_builder *p, uint32_t range)
{
	const struct ranges *ranges = &p->process->model->ranges;
	uint32_t depth = range ? ranges->nodes.list[range].depth : 0;

	xt_grow(p->nest, p->nest_capacity, depth);
	for (uint32_t i = depth; i--; range = ranges->nodes.list[range].parent)
		p->nest[i] = (struct placed_range){.node = range};
	return (int)depth;
}

static uint32_t add_range(struct tree_builder *p, uint32_t base, const struct placed_range *range)
{
	const struct model *model = p->process->model;
	const struct range_node *node = &model->ranges.nodes.list[range->node];

	if (range->is_hidden)
		return base;
	if (xla_range_kind(model, range->node) != XLA_NONE)
		return xla_add_frames(p->paths, model, base, range->node, range->is_root);
	return paths_child(
		p->paths, base,
		range_label(&p->paths->names, model, node->domain, node->text, "[NVTX ", "]"));
}

static uint32_t add_ranges(struct tree_builder *p, uint32_t base, uint32_t range)
{
	int count = list_ranges(p, range);

	for (int i = 0; i < count; i++)
		base = add_range(p, base, &p->nest[i]);
	return base;
}

/* Number of outermost frames that the stack shares with p->chain. */
static uint32_t common_depth(const struct tree_builder *p, uint32_t depth, uint32_t stack)
{
	const struct frames *frames = p->process->frames;
	uint32_t node, other_depth = 0;

	if (!frames_has_stack(frames, stack))
		return 0;
	for (node = joined_paths_node(frames, stack); node != PATH_ROOT;
	     node = p->paths->nodes[node].parent)
		other_depth++;
	/* The tree has one node per path, so everything above the first common node is shared. */
	for (node = joined_paths_node(frames, stack); other_depth; other_depth--) {
		if (other_depth <= depth && p->chain[other_depth - 1] == node)
			return other_depth;
		node = p->paths->nodes[node].parent;
	}
	return 0;
}

/*
 * Finds how many frames come before each range. A range goes below the frames that its own stack
 * shares with the call's stack. An inner range may share fewer frames; its outer ranges then move
 * out with it, because frames in between were entered later.
 */
static void place_ranges(struct tree_builder *p, uint32_t depth, int range_count)
{
	uint32_t limit = depth;

	for (int i = range_count; i-- > 0;) {
		uint32_t stack = p->process->model->ranges.nodes.list[p->nest[i].node].stack;
		uint32_t common = common_depth(p, depth, stack);

		limit = common < limit ? common : limit;
		p->nest[i].frames_before = limit;
	}
}

/* Whether the launch is in a range with the same text. */
static bool is_around_launch(const struct tree_builder *p, uint32_t range)
{
	const struct range_node *nodes = p->process->model->ranges.nodes.list;

	for (uint32_t r = p->launch_range; r != RANGE_NONE; r = nodes[r].parent)
		if (nodes[r].domain == nodes[range].domain && nodes[r].text == nodes[range].text)
			return true;
	return false;
}

static bool has_python(const struct tree_builder *p, uint32_t stack)
{
	const struct model *model = p->process->model;

	stack = model_own_stack(model, stack);
	return stack < model->stacks.count && model->stacks.rows[stack].python_count;
}

/*
 * Places the ranges of a program of XLA. Without a Python frame, the path begins with the program.
 * If the launch of a graph is in the same program, its path has shown the frames outside of the
 * program. Then *next and *depth become the first range and frame inside.
 */
static void place_program(struct tree_builder *p, uint32_t stack, int range_count, int *next,
			  uint32_t *depth)
{
	const struct model *model = p->process->model;
	int program = *next;

	while (program < range_count && xla_range_kind(model, p->nest[program].node) != XLA_PROGRAM)
		program++;
	if (program == range_count)
		return;
	if (is_around_launch(p, p->nest[program].node)) {
		*next = program + 1;
		*depth = p->nest[program].frames_before;
		for (int i = *next; i < range_count; i++)
			p->nest[i].is_hidden = xla_range_kind(model, p->nest[i].node) != XLA_NONE &&
					       is_around_launch(p, p->nest[i].node);
		return;
	}
	if (has_python(p, stack))
		return;
	p->nest[program].is_root = true;
	for (int i = *next; i <= program; i++)
		p->nest[i].frames_before = 0;
}

/*
 * The range of the compilation that a helper of XLA's autotuner works for. RANGE_NONE if there is
 * none, its Python line is unknown, or ranges are not shown: this path comes from one.
 */
static uint32_t compilation_of(const struct tree_builder *p, uint32_t stack, uint32_t range)
{
	const struct model *model = p->process->model;

	if (!model->tuning.helpers.count || p->run->settings->nvtx == NVTX_OFF ||
	    has_python(p, stack))
		return RANGE_NONE;
	while (range != RANGE_NONE && (xla_range_kind(model, range) != XLA_TUNING ||
				       !has_python(p, model->ranges.nodes.list[range].stack)))
		range = model->ranges.nodes.list[range].parent;
	return range;
}

static uint32_t add_stack(struct tree_builder *p, uint32_t base, uint32_t stack, uint32_t range);

/* Adds the path to a compilation. Stores the number of its ranges in *range_count. */
static uint32_t add_compilation(struct tree_builder *p, uint32_t base, uint32_t range,
				int *range_count)
{
	const struct range_node *node = &p->process->model->ranges.nodes.list[range];
	bool has_frames = p->run->settings->nvtx == NVTX_FRAMES;

	if (has_frames)
		*range_count = (int)node->depth;
	p->is_compilation = true;
	base = add_stack(p, base, node->stack, has_frames ? range : RANGE_NONE);
	p->is_compilation = false;
	return base;
}

/* Leaves out the frames in which XLA opens a range. */
static int without_profiler(const struct tree_builder *p, int depth)
{
	while (depth > 0 &&
	       xla_is_profiler(names_text(&p->paths->names,
					  p->paths->nodes[p->chain[depth - 1]].name, NULL)))
		depth--;
	return depth;
}

/* Copy the frames of the stack below base, with the ranges between them. */
static uint32_t add_stack(struct tree_builder *p, uint32_t base, uint32_t stack, uint32_t range)
{
	const struct frames *frames = p->process->frames;
	bool has_stack = frames_has_stack(frames, stack);
	int depth = 0, range_count, next = 0;
	uint32_t first = 0, compilation = compilation_of(p, stack, range);

	if (p->run->settings->nvtx == NVTX_ROOTS)
		base = add_ranges(p, base, range);
	if (compilation != RANGE_NONE)
		base = add_compilation(p, base, compilation, &next);
	range_count = p->run->settings->nvtx == NVTX_FRAMES ? list_ranges(p, range) : 0;
	if (has_stack)
		depth = paths_chain(p->paths, joined_paths_node(frames, stack), &p->chain,
				    &p->chain_capacity);
	if (p->is_compilation)
		depth = without_profiler(p, depth);
	place_ranges(p, (uint32_t)depth, range_count);
	place_program(p, stack, range_count, &next, &first);
	for (int d = (int)first; d <= depth; d++) {
		while (next < range_count && p->nest[next].frames_before == (uint32_t)d)
			base = add_range(p, base, &p->nest[next++]);
		if (d < depth)
			base = paths_child(p->paths, base, p->paths->nodes[p->chain[d]].name);
	}
	if (!has_stack)
		base = paths_child(p->paths, base, intern(p, FRAME_UNATTRIBUTED));
	return base;
}

/* owner: of a LEAF_KERNEL or LEAF_NODE. Returns a name of the model. */
static uint32_t owner_kernel_name(const struct model *model, const struct owner *owner)
{
	return owner->leaf == LEAF_KERNEL ? model_kernel_name(model, owner->what)
					  : model_string(model, owner->what);
}

uint32_t leaf_frame(struct names *names, const struct process *process, const struct owner *owner)
{
	char *text = NULL;
	uint32_t name;

	switch ((enum leaf)owner->leaf) {
	case LEAF_CALL:
	case LEAF_LEFT_OUT:
		return NAME_EMPTY;
	case LEAF_KERNEL:
	case LEAF_NODE:
		name = demangle(process->names, owner_kernel_name(process->model, owner),
				process->names->style);
		text = xt_asprintf(LEAF_KERNEL_MARK "%s", names_text(names, name, NULL));
		break;
	case LEAF_COPY:
		text = xt_asprintf("[GPU_Memcpy %s]", copy_kind_label(owner->what));
		break;
	case LEAF_MEMSET:
		text = xt_strdup("[GPU_Memset]");
		break;
	case LEAF_MEMORY:
		text = xt_asprintf("[Memory %s]", memory_kind_label(MEMORY_WHAT_KIND(owner->what)));
		break;
	case LEAF_IDLE:
		text = xt_strdup(idle_labels[IDLE_WHAT_CLASS(owner->what)]);
		break;
	case LEAF_CPU:
		if (!cpu_sample_label((enum xt_cpu_state)owner->what, owner->stack))
			return NAME_EMPTY;
		text = xt_strdup(cpu_sample_label((enum xt_cpu_state)owner->what, owner->stack));
		break;
	}
	name = names_intern(names, text, strlen(text));
	free(text);
	return name;
}

#define COPY_MARK "[GPU_Memcpy"

enum work_kind leaf_kind(const char *name, size_t length)
{
	if (length >= strlen(LEAF_KERNEL_MARK) &&
	    !memcmp(name, LEAF_KERNEL_MARK, strlen(LEAF_KERNEL_MARK)))
		return WORK_KERNEL;
	return length >= strlen(COPY_MARK) && !memcmp(name, COPY_MARK, strlen(COPY_MARK))
		       ? WORK_COPY
		       : WORK_MEMSET;
}

/* Whether it is a kernel that mostly waits for other devices (collectives.h). */
static bool leaf_is_collective(const char *name, size_t length)
{
	size_t mark = strlen(LEAF_KERNEL_MARK);

	return leaf_kind(name, length) == WORK_KERNEL &&
	       is_collective_kernel(name + mark, length - mark);
}

const char *leaf_kind_name(const char *name, size_t length)
{
	static const char *const kinds[WORK_KINDS] = {
		[WORK_KERNEL] = "kernel", [WORK_COPY] = "copy", [WORK_MEMSET] = "set"};

	return leaf_is_collective(name, length) ? "collective" : kinds[leaf_kind(name, length)];
}

const char *leaf_name(const struct paths *paths, uint32_t name, size_t *length_out)
{
	const char *text = names_text(&paths->names, name, length_out);

	if (leaf_kind(text, *length_out) != WORK_KERNEL)
		return text;
	*length_out -= strlen(LEAF_KERNEL_MARK);
	return text + strlen(LEAF_KERNEL_MARK);
}

/* Adds the stack of a sampled thread, the CUDA function that it called, and its state. */
static uint32_t add_sampled(struct tree_builder *p, uint32_t node,
			    const struct idle_path_part *part)
{
	const struct frames *frames = &p->run->cpu->logs->list[part->log].frames;
	bool knows_api = frames_knows_api(frames, part->stack, MODEL_API_UNKNOWN);
	const char *label;
	int depth = 0;

	if (part->stack && frames_has_stack(frames, part->stack))
		depth = paths_chain(p->paths, frames->nodes[part->stack], &p->chain,
				    &p->chain_capacity);
	for (int d = 0; d < depth; d++)
		node = paths_child(p->paths, node, p->paths->nodes[p->chain[d]].name);
	if (knows_api)
		node = paths_child(p->paths, node,
				   frames_api_name(frames, part->stack, MODEL_API_UNKNOWN));
	label = cpu_sample_label((enum xt_cpu_state)part->state, depth || knows_api);
	return label ? paths_child(p->paths, node, intern(p, label)) : node;
}

/* Adds what the CPU did while the GPU was idle. */
static uint32_t add_idle_path(struct tree_builder *p, uint32_t node, uint32_t index)
{
	const struct idle_path *path;

	if (index == IDLE_PATH_NONE)
		return node;
	if (index == IDLE_PATH_UNSAMPLED)
		return paths_child(p->paths, node, intern(p, FRAME_NOT_SAMPLED));
	path = idle_paths_get(p->idle_paths, index);
	node = add_sampled(p, node, &path->own);
	return path->has_other ? add_sampled(p, node, &path->other) : node;
}

static uint32_t add_leaf(struct tree_builder *p, uint32_t node, const struct owner *owner)
{
	uint32_t name = leaf_frame(&p->paths->names, p->process, owner);

	if (name != NAME_EMPTY)
		node = paths_child(p->paths, node, name);
	return owner->leaf == LEAF_IDLE ? add_idle_path(p, node, IDLE_WHAT_PATH(owner->what))
					: node;
}

static uint32_t build_tree_add_call(struct tree_builder *p, uint32_t node,
				    const struct owner *owner)
{
	if (owner_stand_in(owner))
		return paths_child(p->paths, node, intern(p, owner_stand_in(owner)));
	node = add_stack(p, node, owner->stack, owner->range);
	if (!owner->stack && owner->leaf != LEAF_CALL)
		return node;
	return paths_child(p->paths, node,
			   frames_api_name(p->process->frames, owner->stack, owner->api));
}

static uint32_t add_cpu_path(struct tree_builder *p, uint32_t node, const struct owner *owner)
{
	const struct idle_path_part part = {
		.log = (uint32_t)(p->process->cpu - p->run->cpu->logs->list),
		.stack = owner->stack,
		.state = owner->what,
	};

	return add_sampled(p, node, &part);
}

static uint32_t add_path(struct tree_builder *p, const struct owner *owner)
{
	const struct frames *frames = p->process->frames;
	const struct nodes *nodes = &p->process->model->nodes;
	uint32_t node = p->is_rootless ? PATH_ROOT : add_root(p, owner->root);

	if (owner->leaf == LEAF_CPU)
		return add_cpu_path(p, node, owner);
	if (owner_has_call(owner))
		node = build_tree_add_call(p, node, owner);
	if (owner->marks & OWNER_IN_GRAPH)
		node = paths_child(p->paths, node, intern(p, PATH_GRAPH_MARK));
	if (owner->creation) {
		const struct creation *creation = &nodes->creations.list[owner->creation];

		p->launch_range =
			owner_has_call(owner) && !owner_stand_in(owner) ? owner->range : RANGE_NONE;
		node = add_stack(p, node, creation->stack, creation->range);
		p->launch_range = RANGE_NONE;
		if (frames_knows_api(frames, creation->stack, creation->api))
			node = paths_child(p->paths, node,
					   frames_api_name(frames, creation->stack, creation->api));
	}
	return add_leaf(p, node, owner);
}

static uint32_t add_one_path(struct reading *reading, const struct owner *owner, bool is_rootless)
{
	struct tree_builder p = {
		.run = reading->run,
		.process = &reading->process,
		.idle_paths = &reading->gaps.idle_paths,
		.paths = &reading->run->paths,
		.is_rootless = is_rootless,
	};
	uint32_t node = add_path(&p, owner);

	free_all(p.chain, p.nest);
	return node;
}

uint32_t build_tree_path(struct reading *reading, const struct owner *owner)
{
	return add_one_path(reading, owner, false);
}

uint32_t build_tree_common_path(struct reading *reading, const struct owner *owner)
{
	return add_one_path(reading, owner, true);
}

/* The last node of the owner's path after applying the selection, or PATH_DROPPED. */
static uint32_t add_wanted_path(struct tree_builder *p, const struct owner *owner)
{
	struct run *run = p->run;
	uint32_t node;

	if (owner->leaf == LEAF_LEFT_OUT)
		return PATH_DROPPED;
	node = add_path(p, owner);
	if (!run->selection || !selection_has_paths(run->selection))
		return node;
	return selection_path(run->selection, p->paths, node);
}

/* Whether the owner's path leads to a launch of a backward pass, and how well it is known. */
static enum join_result backward_result(const struct tree_builder *p, const struct owner *owner)
{
	const struct frames *frames = p->process->frames;
	enum join_result result = JOIN_NO_BACKWARD;

	if (owner->creation)
		result = joined_paths_result(
			frames, p->process->model->nodes.creations.list[owner->creation].stack);
	return result == JOIN_NO_BACKWARD ? joined_paths_result(frames, owner->stack) : result;
}

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

/* Adds GPU time of a path of a log. Logs come one after the other. */
static void rank_spread_add(struct rank_spread *spread, uint32_t node, size_t log, uint64_t ns)
{
	struct path_spread *path = by_id(*spread, node);

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

static int compare_spread(const void *a, const void *b, void *context)
{
	const struct rank_spread *spread = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t more = difference_ns(&spread->list[x]), other = difference_ns(&spread->list[y]);

	return more != other ? (more > other ? -1 : 1) : (x < y ? -1 : x > y);
}

void rank_spread_finish(struct rank_spread *spread, const struct paths *paths)
{
	size_t count = smaller(spread->capacity, paths->node_count);
	uint64_t largest_ns = 0; /* time of all paths in a log, roughly: the means */

	spread->rows = xt_malloc((count + 1) * sizeof(*spread->rows));
	for (uint32_t n = 0; n < count; n++) {
		close_log(&spread->list[n]);
		largest_ns += path_spread_mean_ns(&spread->list[n]);
	}
	for (uint32_t n = 0; n < count; n++) {
		const struct path_spread *path = &spread->list[n];
		uint64_t ns = path->count > 1 ? difference_ns(path) : 0;

		if (ns > path_spread_mean_ns(path) / NOTABLE_PART &&
		    ns > largest_ns / NOTABLE_SHARE && !is_collective(paths, n))
			spread->rows[spread->row_count++] = n;
	}
	SORT_BY(spread->rows, spread->row_count, compare_spread, spread);
}

void rank_spread_free(struct rank_spread *spread)
{
	free_all(spread->list, spread->rows);
	*spread = (struct rank_spread){0};
}

/* Without the root of --by, ranks share a path. */
static void add_to_spread(struct reading *reading, const struct total *total, uint32_t node)
{
	struct run *run = reading->run;

	if (!run->needs.ranks || !total->weights[WEIGHT_GPU_TIME])
		return;
	if (run->settings->by != BY_NONE)
		node = add_one_path(reading, &total->owner, true);
	rank_spread_add(&run->sums->spread, node,
			(size_t)(reading->process.log - run->inputs->logs),
			total->weights[WEIGHT_GPU_TIME]);
}

void build_tree(struct reading *reading)
{
	struct run *run = reading->run;
	struct aggregate *aggregate = &reading->aggregate;
	struct tree_builder p = {
		.run = run,
		.process = &reading->process,
		.idle_paths = &reading->gaps.idle_paths,
		.paths = &run->paths,
	};

	for (uint32_t t = 0; t < aggregate->count; t++) {
		struct total *total = &aggregate->entries[t];
		uint32_t node = add_wanted_path(&p, &total->owner);

		if (node == PATH_DROPPED) {
			/* Later steps must not see it either. */
			memset(total->weights, 0, sizeof(total->weights));
			continue;
		}
		for (int w = 0; w < WEIGHTS; w++)
			run->paths.nodes[node].weights[w] += total->weights[w];
		run->sums->code.backward_gpu_ns[backward_result(&p, &total->owner)] +=
			total->weights[WEIGHT_GPU_TIME];
		add_to_spread(reading, total, node);
		if (paths_has_user_code(&run->paths, node))
			run->sums->code.user_code_gpu_ns += total->weights[WEIGHT_GPU_TIME];
		if (paths_lacks_compiled_lines(&run->paths, node))
			run->sums->code.compiled_unknown_gpu_ns += total->weights[WEIGHT_GPU_TIME];
		reading->process.total = t;
		EXPORT(reading, total, total, node);
	}
	free_all(p.chain, p.nest);
}

uint32_t range_label(struct names *names, const struct model *model, uint32_t domain, uint32_t text,
		     const char *before, const char *after)
{
	struct xt_bytes domain_bytes = names_bytes(&model->names, model_string(model, domain));
	struct xt_bytes text_bytes = names_bytes(&model->names, model_string(model, text));
	size_t room = strlen(before) + text_clean_bound(domain_bytes.length) + 1 +
		      text_clean_bound(text_bytes.length) + strlen("[no name]") + strlen(after);
	char *label = xt_malloc(room + 1), *end = label;
	uint32_t name;

	end = text_copy(end, before, strlen(before));
	if (domain_bytes.length) {
		end += text_clean(end, domain_bytes.data, domain_bytes.length, ';');
		*end++ = ':';
	}
	if (text_bytes.length)
		end += text_clean(end, text_bytes.data, text_bytes.length, ';');
	else
		end = TEXT_LITERAL(end, "[no name]");
	end = text_copy(end, after, strlen(after));
	name = names_intern(names, label, (size_t)(end - label));
	free(label);
	return name;
}

uint32_t range_category(struct names *names, const struct model *model, uint32_t domain,
			uint32_t category)
{
	uint32_t text = model_category(model, domain, category);
	char number[16];

	if (text)
		return range_label(names, model, 0, text, "", "");
	snprintf(number, sizeof(number), "%u", category);
	return names_intern(names, number, strlen(number));
}

static void add_sums(struct run *run, const struct model *model, const struct range_node *range,
		     struct range_sums *sums)
{
	bool is_first = !sums->opened_count;
	uint32_t category = NAME_EMPTY;

	if (range->category && range->category != RANGE_CATEGORY_SEVERAL)
		category = range_category(&run->sums->ranges.tree.names, model, range->domain,
					  range->category);
	sums->has_several_categories |= range->category == RANGE_CATEGORY_SEVERAL ||
					(!is_first && range->count && sums->category != category);
	if (is_first)
		sums->category = category;
	sums->opened_count += range->count;
	range_payload_add(&sums->payload, &range->payload);
}

/* Map each node of the log's range tree to a node of run->sums->ranges.tree. Parents come first. */
static void make_nodes(struct run *run, const struct model *model, uint32_t *nodes)
{
	const struct ranges *ranges = &model->ranges;

	for (uint32_t r = 1; r < ranges->nodes.count; r++) {
		const struct range_node *range = &ranges->nodes.list[r];

		nodes[r] = paths_child(&run->sums->ranges.tree, nodes[range->parent],
				       range_label(&run->sums->ranges.tree.names, model,
						   range->domain, range->text, "", ""));
		add_sums(run, model, range, by_id(run->sums->ranges.sums, nodes[r]));
	}
}

void build_range_tree(struct run *run, const struct process *process,
		      const struct aggregate *aggregate)
{
	size_t count = process->model->ranges.nodes.count;
	uint32_t *nodes = xt_calloc(count ? count : 1, sizeof(*nodes));

	make_nodes(run, process->model, nodes);
	for (uint32_t t = 0; t < aggregate->count; t++) {
		const struct total *total = &aggregate->entries[t];
		uint32_t node = total->owner.range < count ? nodes[total->owner.range] : PATH_ROOT;

		for (; node != PATH_ROOT; node = run->sums->ranges.tree.nodes[node].parent)
			for (int w = 0; w < WEIGHTS; w++)
				run->sums->ranges.tree.nodes[node].weights[w] += total->weights[w];
	}
	free(nodes);
}
