/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the spans of a timeline from the events of logs: calls, work, NVTX ranges, CPU samples and
 * counters.
 *
 * A pop ends the innermost pushed range of its thread and domain. Any thread may end a started
 * range, and such an end may come earlier in the log than the start. It waits for the start then.
 *
 * Samples of a thread become nested slices of time: one slice for each frame, the CUDA function and
 * the state. A slice continues while consecutive samples share it and all outer ones. So slices of
 * a thread never overlap without nesting.
 */
#include "merge/tracks/tracks.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/read/rows.h"
#include "merge/base/labels.h"
#include "merge/naming/joined_paths.h"
#include "merge/read/ranges.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/exporter.h"
#include "merge/sums/memory.h"

#define SEARCH_MAX     4096 /* open ranges to search for the one that ends */
#define RANGE_ARGS_MAX 4

/* A row of RANGE. */
struct range {
	uint64_t time_ns, key, payload;
	uint32_t payload_type; /* NVTX's */
	uint32_t category, color, domain, thread;
	uint32_t values, end_values; /* XT_STRING_ID: given at the begin and at the end */
	uint32_t name;		     /* in paths */
	struct track *track;
	bool is_async;
};

struct range_list {
	struct range *rows; /* in the order of their begins */
	size_t count, capacity;
};

/* The ranges of a domain in a thread. */
struct domain_track {
	uint32_t thread, domain;
	struct track *track;
};

struct track_ranges {
	struct range_list *pushed; /* by XT_THREAD_ID */
	size_t thread_count;
	struct range_list started, ended; /* ended: before their start was read */
	struct domain_track *domains;
	size_t domain_count, domain_capacity;
};

static void begin_ranges(struct tracks *t)
{
	t->log.ranges = xt_calloc(1, sizeof(*t->log.ranges));
	t->log.ranges->thread_count = t->process->model->threads.count;
	t->log.ranges->pushed =
		xt_calloc(t->log.ranges->thread_count, sizeof(*t->log.ranges->pushed));
}

static void free_ranges(struct tracks *t)
{
	struct track_ranges *r = t->log.ranges;

	if (!r)
		return;
	for (size_t i = 0; i < r->thread_count; i++)
		free(r->pushed[i].rows);
	free_all(r->pushed, r->started.rows, r->ended.rows, r->domains, r);
}

static struct track *track_of_domain(struct tracks *t, const struct range *range)
{
	struct track_ranges *r = t->log.ranges;
	struct names *names = t->process->names->shown;
	uint32_t name;

	for (size_t d = 0; d < r->domain_count; d++)
		if (r->domains[d].thread == range->thread && r->domains[d].domain == range->domain)
			return r->domains[d].track;
	name = range->domain ? range_label(names, t->process->model, 0, range->domain, "NVTX ", "")
			     : names_intern(names, "NVTX", strlen("NVTX"));
	xt_grow(r->domains, r->domain_capacity, r->domain_count + 1);
	r->domains[r->domain_count] = (struct domain_track){
		.thread = range->thread,
		.domain = range->domain,
		.track = tracks_add_to_thread(t, range->thread, TRACK_RANGES,
					      names_text(names, name, NULL)),
	};
	return r->domains[r->domain_count++].track;
}

/* Sets what the begin of a range defines. */
static void open_range(struct tracks *t, const struct xt_row_range *row, struct range *range)
{
	range->track =
		t->writer->is_flat ? tracks_thread(t, range->thread) : track_of_domain(t, range);
	range->name = range_label(t->process->names->shown, t->process->model, range->domain,
				  id_or_none(row->text), "", "");
	range->payload = row->payload;
	range->payload_type = id_or_none(row->payload_type);
	range->category = id_or_none(row->category);
	range->color = id_or_none(row->color);
}

/* Sets the argument for a payload. Returns false if it is not numeric. */
static bool payload_arg(const struct range *range, struct track_arg *arg)
{
	struct range_number payload = range_number_of(range->payload, range->payload_type);

	arg_number(arg, ARG_PAYLOAD, payload.bits);
	if (payload.kind == RANGE_SIGNED) {
		arg->type = ARG_SIGNED;
	} else if (payload.kind != RANGE_UNSIGNED) {
		arg->type = ARG_REAL;
		arg->digits = payload.kind == RANGE_DOUBLE ? 17 : 9;
	}
	return payload.kind != RANGE_NO_NUMBER;
}

