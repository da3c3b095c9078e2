/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of events, and of what they refer to: call paths, shapes, idle gaps and collectives.
 *
 * A path has the line of the user's code: that of the innermost frame that is marked as such. The
 * name of a frame without a line, such as "step", may belong to several lines. Then the stack
 * decides. If several stacks end at one path, the one with the most time wins.
 *
 * Sums over the rows of collectives are those of the summary, to the nanosecond: both round the
 * wait of each rank in each collective.
 */
#include "merge/export/sqlite/sqlite_events.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "merge/base/labels.h"
#include "base/text.h"
#include "merge/naming/joined_paths.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/read/ranges.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"
#include "merge/sums/path_tables.h"
#include "merge/sums/timeline.h"
#include "merge/tracks/track_state.h"

#define KIND_FRAME "frame"
#define KIND_CALL  "call"
#define KIND_IDLE  "idle"
#define KIND_STATE "state"
#define STACKS	   2 /* the creation of a graph node, and the call */

#define PATH_COLUMNS  10 /* of the table path, besides its weights */
#define SHAPE_COLUMNS 17

/* Keep the first error, as for write errors. */
void sqlite_note_error(struct sink *sink, int result)
{
	if (result == SQLITE_OK || result == SQLITE_DONE || sink->out.error)
		return;
	switch (result & 0xff) {
	case SQLITE_FULL:
		sink->out.error = -ENOSPC;
		break;
	case SQLITE_NOMEM:
		xt_out_of_memory(0);
	default:
		sink->out.error = -EIO;
	}
}

static void bind_clean(sqlite3_stmt *statement, int column, const char *text)
{
	size_t length = strlen(text);
	char *clean = xt_malloc(text_clean_bound(length) + 1);

	length = text_clean(clean, text, length, '\0');
	sqlite3_bind_text(statement, column, clean, (int)length, free);
}

void sqlite_put(struct sink *sink, enum sqlite_table table, const struct sqlite_value *values,
		size_t count)
{
	sqlite3_stmt *statement = ((struct sqlite *)sink->state)->statements[table];

	if (sink->out.error)
		return;
	for (size_t v = 0; v < count; v++) {
		int column = (int)v + 1;

		if (values[v].type == VALUE_NUMBER)
			sqlite3_bind_int64(statement, column, values[v].number);
		else if (values[v].type == VALUE_REAL)
			sqlite3_bind_double(statement, column, values[v].real);
		else if (values[v].type == VALUE_TEXT)
			sqlite3_bind_text(statement, column, values[v].text, values[v].length,
					  SQLITE_TRANSIENT);
		else if (values[v].type == VALUE_RAW)
			bind_clean(statement, column, values[v].text);
		else
			sqlite3_bind_null(statement, column);
	}
	sqlite_note_error(sink, sqlite3_step(statement));
	sqlite3_reset(statement);
}

/* Facts about the path that ends at a node. */
struct path_facts {
	const char *kind;	/* NULL: nothing ends here */
	struct frame_line line; /* line 0: unknown */
	uint64_t weight;	/* of the stack that the line is from */
	uint64_t alloc_count;
};

static struct path_facts *facts_of(struct sqlite *s, uint32_t node)
{
	xt_grow(s->facts, s->fact_capacity, (size_t)node + 1);
	return &s->facts[node];
}

/* Returns the line of the function with this name at an address; NULL if there is none. */
static const struct place *place_at(const struct process *process, uint32_t a, uint32_t name)
{
	const struct address *address = &process->frames->addresses->list[a];
	const struct place *places = process->frames->addresses->places.list;
	size_t end = address->first_place + address->place_count;

	for (size_t p = address->first_place; p < end; p++) {
		uint32_t shown = p + 1 < end ? process->frames->place_names[p]
					     : process->frames->address_names[a];

		if (shown == name + 1 && places[p].line)
			return &places[p];
	}
	return NULL;
}

