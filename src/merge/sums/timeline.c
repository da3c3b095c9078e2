/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of all devices in order of its start.
 */
#include "merge/sums/timeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"

#define FRACTION_BITS 64 /* the integral is in units of 2^-64 ns */

/*
 * Division truncates, so three thirds are slightly less than 1 ns. This tolerance rounds them up.
 */
#define FRACTION_GUARD ((unsigned __int128)1 << 32)

static bool ends_before(const struct exclusive_running *a, const struct exclusive_running *b)
{
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->sequence < b->sequence;
}

static void push(struct exclusive *e, struct exclusive_running running)
{
	uint32_t i = e->count++;

	for (; i && ends_before(&running, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = running;
}

static struct exclusive_running pop(struct exclusive *e)
{
	struct exclusive_running first = e->heap[0], last = e->heap[--e->count];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < e->count && ends_before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (child >= e->count || !ends_before(&e->heap[child], &last))
			break;
		e->heap[i] = e->heap[child];
		i = child;
	}
	e->heap[i] = last;
	return first;
}

static void advance(struct exclusive *e, uint64_t to_ns)
{
	uint64_t passed_ns = to_ns - e->now_ns;

	if (e->count) {
		/* Usually one piece runs. Avoid the slow 128-bit division then. */
		unsigned __int128 passed = (unsigned __int128)passed_ns << FRACTION_BITS;

		e->integral += e->count == 1 ? passed : passed / e->count;
		e->busy_ns += passed_ns;
	}
	e->now_ns = to_ns;
}

static void end_first(struct exclusive *e)
{
	struct exclusive_running ended = pop(e);
	unsigned __int128 share = e->integral - ended.from + e->carry;
	uint64_t share_ns = (uint64_t)((share + FRACTION_GUARD) >> FRACTION_BITS);

	/* The last piece of a busy period gets the rest: its share plus the lost fractions. */
	if (!e->count)
		share_ns = e->busy_ns - e->given_ns;
	e->carry = share - ((unsigned __int128)share_ns << FRACTION_BITS);
	e->given_ns += share_ns;
	e->give(e->context, ended.owner, share_ns);
	if (e->count)
		return;
	e->integral = e->carry = 0;
	e->busy_ns = e->given_ns = 0;
}

static void end_all_until(struct exclusive *e, uint64_t time_ns)
{
	while (e->count && e->heap[0].end_ns <= time_ns) {
		advance(e, e->heap[0].end_ns);
		end_first(e);
	}
}

void exclusive_add(struct exclusive *e, uint64_t start_ns, uint64_t end_ns, uint32_t owner)
{
	start_ns = larger(start_ns, e->now_ns);
	if (end_ns <= start_ns)
		return;
	end_all_until(e, start_ns);
	advance(e, start_ns);
	if (e->count == EXCLUSIVE_RUNNING_MAX) {
		e->dropped_count++;
		return;
	}
	xt_grow(e->heap, e->capacity, e->count + 1);
	push(e, (struct exclusive_running){end_ns, e->integral, e->sequence++, owner});
}

void exclusive_finish(struct exclusive *e)
{
	end_all_until(e, UINT64_MAX);
}

void exclusive_free(struct exclusive *e)
{
	free(e->heap);
	e->heap = NULL;
	e->count = 0;
	e->capacity = 0;
}

enum thread_state threads_state_of(const struct model *model, const struct api *api)
{
	return thread_state_of_call(api->class, names_text(&model->names, api->name, NULL));
}

void threads_init(struct threads *threads, const struct model *model)
{
	threads->count = model->threads.count;
	threads->checkpoints_max = THREADS_CHECKPOINTS_MAX;
	threads->timelines = xt_calloc(threads->count, sizeof(*threads->timelines));
	threads->states = xt_calloc(model->apis.count, sizeof(*threads->states));
	for (size_t a = 0; a < model->apis.count; a++)
		threads->states[a] = (uint8_t)threads_state_of(model, &model->apis.rows[a]);
}

void threads_free(struct threads *threads)
{
	for (size_t t = 0; threads->timelines && t < threads->count; t++)
		thread_timeline_free(&threads->timelines[t]);
	free_all(threads->timelines, threads->states);
	aggregate_free(&threads->callers);
	*threads = (struct threads){0};
}

/* Short timelines stay. If there are very many threads, raise the limit instead. */
static void thin(struct threads *threads)
{
	threads->checkpoint_count = 0;
	for (size_t t = 0; t < threads->count; t++) {
		thread_timeline_thin(&threads->timelines[t]);
		threads->checkpoint_count += threads->timelines[t].count;
	}
	threads->checkpoints_max =
		larger(threads->checkpoints_max,
		       threads->checkpoint_count + threads->checkpoint_count / 8);
}

uint32_t threads_note_submission(struct threads *threads, const struct launch *call)
{
	struct thread_timeline *timeline = threads_timeline(threads, call->thread);
	uint64_t since_ns = call->enter_ns > timeline->last_submit_ns
				    ? call->enter_ns - timeline->last_submit_ns
				    : 0;

	if (!timeline->last_submit_ns)
		since_ns = UINT32_MAX;
	timeline->last_submit_ns = call->enter_ns;
	return since_ns < UINT32_MAX ? (uint32_t)since_ns : UINT32_MAX;
}

void threads_add_call(struct threads *threads, const struct launch *call, uint64_t exit_ns,
		      const struct owner *owner, uint64_t *own_ns)
{
	struct thread_timeline *timeline = threads_timeline(threads, call->thread);
	const struct call_span span = {
		.from_ns = call->enter_ns,
		.until_ns = exit_ns,
		.state = threads->states[call->api],
		.call = owner ? aggregate_index(&threads->callers, owner) + 1 : 0,
	};
	size_t before = timeline->count;

	if (thread_timeline_add_call(timeline, &span, own_ns) < 0)
		xt_out_of_memory(0);
	threads->checkpoint_count += timeline->count - before;
	if (threads->checkpoint_count > threads->checkpoints_max)
		thin(threads);
}

struct item {
	struct idle_work work;
	uint32_t place; /* index of the owner: in aggregate if is_owned, otherwise in unowned */
	struct work_call call;
	uint16_t device;
	uint8_t kind; /* enum work_kind */
	bool is_owned : 1, is_collective : 1;
	uint64_t bytes;
};

static void give_share(void *context, uint32_t owner, uint64_t share_ns)
{
	struct timeline *timeline = context;

	timeline->aggregate->entries[owner].weights[WEIGHT_GPU_EXCLUSIVE] += share_ns;
}

static void add_exclusive(struct timeline *timeline, const struct item *item)
{
	exclusive_add(&timeline->exclusive[item->device], item->work.start_ns, item->work.end_ns,
		      item->place);
}

uint64_t stretch_extends(uint64_t *until_ns, const struct stretch *stretch)
{
	uint64_t from_ns = larger(stretch->start_ns, *until_ns);

	if (stretch->end_ns <= from_ns)
		return 0;
	*until_ns = stretch->end_ns;
	return stretch->end_ns - from_ns;
}

void collectives_add(struct collective_sums *sums, struct collective_sweep *sweep,
		     const struct stretch *stretch)
{
	uint64_t other_ns;

	sums->alone_ns += stretch_extends(&sweep->all_until_ns, stretch);
	if (stretch->is_collective) {
		sums->count++;
		sums->gpu_ns += stretch->end_ns - stretch->start_ns;
		return;
	}
	/* Part of it may have been counted as time of a collective alone. */
	other_ns = stretch_extends(&sweep->other_until_ns, stretch);
	sums->alone_ns -= smaller(other_ns, sums->alone_ns);
}

static void add_idle(struct timeline *timeline, const struct item *item)
{
	struct idle *idle = &timeline->idle[item->device];
	const struct idle before = *idle;
	struct owner owner = timeline->aggregate->entries[item->place].owner;
	struct stretch stretch = {
		.device = item->device,
		.is_kernel = item->kind == WORK_KERNEL,
		.is_collective = item->is_collective,
		.start_ns = item->work.start_ns,
		.end_ns = item->work.end_ns,
		.work = &item->work,
		.gap = {.exists = idle->has_run && idle->busy_until_ns < item->work.start_ns,
			.from_ns = idle->busy_until_ns,
			.before = &before,
			.parts = &timeline->idle_paths->parts},
		.call = item->call,
		.owner = &owner,
		.place = item->place,
		.bytes = item->bytes,
		.ticket = item->is_collective ? reorder_buffer_ticket(&timeline->reorder, item) : 0,
	};
	/* If recording was paused or work was lost in the gap, its cause is unknown. */
	bool is_blind = stretch.gap.exists &&
			pauses_within(timeline->pauses, stretch.gap.from_ns, stretch.start_ns);

	if (is_blind)
		timeline->paused_ns[item->device] +=
			pauses_between_ns(timeline->pauses, stretch.gap.from_ns, stretch.start_ns);
	stretch.paused_ns = timeline->paused_ns[item->device];
	if (stretch.gap.exists && !is_blind && timeline->is_damaged &&
	    idle_lacks_work(idle, &item->work)) {
		is_blind = true;
		timeline->unknown_ns += stretch.start_ns - stretch.gap.from_ns;
	}
	idle_add(idle, &item->work, stretch.gap.idle_ns);
	if (owner.leaf == LEAF_LEFT_OUT)
		return;
	stretch.gap.exists &= !is_blind;
	timeline->idle_paths->parts.count = 0;
	collectives_add(&timeline->collectives, &timeline->sweeps[item->device], &stretch);
	if (stretch.gap.exists) {
		struct owner idle_owner = owner;

		idle_owner.leaf = LEAF_IDLE;
		idle_paths_add(timeline->idle_paths, &idle_owner, stretch.gap.from_ns, &item->work,
			       stretch.gap.idle_ns);
	}
	if (timeline->listener.ran)
		timeline->listener.ran(timeline->listener.context, &stretch);
}

static void next_work(void *context, void *item, bool is_late)
{
	struct timeline *timeline = context;
	struct item *work = item;

	if (!work->is_owned)
		work->place = aggregate_index(timeline->aggregate,
					      &timeline->unowned.entries[work->place].owner);
	timeline->late_count += is_late; /* both sums accept it as far as possible */
	if (timeline->wants_exclusive)
		add_exclusive(timeline, item);
	if (timeline->wants_idle)
		add_idle(timeline, item);
}

struct timeline *timeline_new(bool wants_exclusive, bool wants_idle, struct aggregate *aggregate,
			      const struct threads *threads, const struct pauses *pauses,
			      struct idle_paths *idle_paths, struct timeline_listener listener)
{
	struct timeline *timeline = xt_calloc(1, sizeof(*timeline));

	timeline->wants_exclusive = wants_exclusive;
	timeline->wants_idle = wants_idle;
	timeline->aggregate = aggregate;
	timeline->threads = threads;
	timeline->pauses = pauses;
	timeline->idle_paths = idle_paths;
	timeline->listener = listener;
	reorder_buffer_init(&timeline->reorder, sizeof(struct item), 0, next_work, timeline);
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++) {
		timeline->exclusive[d].give = give_share;
		timeline->exclusive[d].context = timeline;
	}
	return timeline;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	reorder_buffer_free(&timeline->reorder);
	aggregate_free(&timeline->unowned);
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++)
		exclusive_free(&timeline->exclusive[d]);
	free(timeline);
}