static uint8_t range_args(struct tracks *t, const struct range *range,
			  struct track_arg args[RANGE_ARGS_MAX])
{
	uint8_t count = 0;

	if (range->category)
		args[count++] = (struct track_arg){
			.key = ARG_CATEGORY,
			.type = ARG_NAME,
			.name = range_category(t->process->names->shown, t->process->model,
					       range->domain, range->category)};
	if (range->values || range->end_values)
		args[count++] = (struct track_arg){.key = ARG_VALUES,
						   .type = ARG_PAIRS,
						   .pairs = {range->values, range->end_values}};
	count += payload_arg(range, &args[count]);
	if (range->color)
		args[count++] = (struct track_arg){
			.key = ARG_COLOR, .type = ARG_ARGB, .number = range->color};
	return count;
}

enum part { RANGE_BEGINS, RANGE_ENDS, RANGE_MARK };

/* Passes a range to the writer. */
static void put_range(struct tracks *t, const struct range *range, enum part part, uint64_t end_ns)
{
	struct track_arg args[RANGE_ARGS_MAX];
	struct track_span span = {
		.track = range->track,
		.start_ns = range->time_ns,
		.args = args,
		.arg_count = range_args(t, range, args),
		.key = range->key,
		.name = range->name,
		.thread = range->thread,
		.category = CATEGORY_NVTX,
		.is_async = range->is_async,
	};

	if (part == RANGE_MARK)
		t->writer->instant(t, &span);
	else if (part == RANGE_ENDS)
		t->writer->end(t, &span, end_ns);
	else if (t->writer->begin)
		t->writer->begin(t, &span);
}

static void keep_range(struct range_list *list, const struct range *range)
{
	xt_append(list->rows, list->count, list->capacity, *range);
}

/* Returns the place of the latest row with the same key, or domain; 0: none. */
static size_t find_range(const struct range_list *list, const struct range *like)
{
	size_t least = list->count > SEARCH_MAX ? list->count - SEARCH_MAX : 0;

	for (size_t i = list->count; i > least; i--)
		if (like->is_async ? list->rows[i - 1].key == like->key
				   : list->rows[i - 1].domain == like->domain)
			return i;
	return 0;
}

static struct range take_out(struct range_list *list, size_t place)
{
	struct range range = list->rows[place - 1];

	memmove(&list->rows[place - 1], &list->rows[place],
		(list->count - place) * sizeof(*list->rows));
	list->count--;
	return range;
}

static void end_range(struct tracks *t, struct range *range, const struct range *end)
{
	range->end_values = end->values;
	put_range(t, range, RANGE_ENDS, end->time_ns);
}

static void pop_range(struct tracks *t, const struct range *popped)
{
	struct range_list *pushed = &t->log.ranges->pushed[popped->thread];
	size_t place = find_range(pushed, popped);
	bool nests = place == pushed->count;
	struct range range;

	if (!place)
		return;
	range = take_out(pushed, place);
	if (!nests)
		range.track = track_of_domain(t, &range);
	end_range(t, &range, popped);
}

static void start_range(struct tracks *t, struct range *range)
{
	struct track_ranges *r = t->log.ranges;
	size_t place = find_range(&r->ended, range);
	struct range ended;

	put_range(t, range, RANGE_BEGINS, 0);
	if (!place) {
		keep_range(&r->started, range);
		return;
	}
	ended = take_out(&r->ended, place);
	end_range(t, range, &ended);
}

static void end_started(struct tracks *t, const struct range *end)
{
	struct track_ranges *r = t->log.ranges;
	size_t place = find_range(&r->started, end);
	struct range range;

	if (!place) {
		if (r->ended.count == SEARCH_MAX)
			take_out(&r->ended, 1);
		keep_range(&r->ended, end);
		return;
	}
	range = take_out(&r->started, place);
	end_range(t, &range, end);
}

void tracks_range(struct sink *sink, const struct process *process, const struct xt_row_range *row)
{
	struct tracks *t = sink->state;
	uint64_t operation = row->operation;
	struct range range = {
		.time_ns = row->time_ns,
		.key = row->key,
		.values = id_or_none(row->values),
		.domain = id_or_none(row->domain),
		.thread = id_or_none(row->thread),
		.is_async = operation == XT_RANGE_START || operation == XT_RANGE_END,
	};

	if (!t->log.ranges)
		begin_ranges(t);
	if (range.thread >= t->log.ranges->thread_count ||
	    !process->model->threads.rows[range.thread].tid)
		range.thread = 0;
	if (operation == XT_RANGE_PUSH || operation == XT_RANGE_START || operation == XT_RANGE_MARK)
		open_range(t, row, &range);
	switch (operation) {
	case XT_RANGE_PUSH:
		put_range(t, &range, RANGE_BEGINS, 0);
		keep_range(&t->log.ranges->pushed[range.thread], &range);
		break;
	case XT_RANGE_POP:
		pop_range(t, &range);
		break;
	case XT_RANGE_START:
		start_range(t, &range);
		break;
	case XT_RANGE_END:
		end_started(t, &range);
		break;
	case XT_RANGE_MARK:
		put_range(t, &range, RANGE_MARK, 0);
		break;
	}
}