/* Finds the line of the innermost frame with this name in a stack. */
static void line_in_stack(const struct process *process, uint32_t stack, uint32_t name,
			  struct frame_line *line_out)
{
	const struct names *texts = &process->model->names;
	struct path_items list = {0};
	const struct place *place = NULL;

	if (line_out->line || !frames_has_stack(process->frames, stack))
		return;
	joined_paths_list(process->frames, stack, &list);
	for (size_t i = list.count; i-- && !place;)
		if (list.items[i].kind == MERGED_NATIVE)
			place = place_at(process, list.items[i].value, name);
	free(list.items);
	if (!place)
		return;
	line_out->file = clean_name(process->names->shown, names_text(texts, place->file, NULL));
	line_out->line = place->line;
}

/* Returns the line of the user's code of a path with these stacks; line 0: it is unknown. */
static struct frame_line find_line(const struct process *process, uint32_t node,
				   const uint32_t stacks[STACKS])
{
	const struct paths *paths = process->paths;
	uint32_t name = path_own_frame(paths, node, MARK_USER_FILE);
	struct frame_line line = {0};

	if (name == NAME_EMPTY)
		return line;
	if (paths_line(paths, name)->line != LINE_SEVERAL)
		return *paths_line(paths, name);
	for (int i = 0; i < STACKS; i++)
		line_in_stack(process, stacks[i], name, &line);
	return line;
}

/* Sets what ends at a node. Work and idle time come before the calls and frames around them. */
static void set_kind(struct path_facts *facts, const char *kind)
{
	bool is_outer = !strcmp(kind, KIND_FRAME) || !strcmp(kind, KIND_CALL);

	if (!facts->kind || !is_outer ||
	    (!strcmp(facts->kind, KIND_FRAME) && !strcmp(kind, KIND_CALL)))
		facts->kind = kind;
}

static void add_facts(struct sqlite *s, uint32_t node, const char *kind, struct frame_line line,
		      uint64_t weight)
{
	struct path_facts *facts = facts_of(s, node);

	set_kind(facts, kind);
	if (!line.line || (facts->line.line && weight <= facts->weight))
		return;
	facts->line = line;
	facts->weight = weight;
}

/* The path of a call, or NULL if it is unknown. */
static struct sqlite_value stack_value(struct sink *sink, const struct process *process,
				       uint32_t stack)
{
	struct sqlite *s = sink->state;
	uint32_t node;

	if (!frames_has_stack(process->frames, stack))
		return SQLITE_ABSENT;
	node = joined_paths_node(process->frames, stack);
	if (!facts_of(s, node)->kind)
		add_facts(s, node, KIND_FRAME,
			  find_line(process, node, (const uint32_t[STACKS]){0, stack}), 0);
	return sqlite_number(node);
}

static const char *kind_of(const struct process *process, const struct owner *owner)
{
	static const char *const kinds[] = {
		[LEAF_CALL] = KIND_CALL, [LEAF_KERNEL] = "kernel", [LEAF_COPY] = "copy",
		[LEAF_MEMSET] = "set",	 [LEAF_MEMORY] = "memory", [LEAF_IDLE] = KIND_IDLE,
		[LEAF_CPU] = KIND_STATE, [LEAF_NODE] = "kernel",
	};
	const struct model *model = process->model;

	if (owner->leaf == LEAF_KERNEL && owner->what < model->shapes.count &&
	    model->shapes.rows[owner->what].is_collective)
		return "collective";
	if (owner->leaf == LEAF_CPU &&
	    !cpu_sample_label((enum xt_cpu_state)owner->what, owner->stack))
		return frames_knows_api(process->frames, owner->stack, MODEL_API_UNKNOWN)
			       ? KIND_CALL
			       : KIND_FRAME;
	return kinds[owner->leaf];
}

