/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of each event: the stack, range, stream and thread that its costs are added to.
 */
#include "merge/sums/reading.h"

#include <stdlib.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/sums/build_tree.h"

void reading_find_stacks(struct reading *reading)
{
	const struct model *model = reading->model;

	reading->join.has_stack = xt_calloc(model->stacks.count + 1, 1);
	for (uint32_t id = 1; id < model->stacks.count; id++)
		reading->join.has_stack[id] = model_has_stack(model, id);
}

void reading_find_iterations(struct reading *reading)
{
	struct iterations *list = &reading->plan.iterations;

	reading->process.iterations = list;
	if (!reading->run->needs.iterations)
		return;
	iterations_find(list, reading->model, reading->process.log->path,
			&reading->run->settings->iterations);
	if (list->warmup_count >= list->count)
		return;
	reading->plan.steady_from_ns = list->list[list->warmup_count];
	reading->plan.steady_ns = list->end_ns - reading->plan.steady_from_ns;
}

static inline bool reading_has_stack(const struct reading *reading, uint32_t stack)
{
	stack = model_own_stack(reading->model, stack);
	return stack < reading->model->stacks.count && reading->join.has_stack[stack];
}

static inline void owner_add_call(struct reading *reading, const struct launch *launch,
				  struct owner *owner)
{
	owner->range = launch->range;
	if (reading_is_steady(reading, launch->enter_ns))
		owner->marks |= OWNER_STEADY;
	if (launch->flags & LAUNCH_UNSAMPLED)
		owner->marks |= OWNER_UNSAMPLED;
	if (!reading_has_stack(reading, launch->stack))
		return;
	owner->stack = launch->stack;
	owner->api = launch->api;
}

/* Graph work belongs to the launch of the graph and to the creation of the node. */
static inline void owner_add_node(struct reading *reading, uint64_t node_id, uint64_t launched_ns,
				  struct owner *owner, bool *is_unmade)
{
	struct nodes *nodes = &reading->model->nodes;
	enum graph_stacks wanted = reading->run->settings->graph_stacks;
	uint32_t creation = nodes_creation(nodes, node_id, launched_ns);

	if (creation && !reading_has_stack(reading, nodes->creations.list[creation].stack))
		creation = CREATION_UNKNOWN;
	/* A log without any nodes comes from a tracer that did not record them. */
	*is_unmade = !creation && nodes->count;
	if (wanted == GRAPH_STACKS_REPLAY)
		return;
	owner->marks |= OWNER_IN_GRAPH;
	owner->creation = creation;
	if (wanted != GRAPH_STACKS_CAPTURE || !creation)
		return;
	owner->marks &= OWNER_STEADY;
	owner->stack = 0;
	owner->api = 0;
}

uint32_t owner_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread)
{
	switch (run->settings->by) {
	case BY_DEVICE:
		return model_device(model, stream);
	case BY_STREAM:
		return model_stream(model, stream)->defined ? stream : 0;
	case BY_THREAD:
		return thread < model->threads.count ? thread : 0;
	default:
		return 0;
	}
}

/* The same for what a thread does on the host. */
static uint32_t host_root(const struct reading *reading, uint32_t thread)
{
	enum by by = reading->run->settings->by;

	return by == BY_DEVICE || by == BY_STREAM
		       ? ROOT_HOST
		       : owner_root(reading->run, reading->model, 0, thread);
}

void owner_of_call(struct reading *reading, const struct launch *call, struct owner *owner)
{
	*owner = (struct owner){.leaf = LEAF_CALL, .api = call->api};
	owner_add_call(reading, call, owner);
	if (reading->run->needs.origins)
		owner->thread = call->thread;
	owner->root = host_root(reading, call->thread);
}

/* Event filter: each range and each path is matched only once. */
enum verdict { UNKNOWN, WANTED, LEFT_OUT };

bool event_filter_wants_time(const struct reading *reading, uint64_t time_ns)
{
	int64_t since_ns = process_time_ns(&reading->process, time_ns);

	return selection_has_time(reading->run->selection, since_ns < 0 ? 0 : (uint64_t)since_ns);
}

