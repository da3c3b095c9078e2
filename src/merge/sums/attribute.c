/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of each event and adds its cost to the sums.
 */
#include "merge/sums/attribute.h"

#include "merge/sums/owner.h"
#include "merge/sums/event_filter.h"
#include "merge/sums/build_tree.h"

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

static void export_work(struct reading *reading, const struct work *work,
			const struct launch *launch)
{
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->on.work)
			sink->exporter->on.work(sink, &reading->process, work, launch);
	}
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
		callsites_add_copy(&reading->sums.callsites, work, launch);
	if (is_of_graph) {
		counts->graph_work_count++;
		/* A graph may have been made while recording was stopped. */
		counts->graph_work_unmade_count += is_unmade && !reading->model->stops.count;
	}
	if (!launch && is_of_graph)
		counts->work_by_device_count++;
	else if (!launch)
		counts->work_without_call_count++;
	else if (!has_stack) /* distribute_unsampled() handles unsampled calls */
		counts->work_without_stack_count += !(owner.marks & OWNER_UNSAMPLED);
	else
		counts->attributed_gpu_ns += work->duration_ns;
	reading->aggregate.entries[place].weights[WEIGHT_GPU_TIME] += work->duration_ns;
	reading->aggregate.entries[place].weights[WEIGHT_COUNT]++;
	if (is_whole)
		whole_graphs_add(&reading->join.whole_graphs, work, &owner, launched_ns);
	reading->process.total = place;
	if (reading->plan.exports_work)
		export_work(reading, work, launch);
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
		callsites_add_work(&reading->sums.callsites, stretch);
	if (reading->run->needs.ranks && reading->model->has_collectives)
		rank_log_add(reading, stretch);
	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->on.stretch)
			sink->exporter->on.stretch(sink, &reading->process, stretch);
	}
}

void reading_memory_changed(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes)
{
	struct reading *reading = context;

	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		if (sink->exporter->on.memory)
			sink->exporter->on.memory(sink, &reading->process, pool, time_ns,
						  live_bytes);
	}
}

void reading_add_wait(struct reading *reading, const struct launch *call, uint64_t own_ns)
{
	struct owner owner;
	uint32_t place;

	owner_of_call(reading, call, &owner);
	place = aggregate_index(&reading->aggregate, &owner);
	reading->aggregate.entries[place].weights[WEIGHT_CPU_WAIT] += own_ns;
}