/* The path without its last frames, if these are work, idle time, memory or a state. */
static uint32_t stack_of(const struct paths *paths, uint32_t node, const char *kind)
{
	uint32_t last = node;

	if (!strcmp(kind, KIND_FRAME) || !strcmp(kind, KIND_CALL))
		return node;
	if (!strcmp(kind, KIND_IDLE))
		last = path_of_idle_class(paths, node);
	return paths->nodes[last].parent == PATH_ROOT ? last : paths->nodes[last].parent;
}

static const char *stack_kind(const struct process *process, const struct owner *owner)
{
	return owner->leaf == LEAF_CPU &&
			       !frames_knows_api(process->frames, owner->stack, MODEL_API_UNKNOWN)
		       ? KIND_FRAME
		       : KIND_CALL;
}

void sqlite_add_path(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node)
{
	struct sqlite *s = sink->state;
	const struct owner *owner = &total->owner;
	const struct nodes *nodes = &process->model->nodes;
	const uint32_t stacks[STACKS] = {
		owner->creation ? nodes->creations.list[owner->creation].stack : 0,
		owner->stack,
	};
	const char *kind = kind_of(process, owner);
	uint32_t stack = stack_of(process->paths, node, kind);
	struct frame_line line = find_line(process, node, stacks);
	uint64_t weight = 0;

	for (int w = 0; w < WEIGHTS; w++)
		weight += weight_specs[w].is_time ? total->weights[w] : 0;
	add_facts(s, node, kind, line, weight);
	facts_of(s, node)->alloc_count += total->alloc_count;
	if (stack == node)
		return;
	/* The innermost line of idle time may be in its CPU frames. */
	if (owner->leaf == LEAF_IDLE)
		line = find_line(process, stack, stacks);
	add_facts(s, stack, stack_kind(process, owner), line, weight);
}

/*
 * Notes a path that ranks wait for. If no work of a log ends there, its line is known unless
 * several lines have its name.
 */
static void add_cause(struct sink *sink, const struct paths *paths, uint32_t node)
{
	static const char *const kinds[][2] = {
		{"kernel", "kernel"}, {"collective", "collective"}, {"copy", "copy"},
		{"memset", "set"},    {"idle", KIND_IDLE},
	};
	struct sqlite *s = sink->state;
	struct path_facts *facts = facts_of(s, node);
	const char *kind = wait_cause_kind(paths, node);
	uint32_t name = path_own_frame(paths, node, MARK_USER_FILE);

	if (facts->kind)
		return;
	facts->kind = KIND_FRAME;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (!strcmp(kind, kinds[k][0]))
			facts->kind = kinds[k][1];
	if (name != NAME_EMPTY && paths_line(paths, name)->line != LINE_SEVERAL)
		facts->line = *paths_line(paths, name);
}

static void put_path(struct sink *sink, const struct paths *paths, uint32_t n,
		     const struct path_facts *facts)
{
	const struct path_node *node = &paths->nodes[n];
	struct sqlite_value values[PATH_COLUMNS + WEIGHTS] = {
		sqlite_number(n),
		sqlite_known(node->parent != PATH_ROOT, node->parent),
		sqlite_number(node->name),
	};
	struct sqlite_value *after = &values[7 + WEIGHTS];
	char *text = NULL;
	uint32_t own = facts->kind ? path_own_frame(paths, n, MARKS_USER) : NAME_EMPTY;
	size_t length;

	if (facts->kind) {
		text = paths_text(paths, n, &length);
		values[3] = SQLITE_VALUE(TEXT, .length = (int)length, .text = text);
		values[4] = sqlite_text(facts->kind);
		after[1] = sqlite_number(stack_of(paths, n, facts->kind));
	}
	if (facts->kind && facts->line.line) {
		values[5] = sqlite_text(names_text(&paths->names, facts->line.file, NULL));
		values[6] = sqlite_number(facts->line.line);
	}
	for (int w = 0; w < WEIGHTS; w++)
		values[7 + w] = sqlite_limited(node->weights[w]);
	after[0] = sqlite_limited(facts->alloc_count);
	after[2] = sqlite_known(own != NAME_EMPTY, own);
	sqlite_put(sink, TABLE_PATH, values, sizeof(values) / sizeof(values[0]));
	free(text);
}