/* True if this range or one around it is selected. */
static bool has_range(struct reading *reading, uint32_t range)
{
	const struct ranges *ranges = &reading->model->ranges;
	struct run *run = reading->run;
	struct event_filter *event_filter = &reading->event_filter;
	const struct range_node *node;
	uint32_t name;

	if (!run->selection->wanted->patterns[PATTERN_RANGE])
		return true;
	if (!range || range >= ranges->nodes.count)
		return false;
	xt_grow(event_filter->ranges, event_filter->range_capacity, range + 1);
	if (event_filter->ranges[range])
		return event_filter->ranges[range] == WANTED;
	node = &ranges->nodes.list[range];
	name = range_label(&run->sums->ranges.tree.names, reading->model, node->domain, node->text,
			   "", "");
	if (selection_has_range(run->selection,
				names_text(&run->sums->ranges.tree.names, name, NULL)) ||
	    has_range(reading, node->parent))
		event_filter->ranges[range] = WANTED;
	else
		event_filter->ranges[range] = LEFT_OUT;
	return event_filter->ranges[range] == WANTED;
}

static bool has_path(struct reading *reading, const struct owner *owner, struct verdicts *verdicts,
		     uint32_t place)
{
	struct run *run = reading->run;
	uint32_t node;

	if (*by_id(*verdicts, place))
		return verdicts->list[place] == WANTED;
	node = build_tree_path(reading, owner);
	node = selection_path(run->selection, &run->paths, node);
	verdicts->list[place] = node == PATH_DROPPED ? LEFT_OUT : WANTED;
	return node != PATH_DROPPED;
}

bool event_filter_wants_call(struct reading *reading, const struct launch *call)
{
	struct event_filter *event_filter = &reading->event_filter;
	struct owner owner;
	uint32_t place;

	if (!event_filter_wants_time(reading, call->enter_ns) || !has_range(reading, call->range))
		return false;
	if (!selection_has_paths(reading->run->selection))
		return true;
	owner_of_call(reading, call, &owner);
	place = aggregate_index(&event_filter->call_owners, &owner);
	return has_path(reading, &owner, &event_filter->calls, place);
}

/*
 * True if the time and range of the work and its call match; the path is not checked. Also accepts
 * allocations and frees.
 */
static bool event_filter_wants_work(struct reading *reading, const struct work *work,
				    const struct launch *launch)
{
	return event_filter_wants_time(reading, work->start_ns) &&
	       has_range(reading, launch ? launch->range : 0);
}

static bool event_filter_wants_path(struct reading *reading, uint32_t place)
{
	if (!selection_has_paths(reading->run->selection))
		return true;
	return has_path(reading, &reading->aggregate.entries[place].owner,
			&reading->event_filter.work, place);
}

void event_filter_free(struct event_filter *event_filter)
{
	free_all(event_filter->ranges, event_filter->calls.list, event_filter->work.list);
	aggregate_free(&event_filter->call_owners);
}

struct key {
	struct owner owner;
	uint32_t graph_exec;
};

/* Counts a launch. owner: of the graph as a whole. */
static void whole_graphs_add(struct whole_graphs *graphs, const struct work *work,
			     const struct owner *owner, uint64_t launched_ns)
{
	const struct key key = {*owner, (uint32_t)(work->graph_node >> 32)};
	bool is_new;
	uint32_t id = xt_intern(&graphs->keys, &key, sizeof(key), &is_new);

	xt_grow(graphs->list, graphs->capacity, id);
	if (is_new)
		graphs->list[id - 1] = (struct whole_launches){.first_ns = launched_ns};
	graphs->list[id - 1].count++;
}

static inline void set_leaf(const struct reading *reading, const struct work *work,
			    struct owner *owner)
{
	switch (work->kind) {
	case WORK_KERNEL:
		owner->leaf = LEAF_KERNEL;
		owner->what = work->shape;
		break;
	case WORK_COPY:
		owner->leaf = LEAF_COPY;
		owner->what = label_index(model_copy_shape(reading->model, work->shape)->kind,
					  COPY_KINDS);
		break;
	case WORK_MEMSET:
		owner->leaf = LEAF_MEMSET;
		break;
	default:
		owner->leaf = LEAF_MEMORY;
		owner->what = MEMORY_WHAT(label_index(work->shape, MEMORY_KINDS),
					  memory_pool(work->stream, work->shape));
		break;
	}
}