/* Ends the ranges that have no end in the log. */
static void end_ranges(struct tracks *t)
{
	struct track_ranges *r = t->log.ranges;

	for (size_t i = 0; r && i < r->thread_count; i++)
		for (size_t n = 0; n < r->pushed[i].count; n++)
			put_range(t, &r->pushed[i].rows[n], RANGE_ENDS, SPAN_OPEN);
	for (size_t i = 0; r && i < r->started.count; i++)
		put_range(t, &r->started.rows[i], RANGE_ENDS, SPAN_OPEN);
}

#define SAMPLE_ARGS_MAX 3

struct slice {
	uint32_t name; /* in paths */
	uint64_t from_ns;
	bool is_innermost; /* the fields below are only set then */
	uint8_t state;	   /* enum xt_cpu_state */
	uint32_t node;	   /* path of the stack, PATH_ROOT: unknown */
	uint32_t wait_pid, wait_tid;
};

struct slices {
	struct slice *rows; /* outermost first */
	size_t count, capacity;
};

struct track_samples {
	struct track *track; /* of the open slices; NULL: none */
	uint32_t tid;
	struct slices open, next; /* next: of the sample that is added */
	uint64_t until_ns;	  /* to which the open slices extend */
	uint32_t *chain;	  /* for paths_chain() */
	size_t chain_capacity;
};

static void add_name(struct slices *slices, uint32_t name)
{
	xt_append(slices->rows, slices->count, slices->capacity, (struct slice){.name = name});
}

/* Lists the frames of a stack. */
static void list_frames(struct track_samples *s, const struct paths *paths, uint32_t node)
{
	int depth = paths_chain(paths, node, &s->chain, &s->chain_capacity);

	for (int d = 0; d < depth; d++)
		add_name(&s->next, paths->nodes[s->chain[d]].name);
}

/* Returns the path of a stack; PATH_ROOT: unknown. */
static uint32_t node_of(const struct frames *frames, uint32_t stack)
{
	return stack && frames_has_stack(frames, stack) ? joined_paths_node(frames, stack)
							: PATH_ROOT;
}

/* Lists the slices of a sample. */
static void list_next(struct track_samples *s, const struct process *process,
		      const struct cpu_sample *sample)
{
	const struct frames *frames = process->frames;
	uint32_t stack = frames_has_stack(frames, sample->stack) ? sample->stack : 0;
	uint32_t node = node_of(frames, stack);
	struct slice *last;
	const char *label;

	s->next.count = 0;
	if (stack)
		list_frames(s, process->paths, node);
	if (frames_knows_api(frames, stack, MODEL_API_UNKNOWN))
		add_name(&s->next, frames_api_name(frames, stack, MODEL_API_UNKNOWN));
	label = cpu_sample_label((enum xt_cpu_state)sample->state, s->next.count);
	if (label)
		add_name(&s->next, names_intern(process->names->shown, label, strlen(label)));
	last = &s->next.rows[s->next.count - 1];
	last->is_innermost = true;
	last->state = sample->state;
	last->node = node;
	last->wait_pid = sample->wait_tid ? sample->wait_pid : 0;
	last->wait_tid = sample->wait_tid;
}

static bool is_same_slice(const struct slice *a, const struct slice *b)
{
	return a->name == b->name && a->is_innermost == b->is_innermost && a->state == b->state &&
	       a->node == b->node && a->wait_pid == b->wait_pid && a->wait_tid == b->wait_tid;
}

static uint8_t slice_args(struct tracks *t, const struct slice *slice,
			  struct track_arg args[SAMPLE_ARGS_MAX])
{
	const char *state = cpu_state_name((enum xt_cpu_state)slice->state);