void sqlite_put_paths(struct sink *sink, const struct paths *paths)
{
	for (uint32_t n = 1; n < paths->node_count; n++) {
		struct path_facts *facts = facts_of(sink->state, n);

		/* The cause of waits that no path explains is no path of a process. */
		if (!facts->kind && path_carries(&paths->nodes[n], WEIGHT_COLLECTIVE_CAUSE))
			facts->kind = KIND_FRAME;
		put_path(sink, paths, n, facts);
	}
}

/* The work of one owner, which ended gaps. */
struct gap_end {
	uint32_t node; /* its path; 0: the user's selection leaves it out */
	bool has_gaps;
};

static struct gap_end *end_of(struct sqlite *s, const struct owner *owner, int64_t *id_out)
{
	uint32_t place = aggregate_index(&s->gap_owners, owner);

	xt_grow(s->gap_ends, s->gap_end_capacity, (size_t)place + 1);
	*id_out = s->gap_end_base + place;
	return &s->gap_ends[place];
}

void sqlite_put_gap(struct sink *sink, const struct process *process, const struct stretch *stretch)
{
	struct sqlite *s = sink->state;
	struct sqlite_value values[5 + IDLE_CLASSES];
	int64_t id;

	if (!stretch->gap.exists)
		return;
	end_of(s, stretch->owner, &id)->has_gaps = true;
	values[0] = sqlite_number(s->process_id);
	values[1] = sqlite_known(stretch->device < TIMELINE_DEVICES_MAX - 1, stretch->device);
	values[2] = sqlite_number(id);
	values[3] = sqlite_number(process_time_ns(process, stretch->gap.from_ns));
	values[4] = sqlite_limited(stretch->start_ns - stretch->gap.from_ns);
	for (int class = 0; class < IDLE_CLASSES; class ++)
		values[5 + class] = sqlite_limited(stretch->gap.idle_ns[class]);
	sqlite_put(sink, TABLE_GAP, values, sizeof(values) / sizeof(values[0]));
}

void sqlite_add_gap_end(struct sink *sink, const struct total *total, uint32_t node)
{
	int64_t id;

	if (total->owner.leaf <= LEAF_MEMSET && total->owner.leaf != LEAF_CALL)
		end_of(sink->state, &total->owner, &id)->node = node;
}

void sqlite_put_gap_ends(struct sink *sink)
{
	struct sqlite *s = sink->state;

	for (uint32_t e = 0; e < s->gap_owners.count; e++) {
		s->has_gaps_left_out |= s->gap_ends[e].has_gaps && !s->gap_ends[e].node;
		if (!s->gap_ends[e].has_gaps || !s->gap_ends[e].node)
			continue;
		SQLITE_PUT(sink, GAP_END, sqlite_number(s->gap_end_base + e),
			   sqlite_number(s->gap_ends[e].node));
	}
	s->gap_end_base += s->gap_owners.count;
}

void sqlite_forget_gaps(struct sqlite *s)
{
	aggregate_free(&s->gap_owners);
	free(s->gap_ends);
	s->gap_ends = NULL;
	s->gap_end_capacity = 0;
}

/* Sets the columns from grid_x on. */
static void set_kernel(struct sqlite_value *values, const struct shape *shape)
{
	for (int d = 0; d < 3; d++) {
		values[d] = sqlite_number(shape->grid[d]);
		values[3 + d] = sqlite_number(shape->block[d]);
	}
	values[6] = sqlite_number(shape->registers);
	values[7] = sqlite_limited(shape->static_shared_bytes);
	values[8] = sqlite_limited(shape->dynamic_shared_bytes);
}