/*
 * This function and others that fill in an owner are inline, so that the owner stays in registers
 * until the lookup.
 */
static inline __attribute__((always_inline)) void owner_of_work(const struct reading *reading,
								const struct work *work,
								const struct launch *launch,
								struct owner *owner)
{
	const struct run *run = reading->run;

	*owner = (struct owner){0};
	set_leaf(reading, work, owner);
	if (!launch && work_is_by_device(work))
		owner->marks = OWNER_BY_DEVICE;
	else if (!launch && work->kind == WORK_ALLOC &&
		 pauses_within(&reading->model->pauses, work->start_ns, work->start_ns))
		owner->marks = OWNER_PAUSED;
	if (run->needs.origins) {
		owner->thread = launch ? launch->thread : 0;
		if (owner->leaf != LEAF_MEMORY)
			owner->stream =
				label_index(work->stream, (uint32_t)reading->model->streams.count);
	}
	if (run->settings->by == BY_NONE)
		return;
	if (owner->leaf == LEAF_MEMORY && run->settings->by == BY_STREAM)
		owner->root = ROOT_HOST;
	else if (owner->leaf == LEAF_MEMORY && run->settings->by == BY_DEVICE)
		owner->root = MEMORY_WHAT_POOL(owner->what) == MEMORY_POOL_HOST ? ROOT_HOST
										: work->stream;
	else
		owner->root =
			owner_root(run, reading->model, work->stream, launch ? launch->thread : 0);
}

void owner_without_call(const struct reading *reading, const struct work *work, struct owner *owner)
{
	const struct selection *selection = reading->run->selection;

	owner_of_work(reading, work, NULL, owner);
	/* Work outside the window, or work that may turn out to be outside the selected ranges. */
	if (selection && (selection->wanted->patterns[PATTERN_RANGE] ||
			  !event_filter_wants_time(reading, work->start_ns)))
		*owner = (struct owner){.leaf = LEAF_LEFT_OUT};
}

static void count_work(struct reading *reading, const struct work *work)
{
	struct work_counts *counts = &reading->sums.counts.work;
	struct transfer_sum *sum;

	counts->work_count[work->kind]++;
	counts->gpu_ns += work->duration_ns;
	if (work_is_whole_graph(work)) {
		counts->whole_graph_count++;
		counts->whole_graph_ns += work->duration_ns;
	}
	if (work->kind == WORK_KERNEL)
		return;
	if (work->kind == WORK_COPY)
		sum = &reading->sums.copies[label_index(
			work->shape, (uint32_t)reading->model->copy_shapes.count)];
	else
		sum = &reading->sums.memsets[label_index(work->shape, MEMORY_KINDS)];
	sum->count++;
	sum->bytes += work->bytes;
	sum->gpu_ns += work->duration_ns;
}

static void joined_memory(struct reading *reading, const struct work *work,
			  const struct launch *launch)
{
	struct owner owner;

	if (!launch || (reading->run->selection && !event_filter_wants_work(reading, work, launch)))
		return;
	owner_of_work(reading, work, launch, &owner);
	owner_add_call(reading, launch, &owner);
	memory_set_owner(&reading->sums.memory, work->ticket, &owner);
}

static void note_copy(struct reading *reading, const struct work *work, const struct launch *launch)
{
	const struct callsites *callsites = &reading->sums.callsites;
	struct launch steady;

	callsites_add_copy(&reading->sums.callsites, work, launch);
	if (!launch || !reading_is_steady(reading, launch->enter_ns))
		return;
	steady = *launch;
	steady.callsite = callsites_same(&reading->sums.steady, callsites, launch->callsite);
	callsites_add_copy(&reading->sums.steady, work, &steady);
}

