/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the line of the user's code for each path: the innermost frame that is marked as such.
 *
 * The name of a frame without a line, such as "step", may belong to several lines. Then the stack
 * decides. If several stacks end at one path, the one with the most time wins.
 */
#include "merge/export/sqlite/sqlite_paths.h"

#include <stdlib.h>
#include <string.h>

#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/naming/joined_paths.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/exporter.h"
#include "merge/sums/tables.h"

#define KIND_FRAME "frame"
#define KIND_CALL  "call"
#define KIND_IDLE  "idle"
#define KIND_STATE "state"
#define STACKS	   2 /* the creation of a graph node, and the call */

/* Facts about the path that ends at a node. */
struct path_facts {
	const char *kind;	/* NULL: nothing ends here */
	struct frame_line line; /* line 0: unknown */
	uint64_t weight;	/* of the stack that the line is from */
	uint64_t alloc_count;
};

static struct path_facts *facts_of(struct sqlite *s, uint32_t node)
{
	xt_grow(&s->facts, &s->fact_capacity, (size_t)node + 1, sizeof(*s->facts));
	return &s->facts[node];
}

/* Returns the line of the function with this name at an address; NULL if there is none. */
static const struct place *place_at(const struct process *process, uint32_t a, uint32_t name)
{
	const struct address *address = &process->addresses->list[a];
	const struct place *places = process->addresses->places;
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

void sqlite_bind_stack(struct sink *sink, enum statement statement, int column,
		       const struct process *process, uint32_t stack)
{
	struct sqlite *s = sink->state;
	uint32_t node;

	if (!frames_has_stack(process->frames, stack)) {
		sqlite_null(s, statement, column);
		return;
	}
	node = joined_paths_node(process->frames, stack);
	sqlite_number(s, statement, column, node);
	if (!facts_of(s, node)->kind)
		add_facts(s, node, KIND_FRAME,
			  find_line(process, node, (const uint32_t[STACKS]){0, stack}), 0);
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
		owner->creation ? nodes->creations[owner->creation].stack : 0,
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

void sqlite_add_cause(struct sink *sink, const struct paths *paths, uint32_t node)
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

/* Binds what is known of a path in which something ends. */
static void bind_facts(struct sqlite *s, const struct paths *paths, uint32_t node,
		       const struct path_facts *facts)
{
	size_t length;
	char *text = paths_text(paths, node, &length);

	sqlite3_bind_text(s->statements[INSERT_PATH], 4, text, (int)length, free);
	sqlite3_bind_text(s->statements[INSERT_PATH], 5, facts->kind, -1, SQLITE_STATIC);
	if (!facts->line.line)
		return;
	sqlite_text(s, INSERT_PATH, 6, names_text(&paths->names, facts->line.file, NULL));
	sqlite_number(s, INSERT_PATH, 7, facts->line.line);
}

void sqlite_put_paths(struct sink *sink, const struct paths *paths)
{
	struct sqlite *s = sink->state;

	for (uint32_t n = 1; n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];
		struct path_facts *facts = facts_of(s, n);
		uint32_t own;

		/* The cause of waits that no path explains is no path of a process. */
		if (!facts->kind && path_carries(node, WEIGHT_COLLECTIVE_CAUSE))
			facts->kind = KIND_FRAME;
		sqlite3_clear_bindings(s->statements[INSERT_PATH]);
		sqlite_number(s, INSERT_PATH, 1, n);
		if (node->parent != PATH_ROOT)
			sqlite_number(s, INSERT_PATH, 2, node->parent);
		sqlite_number(s, INSERT_PATH, 3, node->name);
		if (facts->kind)
			bind_facts(s, paths, n, facts);
		for (int w = 0; w < WEIGHTS; w++)
			sqlite_number(s, INSERT_PATH, 8 + w, sqlite_limited(node->weights[w]));
		sqlite_number(s, INSERT_PATH, 8 + WEIGHTS, sqlite_limited(facts->alloc_count));
		if (facts->kind)
			sqlite_number(s, INSERT_PATH, 9 + WEIGHTS, stack_of(paths, n, facts->kind));
		own = facts->kind ? path_own_frame(paths, n, MARKS_USER) : NAME_EMPTY;
		if (own != NAME_EMPTY)
			sqlite_number(s, INSERT_PATH, 10 + WEIGHTS, own);
		sqlite_put(sink, INSERT_PATH);
	}
}