/* Sets the columns from source on. */
static void set_copy(struct sqlite_value *values, const struct copy_shape *shape)
{
	bool is_between_devices = shape->from_device && shape->to_device;

	values[0] = sqlite_text(memory_kind_label(shape->source));
	values[1] = sqlite_text(memory_kind_label(shape->destination));
	values[2] = sqlite_number(shape->is_async);
	values[3] = sqlite_known(is_between_devices, shape->from_device - INT64_C(1));
	values[4] = sqlite_known(is_between_devices, shape->to_device - INT64_C(1));
}

/* Returns the row id of the work's shape. */
static int64_t shape_of(struct sink *sink, const struct process *process, const struct work *work)
{
	static const char *const kinds[WORK_KINDS] = {
		[WORK_KERNEL] = "kernel", [WORK_COPY] = "copy", [WORK_MEMSET] = "set"};
	struct sqlite *s = sink->state;
	const struct model *model = process->model;
	uint32_t id = work->shape < s->shape_counts[work->kind] ? work->shape : 0;
	int64_t *known = &s->shapes[work->kind][id];
	struct sqlite_value values[SHAPE_COLUMNS] = {0};

	if (*known)
		return *known;
	if (work->kind == WORK_KERNEL)
		set_kernel(&values[3], &model->shapes.rows[id]);
	else if (work->kind == WORK_COPY)
		set_copy(&values[12], &model->copy_shapes.rows[id]);
	else
		values[13] = sqlite_text(memory_kind_label(id));
	values[0] = sqlite_number(++s->shape_count);
	values[1] = sqlite_text(work->is_collective ? "collective" : kinds[work->kind]);
	values[2] = sqlite_number(track_work_name(process, work->kind, id));
	sqlite_put(sink, TABLE_SHAPE, values, SHAPE_COLUMNS);
	*known = s->shape_count;
	return *known;
}

/* The row of a thread or counter. 0: the thread is unknown. */
static int64_t *row_of(struct track *track)
{
	return (int64_t *)track->data;
}

static struct sqlite_value thread_value(struct sqlite *s, uint32_t thread)
{
	int64_t row = *row_of(tracks_thread(&s->tracks, thread));

	return sqlite_known(row, row);
}

static void put_call(struct tracks *t, const struct launch *call, uint64_t duration_ns,
		     uint64_t result)
{
	const struct process *process = t->process;
	struct sqlite *s = (struct sqlite *)t;

	SQLITE_PUT(t->sink, CALL, SQLITE_ABSENT, sqlite_number(s->process_id),
		   thread_value(s, call->thread),
		   sqlite_number(frames_api_name(process->frames, call->stack, call->api)),
		   stack_value(t->sink, process, call->stack),
		   sqlite_number((int64_t)call->correlation),
		   sqlite_number(process_time_ns(process, call->enter_ns)),
		   sqlite_limited(duration_ns), sqlite_number((int64_t)result));
}

static void put_work(struct tracks *t, const struct work *work, const struct launch *launch)
{
	const struct process *process = t->process;
	struct sqlite *s = (struct sqlite *)t;
	bool has_stream = work->stream < process->model->streams.count &&
			  process->model->streams.rows[work->stream].defined;
	int64_t shape = shape_of(t->sink, process, work);

	SQLITE_PUT(t->sink, WORK, SQLITE_ABSENT, sqlite_number(s->process_id),
		   thread_value(s, launch ? launch->thread : 0),
		   sqlite_known(has_stream, s->stream_base + work->stream), sqlite_number(shape),
		   stack_value(t->sink, process, launch ? launch->stack : 0),
		   sqlite_number((int64_t)work->correlation),
		   sqlite_number(process_time_ns(process, work->start_ns)),
		   sqlite_limited(work->duration_ns),
		   work->kind == WORK_KERNEL ? SQLITE_ABSENT : sqlite_limited(work->bytes),
		   sqlite_known(work->graph_node, (int64_t)work->graph_node));
	s->work_count++;
	/* The comparison of ranks at the end needs the row of each collective. */
	if (work->is_collective && process->process_count > 1)
		xt_append(s->collectives, s->collective_count, s->collective_capacity,
			  (struct collective_work){process->index, work->ticket, s->work_count});
}