	if (t->writer->is_compact) {
		arg_interned(t, &args[0], ARG_STATE,
			     slice->wait_tid ? xt_asprintf("%s, waits for thread %u of process %u",
							   state, slice->wait_tid, slice->wait_pid)
					     : xt_strdup(state));
		return 1;
	}
	arg_text(&args[0], ARG_STATE, state);
	arg_number(&args[1], ARG_WAIT_PID, slice->wait_pid);
	arg_number(&args[2], ARG_WAIT_TID, slice->wait_tid);
	return slice->wait_tid ? 3 : 1;
}

/* Passes a slice to the writer. until_ns 0: it begins. */
static void put_slice(struct tracks *t, const struct slice *slice, uint64_t until_ns)
{
	struct track_arg args[SAMPLE_ARGS_MAX];
	struct track_span span = {
		.track = t->log.samples->track,
		.start_ns = slice->from_ns,
		.name = slice->name,
		.category = CATEGORY_CPU,
	};

	if (slice->is_innermost) {
		span.args = args;
		span.arg_count = slice_args(t, slice, args);
		span.node = slice->node;
	}
	if (until_ns)
		t->writer->end(t, &span, until_ns);
	else if (t->writer->begin)
		t->writer->begin(t, &span);
}

/* Ends the open slices from this depth on, the innermost first. */
static void close_to(struct tracks *t, size_t depth)
{
	struct track_samples *s = t->log.samples;

	while (s->open.count > depth)
		put_slice(t, &s->open.rows[--s->open.count], s->until_ns);
}

static void open_next(struct tracks *t, uint64_t from_ns)
{
	struct track_samples *s = t->log.samples;

	xt_grow(s->open.rows, s->open.capacity, s->next.count);
	while (s->open.count < s->next.count) {
		struct slice *slice = &s->open.rows[s->open.count];

		*slice = s->next.rows[s->open.count++];
		slice->from_ns = from_ns;
		put_slice(t, slice, 0);
	}
}

/* Ends all open slices. */
static void end_samples(struct tracks *t)
{
	if (!t->log.samples)
		return;
	close_to(t, 0);
	t->log.samples->track = NULL;
}

void tracks_sample(struct sink *sink, const struct process *process,
		   const struct cpu_sample *sample)
{
	struct tracks *t = sink->state;
	struct cpu_cover cover = sample->cover;
	struct track_samples *s = t->log.samples;
	size_t shared = 0;

	if (t->writer->sample)
		return t->writer->sample(t, sample);
	if (!s)
		s = t->log.samples = xt_calloc(1, sizeof(*s));
	if (s->tid != sample->tid)
		end_samples(t);
	if (!s->track)
		s->track = tracks_add_to_thread(t, sample->thread, TRACK_SAMPLES, "CPU samples");
	s->tid = sample->tid;
	/* Damaged logs have samples that overlap. */
	if (s->open.count && cover.from_ns < s->until_ns)
		cover.from_ns = s->until_ns;
	if (cover.until_ns <= cover.from_ns)
		return;
	list_next(s, process, sample);
	if (cover.from_ns == s->until_ns)
		while (shared < s->open.count && shared < s->next.count &&
		       is_same_slice(&s->open.rows[shared], &s->next.rows[shared]))
			shared++;
	close_to(t, shared);
	open_next(t, cover.from_ns);
	s->until_ns = cover.until_ns;
}

static void free_samples(struct tracks *t)
{
	if (!t->log.samples)
		return;
	free_all(t->log.samples->open.rows, t->log.samples->next.rows, t->log.samples->chain,
		 t->log.samples);
}

#define CALL_ARGS_MAX  2
#define WORK_ARGS_MAX  4
#define LABEL_ARGS_MAX 6

void tracks_begin(struct sink *sink, const struct track_writer *writer)
{
	struct tracks *t = sink->state;

	t->writer = writer;
	t->next_number = TRACK_NUMBERS_FIRST;
	names_init(&t->texts);
}

static void end_log(struct tracks *t)
{
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		for (size_t i = 0; i < t->log.label_counts[kind]; i++)
			free_all(t->log.labels[kind][i].args, t->log.labels[kind][i].text);
		free(t->log.labels[kind]);
	}
	free_ranges(t);
	free_samples(t);
	tracks_end_log(t);
}

void tracks_free(struct sink *sink)
{
	struct tracks *t = sink->state;

	end_log(t);
	tracks_free_all(t);
	names_free(&t->texts);
}