static void note_work(struct reading *reading, const struct stretch *stretch)
{
	const struct callsites *callsites = &reading->sums.callsites;
	const struct idle_work *work = stretch->work;
	struct stretch steady;

	callsites_add_work(&reading->sums.callsites, stretch);
	if (!reading_is_steady(reading, work->has_call ? work->enter_ns : work->start_ns))
		return;
	steady = *stretch;
	steady.call.callsite =
		callsites_same(&reading->sums.steady, callsites, stretch->call.callsite);
	steady.call.before = callsites_same(&reading->sums.steady, callsites, stretch->call.before);
	callsites_add_work(&reading->sums.steady, &steady);
}

void attribute_work(void *context, const struct work *work, const struct launch *launch)
{
	struct reading *reading = context;
	const struct run *run = reading->run;
	struct work_counts *counts = &reading->sums.counts.work;
	bool has_stack, is_unmade = false, is_of_graph, is_whole = work_is_whole_graph(work);
	uint64_t launched_ns = launch ? launch->enter_ns : work->start_ns;
	struct owner owner;
	uint32_t place;

	if (work->kind >= WORK_KINDS) {
		joined_memory(reading, work, launch);
		return;
	}
	if (run->selection && !event_filter_wants_work(reading, work, launch))
		return;
	owner_of_work(reading, work, launch, &owner);
	if (launch)
		owner_add_call(reading, launch, &owner);
	has_stack = owner.stack;
	is_of_graph = work->graph_node && !is_whole && (launch || owner.marks);
	if (is_of_graph)
		owner_add_node(reading, work->graph_node, launched_ns, &owner, &is_unmade);
	place = aggregate_index(&reading->aggregate, &owner);
	if ((launch || is_of_graph) && reading->gaps.timeline)
		timeline_set_owner(reading->gaps.timeline, work->ticket, launch, place);
	if (run->selection && !event_filter_wants_path(reading, place))
		return;
	count_work(reading, work);
	if (run->needs.findings && work->kind == WORK_COPY)
		note_copy(reading, work, launch);
	if (is_of_graph) {
		counts->graph_work_count++;
		/* A graph may have been made while recording was stopped. */
		counts->graph_work_unmade_count += is_unmade && !reading->model->stops.count;
	}
	if (!launch && is_of_graph)
		counts->work_by_device_count++;
	else if (!launch)
		counts->work_without_call_count++;
	else if (!has_stack)
		counts->work_without_stack_count += !(owner.marks & OWNER_UNSAMPLED);
	else
		counts->attributed_gpu_ns += work->duration_ns;
	reading->aggregate.entries[place].weights[WEIGHT_GPU_TIME] += work->duration_ns;
	reading->aggregate.entries[place].weights[WEIGHT_COUNT]++;
	if (is_whole)
		whole_graphs_add(&reading->join.whole_graphs, work, &owner, launched_ns);
	reading->process.total = place;
	if (reading->plan.exports_work)
		EXPORT(reading, on.work, work, launch);
}

void reading_add_plain_sums(struct reading *reading, const struct plain_sums *sums)
{
	struct work_counts *counts = &reading->sums.counts.work;

	counts->work_count[WORK_KERNEL] += sums->count;
	counts->gpu_ns += sums->gpu_ns;
	counts->attributed_gpu_ns += sums->gpu_ns;
}

void attribute_work_with_id(void *context, const struct work *work, const struct launch *launch)
{
	struct reading *reading = context;

	if (work->kind < WORK_KINDS && work->graph_node && work->correlation &&
	    !work_is_whole_graph(work))
		replays_pass(reading->join.replays, work, launch);
	attribute_work(context, work, launch);
}

void reading_ran(void *context, const struct stretch *stretch)
{
	struct reading *reading = context;

	if (reading->run->selection && !event_filter_wants_path(reading, stretch->place))
		return;
	if (reading->run->needs.findings)
		note_work(reading, stretch);
	if (reading->run->needs.ranks && reading->model->has_collectives)
		rank_log_add(reading, stretch);
	EXPORT(reading, on.stretch, stretch);
}