/* The row has the path of the stack, without the state. */
static void put_sample(struct tracks *t, const struct cpu_sample *sample)
{
	struct sqlite *s = (struct sqlite *)t;

	SQLITE_PUT(t->sink, SAMPLE, sqlite_number(s->process_id), thread_value(s, sample->thread),
		   stack_value(t->sink, t->process, sample->stack),
		   sqlite_text(cpu_state_name((enum xt_cpu_state)sample->state)),
		   sqlite_number(process_time_ns(t->process, sample->first_ns)),
		   sqlite_limited(sample->last_ns - sample->first_ns),
		   sqlite_limited(sample->weight_ns), sqlite_number(sample->count),
		   sqlite_known(sample->wait_tid, sample->wait_pid),
		   sqlite_known(sample->wait_tid, sample->wait_tid));
}

static void put_thread(struct sqlite *s, struct track *track)
{
	const struct model *model = s->tracks.process->model;
	const char *name = names_text(&model->names, model->threads.rows[track->id].name, NULL);

	*row_of(track) = s->thread_base + track->id;
	SQLITE_PUT(s->tracks.sink, THREAD, sqlite_number(*row_of(track)),
		   sqlite_number(s->process_id), sqlite_number(track->number), sqlite_clean(name));
}

static void put_track(struct tracks *t, struct track *track)
{
	struct sqlite *s = (struct sqlite *)t;

	if (track->kind == TRACK_THREAD && track->number)
		put_thread(s, track);
	if (track->kind != TRACK_COUNTER)
		return;
	*row_of(track) = ++s->counter_count;
	SQLITE_PUT(t->sink, COUNTER, sqlite_number(*row_of(track)), sqlite_number(s->process_id),
		   sqlite_known(track->parent->kind == TRACK_DEVICE, track->parent->number),
		   sqlite_text(track->counter->name), sqlite_text(track->counter->unit));
}

static void put_counter(struct tracks *t, struct track *track, uint64_t time_ns, uint64_t value)
{
	SQLITE_PUT(t->sink, COUNTER_VALUE, sqlite_number(*row_of(track)),
		   sqlite_number(process_time_ns(t->process, time_ns)), sqlite_limited(value));
}

/* The texts of a range's columns. */
struct range_texts {
	char *json; /* the caller frees it */
	char color[16];
};

/* Sets the column of an argument: payload, category, argb or number. */
static void set_range_arg(struct sqlite_value values[4], struct tracks *t,
			  const struct track_arg *arg, struct range_texts *texts)
{
	const struct process *process = t->process;

	switch ((enum track_arg_key)arg->key) {
	case ARG_VALUES:
		texts->json = range_values_json(process->model, arg->pairs.begin, arg->pairs.end);
		values[0] = sqlite_text(texts->json);
		break;
	case ARG_CATEGORY:
		values[1] = sqlite_text(names_text(&process->paths->names, arg->name, NULL));
		break;
	case ARG_COLOR:
		snprintf(texts->color, sizeof(texts->color), "#%08x", (uint32_t)arg->number);
		values[2] = sqlite_text(texts->color);
		break;
	default:
		if (arg->type == ARG_REAL)
			values[3] = sqlite_real(arg->real);
		else if (arg->type == ARG_NUMBER && arg->number > INT64_MAX)
			values[3] = sqlite_real((double)arg->number);
		else
			values[3] = sqlite_number((int64_t)arg->number);
	}
}