void tracks_process(struct sink *sink, const struct process *process)
{
	struct tracks *t = sink->state;

	end_log(t);
	t->sink = sink;
	tracks_begin_log(t, process);
	t->log.label_counts[WORK_KERNEL] = process->model->shapes.count;
	t->log.label_counts[WORK_COPY] = process->model->copy_shapes.count;
	t->log.label_counts[WORK_MEMSET] = MEMORY_KINDS;
	for (int kind = 0; kind < WORK_KINDS; kind++)
		t->log.labels[kind] =
			xt_calloc(t->log.label_counts[kind], sizeof(*t->log.labels[kind]));
}

void tracks_process_end(struct sink *sink, const struct process *process)
{
	if (process->cpu)
		end_samples(sink->state);
	else
		end_ranges(sink->state);
}

/*
 * Returns the number of the flow from a call to its work; 0 if calls of its API make none. A call
 * that need not have work may still have some: LAUNCH_EXPECTED does not tell.
 */
static uint64_t flow_of(const struct process *process, const struct launch *call)
{
	uint32_t class = process->model->apis.rows[call->api].class;

	if (class < XT_API_LAUNCH || class > XT_API_SET)
		return 0;
	return (process->index + 1) << 48 ^ call->correlation;
}

void tracks_call(struct sink *sink, const struct process *process, const struct launch *call,
		 uint64_t duration_ns, uint64_t result)
{
	struct tracks *t = sink->state;
	struct track_arg args[CALL_ARGS_MAX];
	struct track_span span = {
		.start_ns = call->enter_ns,
		.duration_ns = duration_ns,
		.args = args,
		.category = CATEGORY_API,
	};

	if (t->writer->call)
		return t->writer->call(t, call, duration_ns, result);
	span.track = tracks_thread(t, call->thread);
	span.flow = flow_of(process, call);
	span.name = frames_api_name(process->frames, call->stack, call->api);
	span.node = node_of(process->frames, call->stack);
	if (!t->writer->is_compact)
		arg_number(&args[span.arg_count++], ARG_CORRELATION, call->correlation);
	if (result)
		arg_number(&args[span.arg_count++], ARG_ERROR, result);
	t->writer->span(t, &span);
}

static uint8_t kernel_args(struct tracks *t, uint32_t id, const struct track_label *label,
			   struct track_arg args[LABEL_ARGS_MAX])
{
	const struct shape *shape = &t->process->model->shapes.rows[id];
	struct demangle_cache *names = t->process->names;
	const uint32_t *grid = shape->grid, *block = shape->block;
	uint8_t count = 0;
	uint32_t full;

	if (t->writer->is_compact) {
		arg_interned(
			t, &args[0], ARG_LAUNCH,
			xt_asprintf(
				"grid %ux%ux%u, block %ux%ux%u, %u registers, %llu + %llu bytes "
				"shared",
				grid[0], grid[1], grid[2], block[0], block[1], block[2],
				shape->registers, (unsigned long long)shape->static_shared_bytes,
				(unsigned long long)shape->dynamic_shared_bytes));
		return 1;
	}
	full = demangle(names, model_kernel_name(t->process->model, id), DEMANGLE_FULL);
	/* The name may be shortened. */
	if (full != label->name)
		arg_name(&args[count++], ARG_FUNCTION, full);
	args[count++] = (struct track_arg){
		.key = ARG_GRID, .type = ARG_SIZES, .sizes = {grid[0], grid[1], grid[2]}};
	args[count++] = (struct track_arg){
		.key = ARG_BLOCK, .type = ARG_SIZES, .sizes = {block[0], block[1], block[2]}};
	arg_number(&args[count++], ARG_REGISTERS, shape->registers);
	arg_number(&args[count++], ARG_STATIC_SHARED, shape->static_shared_bytes);
	arg_number(&args[count++], ARG_DYNAMIC_SHARED, shape->dynamic_shared_bytes);
	return count;
}

static uint8_t copy_args(struct tracks *t, uint32_t id, struct track_arg args[LABEL_ARGS_MAX])
{
	const struct copy_shape *shape = &t->process->model->copy_shapes.rows[id];
	bool is_peer = shape->from_device && shape->to_device;
	uint32_t from = shape->from_device - 1, to = shape->to_device - 1;
	const char *source = memory_kind_label(shape->source);
	const char *destination = memory_kind_label(shape->destination);
	const char *how = shape->is_async ? "asynchronous" : "synchronous";

	if (t->writer->is_compact) {
		arg_interned(t, &args[0], ARG_COPY,
			     is_peer ? xt_asprintf("%s to %s, %s, GPU %u to GPU %u", source,
						   destination, how, from, to)
				     : xt_asprintf("%s to %s, %s", source, destination, how));
		return 1;
	}
	arg_text(&args[0], ARG_SOURCE, source);
	arg_text(&args[1], ARG_DESTINATION, destination);
	args[2] = (struct track_arg){
		.key = ARG_ASYNCHRONOUS, .type = ARG_BOOL, .number = shape->is_async};
	arg_number(&args[3], ARG_FROM_DEVICE, from);
	arg_number(&args[4], ARG_TO_DEVICE, to);
	return is_peer ? 5 : 3;
}