void timeline_add(struct timeline *timeline, uint32_t device, const struct work *work,
		  const struct owner *owner, uint64_t *ticket_out)
{
	struct item item = {
		.work = {.start_ns = work->start_ns,
			 .end_ns = work->start_ns + work->duration_ns,
			 .stream = work->stream,
			 .is_copy = work->kind == WORK_COPY},
		.place = aggregate_index(&timeline->unowned, owner),
		.kind = work->kind,
		.is_collective = work->is_collective,
		.bytes = work->bytes,
		.device = (uint16_t)(device < TIMELINE_DEVICES_MAX ? device
								   : TIMELINE_DEVICES_MAX - 1),
	};

	if (item.work.end_ns < item.work.start_ns)
		item.work.end_ns = UINT64_MAX;
	reorder_buffer_push(&timeline->reorder, work->start_ns, &item, ticket_out);
}

void timeline_set_owner(struct timeline *timeline, uint64_t ticket, const struct launch *launch,
			uint32_t place)
{
	struct item *item = reorder_buffer_item(&timeline->reorder, ticket);

	if (!item)
		return;
	item->place = place;
	item->is_owned = true;
	if (!launch)
		return;
	item->work.has_call = true;
	item->work.enter_ns = launch->enter_ns;
	item->work.since_ns = launch->since_ns;
	item->call = (struct work_call){launch->callsite, launch->before, launch->number,
					launch->flags & LAUNCH_GRAPH ? launch->duration_ns : 0};
	item->work.thread = threads_timeline(timeline->threads, launch->thread);
}

uint64_t timeline_finish(struct timeline *timeline)
{
	uint64_t missed_count;

	reorder_buffer_finish(&timeline->reorder);
	missed_count = timeline->late_count;
	for (size_t d = 0; d < TIMELINE_DEVICES_MAX; d++) {
		exclusive_finish(&timeline->exclusive[d]);
		missed_count += timeline->exclusive[d].dropped_count;
	}
	if (timeline->wants_idle)
		idle_paths_finish(timeline->idle_paths, timeline->listener.moved,
				  timeline->listener.context);
	return missed_count;
}