static void put_range(struct tracks *t, const struct track_span *span, const char *kind,
		      uint64_t end_ns)
{
	struct sqlite *s = (struct sqlite *)t;
	struct range_texts texts = {0};
	struct sqlite_value args[4] = {0};
	uint64_t duration_ns = end_ns > span->start_ns ? end_ns - span->start_ns : 0;

	for (size_t i = 0; i < span->arg_count; i++)
		set_range_arg(args, t, &span->args[i], &texts);
	SQLITE_PUT(t->sink, RANGE, sqlite_number(s->process_id), thread_value(s, span->thread),
		   sqlite_number(span->name), sqlite_text(kind),
		   sqlite_number(process_time_ns(t->process, span->start_ns)),
		   end_ns == SPAN_OPEN ? SQLITE_ABSENT : sqlite_limited(duration_ns), args[0],
		   args[1], args[2], args[3]);
	free(texts.json);
}

static void end_span(struct tracks *t, const struct track_span *span, uint64_t end_ns)
{
	put_range(t, span, span->is_async ? "start" : "push", end_ns);
}

static void put_instant(struct tracks *t, const struct track_span *span)
{
	put_range(t, span, "mark", span->start_ns);
}

const struct track_writer sqlite_writer = {
	.track_bytes = sizeof(int64_t),
	.is_flat = true,
	.track = put_track,
	.end = end_span,
	.instant = put_instant,
	.counter = put_counter,
	.call = put_call,
	.work = put_work,
	.sample = put_sample,
};

static struct sqlite_value process_value(size_t log)
{
	return sqlite_number((int64_t)log + 1);
}

static void put_communicator(struct sink *sink, const struct run *run, size_t c)
{
	const struct communicator *communicator = &run->compared->report.communicators.list[c];
	char *ranks = communicator_ranks_text(run, communicator);
	char name[32];

	communicator_name(communicator, name, sizeof(name));
	SQLITE_PUT(sink, COMMUNICATOR, sqlite_number((int64_t)c + 1), sqlite_text(name),
		   sqlite_number(communicator->is_by_order),
		   sqlite_known(communicator->rank_count, (int64_t)communicator->rank_count),
		   sqlite_number((int64_t)communicator->members.count), sqlite_text(ranks));
	free(ranks);
}

COMPARE_BY(compare_works, struct collective_work, UP(log) UP(ticket))

static struct sqlite_value work_value(struct sqlite *s, const struct rank_log *log,
				      const struct rank_collective *item)
{
	const struct collective_work wanted = {.log = log->log, .ticket = item->ticket};
	const struct collective_work *work =
		SEARCH(&wanted, s->collectives, s->collective_count, compare_works);

	return work ? sqlite_number(work->work_id) : SQLITE_ABSENT;
}

/* Results of the comparison of ranks for a collective. Zeros: none. */
struct compared_values {
	struct sqlite_value communicator, number, arrival_ns, wait_ns, exposed_ns, transfer_ns,
		is_last;
};

static void put_collective(struct sink *sink, const struct inputs *inputs,
			   const struct rank_log *log, const struct rank_collective *item,
			   const struct compared_values *compared)
{
	int64_t aligned_ns = inputs->logs[log->log].aligned_ns;

	SQLITE_PUT(sink, COLLECTIVE, SQLITE_ABSENT, process_value(log->log), compared->communicator,
		   compared->number, sqlite_text(collective_operation_names[item->operation]),
		   item->bytes ? sqlite_limited(item->bytes) : SQLITE_ABSENT,
		   sqlite_number(log->members.list[item->member].device),
		   sqlite_number(item->start_ns + aligned_ns),
		   sqlite_number(item->end_ns + aligned_ns), compared->arrival_ns,
		   compared->wait_ns, compared->exposed_ns, compared->transfer_ns,
		   compared->is_last, work_value(sink->state, log, item));
}