/* Returns what the work shares with other work of its shape, made on first use. */
static struct track_label *label_of(struct tracks *t, const struct work *work)
{
	uint32_t id = work->shape < t->log.label_counts[work->kind] ? work->shape : 0;
	struct track_label *label = &t->log.labels[work->kind][id];
	const char *memory;

	if (label->args)
		return label;
	label->name = track_work_name(t->process, work->kind, id);
	label->args = xt_calloc(LABEL_ARGS_MAX, sizeof(*label->args));
	if (work->kind == WORK_KERNEL) {
		label->arg_count = kernel_args(t, id, label, label->args);
	} else if (work->kind == WORK_COPY) {
		label->arg_count = copy_args(t, id, label->args);
	} else {
		memory = memory_kind_label(id);
		if (t->writer->is_compact)
			arg_interned(t, &label->args[0], ARG_COPY, xt_strdup(memory));
		else
			arg_text(&label->args[0], ARG_MEMORY, memory);
		label->arg_count = 1;
	}
	return label;
}

static uint8_t work_args(const struct tracks *t, const struct work *work,
			 struct track_arg args[WORK_ARGS_MAX])
{
	bool is_full = !t->writer->is_compact;
	uint8_t count = 0;

	if (is_full)
		arg_number(&args[count++], ARG_CORRELATION, work->correlation);
	if (is_full && work->graph_node)
		arg_number(&args[count++], ARG_GRAPH_NODE, work->graph_node);
	if (work->kind == WORK_KERNEL)
		return count;
	arg_number(&args[count++], ARG_BYTES, work->bytes);
	if (!is_full || !work->duration_ns)
		return count;
	/* Bytes per nanosecond are gigabytes per second. */
	arg_number(&args[count], ARG_BANDWIDTH,
		   (uint64_t)((unsigned __int128)work->bytes * 1000 / work->duration_ns));
	args[count++].type = ARG_THOUSANDTHS;
	return count;
}

static void put_work(struct tracks *t, const struct work *work, const struct launch *launch)
{
	static const uint8_t categories[WORK_KINDS] = {[WORK_KERNEL] = CATEGORY_KERNEL,
						       [WORK_COPY] = CATEGORY_COPY,
						       [WORK_MEMSET] = CATEGORY_MEMSET};
	struct track_label *label = label_of(t, work);
	struct track *track = tracks_lane(t, work);
	struct track_arg args[WORK_ARGS_MAX];
	struct track_span span = {
		.label = label,
		.track = track,
		.start_ns = work->start_ns,
		.duration_ns = work->duration_ns,
		.args = args,
		.launch = launch,
		.flow = launch ? flow_of(t->process, launch) : 0,
		.name = label->name,
		.node = launch ? node_of(t->process->frames, launch->stack) : PATH_ROOT,
		.category = categories[work->kind],
	};

	span.arg_count = work_args(t, work, args);
	t->writer->span(t, &span);
}

void tracks_work(struct sink *sink, const struct process *process, const struct work *work,
		 const struct launch *launch)
{
	struct tracks *t = sink->state;

	(void)process;
	if (t->writer->work)
		return t->writer->work(t, work, launch);
	put_work(t, work, launch);
}

void tracks_memory(struct sink *sink, const struct process *process, uint32_t pool,
		   uint64_t time_ns, uint64_t live_bytes)
{
	static const struct track_counter allocated = {"allocated memory", "memory", "bytes"};
	struct tracks *t = sink->state;
	struct track **track = &t->log.memory[pool];

	(void)process;
	if (!*track)
		*track = tracks_add(t, &(struct track){
					       .kind = TRACK_COUNTER,
					       .parent = pool == MEMORY_POOL_HOST
								 ? t->root
								 : tracks_device(t, pool),
					       .name = allocated.name,
					       .counter = &allocated,
				       });
	t->writer->counter(t, *track, time_ns, live_bytes);
}