void reading_idle_moved(void *context, const struct idle_move *move)
{
	struct reading *reading = context;

	for (size_t e = 0; e < reading->sink_count; e++)
		if (reading->sinks[e].exporter->on.idle_moved)
			reading->sinks[e].exporter->on.idle_moved(&reading->sinks[e], move);
}

void reading_memory_changed(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes)
{
	struct reading *reading = context;

	EXPORT(reading, on.memory, pool, time_ns, live_bytes);
}

void reading_add_wait(struct reading *reading, const struct launch *call, uint64_t own_ns)
{
	struct owner owner;
	uint32_t place;

	owner_of_call(reading, call, &owner);
	place = aggregate_index(&reading->aggregate, &owner);
	reading->aggregate.entries[place].weights[WEIGHT_CPU_WAIT] += own_ns;
}

static struct owner owner_of_sample(const struct reading *reading, const struct cpu_sample *sample)
{
	struct owner owner = {
		.leaf = LEAF_CPU,
		.root = host_root(reading, sample->thread),
		.what = sample->state,
		.stack = model_has_stack(reading->model, sample->stack) ? sample->stack : 0,
	};

	if (reading->run->needs.origins)
		owner.thread = sample->thread < reading->model->threads.count ? sample->thread : 0;
	return owner;
}

bool cpu_sums_wants(const struct reading *reading, const struct cpu_sample *sample)
{
	const struct selection *selection = reading->run->selection;

	return !selection || (!selection->wanted->patterns[PATTERN_RANGE] &&
			      event_filter_wants_time(reading, sample->first_ns));
}

void cpu_sums_add(struct reading *reading)
{
	const struct cpu_samples *samples = &reading->process.cpu->model->cpu_samples;

	for (size_t s = 0; s < samples->count; s++) {
		const struct cpu_sample *sample = &samples->list[s];
		struct owner owner;
		uint32_t place;

		if (!cpu_sums_wants(reading, sample))
			continue;
		owner = owner_of_sample(reading, sample);
		place = aggregate_index(&reading->aggregate, &owner);
		reading->aggregate.entries[place]
			.weights[cpu_state_runs((enum xt_cpu_state)sample->state)
					 ? WEIGHT_CPU_TIME
					 : WEIGHT_OFF_CPU] += sample->weight_ns;
		EXPORT(reading, on.cpu_sample, sample);
	}
}

/* Kernels in graphs recorded as a whole that are counted for one log. Later ones are left out. */
#define WHOLE_GRAPHS_KERNELS_MAX (1u << 20)

static void add_kernel(struct reading *reading, const struct owner *of_graph, uint64_t node_id,
		       const struct whole_launches *launches)
{
	struct owner owner = *of_graph;
	uint32_t place;
	bool is_unmade;

	owner.leaf = LEAF_NODE;
	owner.what = nodes_name(&reading->model->nodes, node_id, launches->first_ns);
	owner_add_node(reading, node_id, launches->first_ns, &owner, &is_unmade);
	place = aggregate_search(&reading->aggregate, owner);
	reading->aggregate.entries[place].weights[WEIGHT_UNTIMED] += launches->count;
	reading->sums.counts.work.untimed_count += launches->count;
}

void whole_graphs_finish(struct reading *reading)
{
	struct whole_graphs *graphs = &reading->join.whole_graphs;
	uint32_t left = WHOLE_GRAPHS_KERNELS_MAX;

	for (uint32_t id = 1; id <= graphs->keys.count; id++) {
		const struct whole_launches *launches = &graphs->list[id - 1];
		size_t key_bytes;
		const struct key *key = interner_at(&graphs->keys, id, &key_bytes);
		uint64_t first_id = (uint64_t)key->graph_exec << 32, node;

		for (node = nodes_kernel_from(&reading->model->nodes, first_id, launches->first_ns);
		     node && left; node = nodes_kernel_from(&reading->model->nodes, node + 1,
							    launches->first_ns)) {
			add_kernel(reading, &key->owner, node, launches);
			left--;
		}
	}
}

void whole_graphs_free(struct whole_graphs *graphs)
{
	interner_free(&graphs->keys);
	free(graphs->list);
	*graphs = (struct whole_graphs){0};
}