/* Writes the collectives of one member. */
static void put_member(struct sink *sink, const struct run *run, size_t c, size_t m)
{
	const struct collectives_report *report = &run->compared->report;
	const struct communicator *communicator = &report->communicators.list[c];
	const struct comm_member *member = &communicator->members.list[m];
	const struct rank_clock *clock = &report->clocks.list[member->host];

	for (size_t i = member->first; i < member->first + member->count; i++) {
		const struct rank_collective *item = comm_item(member, i);
		const struct arrivals *arrivals = &communicator->arrivals[i];
		double exposed_ns, wait_ns = arrivals_wait_ns(communicator, m, i, &report->clocks,
							      &exposed_ns);
		bool has_waits = arrivals->has_waits;
		const struct compared_values compared = {
			.communicator = sqlite_number((int64_t)c + 1),
			.number = sqlite_number((int64_t)i),
			.arrival_ns = sqlite_number(llround(rank_clock_ns(clock, item->start_ns))),
			.wait_ns = sqlite_known(has_waits, (int64_t)wait_ns),
			.exposed_ns = sqlite_known(has_waits, (int64_t)exposed_ns),
			.transfer_ns = sqlite_known(has_waits, (int64_t)arrivals->transfer_ns),
			.is_last = sqlite_known(has_waits, arrivals->late == m),
		};

		put_collective(sink, run->inputs, member->log, item, &compared);
	}
}

/* Whether a log takes part in a communicator of several ranks, as one of its members. */
static bool is_compared(const struct communicators *communicators, const struct rank_log *log,
			uint32_t member)
{
	for (size_t c = 0; c < communicators->count; c++)
		for (size_t m = 0; m < communicators->list[c].members.count; m++)
			if (communicators->list[c].members.list[m].member ==
			    &log->members.list[member])
				return true;
	return false;
}

/* Writes the collectives of a log that no other log has. */
static void put_alone(struct sink *sink, const struct run *run, const struct rank_log *log)
{
	const struct communicators *communicators = &run->compared->report.communicators;

	for (uint32_t m = 0; m < log->members.count; m++) {
		if (is_compared(communicators, log, m))
			continue;
		for (size_t i = 0; i < log->count; i++) {
			if (log->list[i].member != m)
				continue;
			put_collective(sink, run->inputs, log, &log->list[i],
				       &(struct compared_values){0});
		}
	}
}

static void put_causes(struct sink *sink, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;

	for (size_t c = 0; c < report->causes.count; c++) {
		const struct wait_cause *cause = &report->causes.list[c];

		SQLITE_PUT(sink, WAIT_CAUSE, process_value(cause->log),
			   sqlite_known(cause->node != PATH_ROOT, cause->node),
			   sqlite_limited(cause->wait_ns), sqlite_limited(cause->cost_ns));
		if (cause->node != PATH_ROOT)
			add_cause(sink, &run->paths, cause->node);
	}
}

static void put_clocks(struct sink *sink, const struct rank_clocks *clocks)
{
	for (size_t h = 0; h < clocks->count; h++) {
		const struct rank_clock *clock = &clocks->list[h];
		bool is_known = rank_clock_is_known(clocks, h);

		SQLITE_PUT(sink, HOST_CLOCK, sqlite_clean(clock->log->host),
			   sqlite_known(is_known, (int64_t)clock->at_ns),
			   sqlite_known(is_known, -(int64_t)clock->offset_ns),
			   is_known ? sqlite_real(-clock->drift * 1e6) : SQLITE_ABSENT,
			   sqlite_known(is_known, (int64_t)clock->error_ns + 1),
			   sqlite_number((int64_t)clock->bound_count),
			   sqlite_number(clock->log->aligned_ns));
	}
}

void sqlite_put_collectives(struct sink *sink, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct communicators *communicators = &report->communicators;
	struct sqlite *s = sink->state;

	if (!run->needs.ranks)
		return;
	SORT(s->collectives, s->collective_count, compare_works);
	for (size_t c = 0; c < communicators->count; c++) {
		put_communicator(sink, run, c);
		for (size_t m = 0; m < communicators->list[c].members.count; m++)
			put_member(sink, run, c, m);
	}
	for (size_t l = 0; l < run->compared->log_count; l++)
		put_alone(sink, run, &run->compared->logs[l]);
	put_causes(sink, run);
	put_clocks(sink, &report->clocks);
}
