/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the lines of own code of a path. A name of the tree of paths may stand for several lines of
 * a native function. Then the stack tells which one it is.
 */
#include "merge/lines/own_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/lines/lines.h"
#include "merge/naming/joined_paths.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/exporter.h"

/*
 * Lists the frames with this mark. They end where a graph's node was created, and where the CPU's
 * stack of idle time begins.
 */
static void list_marked(const struct paths *paths, uint32_t node, unsigned mark,
			struct frame_list *own)
{
	const char *leaf = frame_text(paths, node);

	/* Idle time may end in a frame of the CPU. */
	leaf = begins_with(leaf, LEAF_KERNEL_MARK) ? leaf + strlen(LEAF_KERNEL_MARK) : "";
	for (own->count = 0; node != PATH_ROOT; node = paths->nodes[node].parent) {
		const char *text = frame_text(paths, node);

		/* nvcc generates a host function with the name of the kernel. */
		if (marks_of(paths, node) & mark && strcmp(text, leaf) != 0)
			list_append(*own, node);
		else if (own->count &&
			 (!strcmp(text, PATH_GRAPH_MARK) || begins_with(text, "[idle: ")))
			break;
	}
}

static void list_own(const struct paths *paths, uint32_t node, struct frame_list *own)
{
	list_marked(paths, node, MARK_USER_FILE, own);
	if (!own->count)
		list_marked(paths, node, MARK_USER_MODULE, own);
}

/* Native frames of stacks with their own lines, outermost first. */
struct stack_lines {
	struct stack_line {
		uint32_t name;
		struct place place;
	} * list;
	size_t count, capacity;
};

static void list_stack(const struct process *process, uint32_t stack, struct stack_lines *lines)
{
	const struct frames *frames = process->frames;
	struct path_items path = {0};

	joined_paths_list(frames, stack, &path);
	for (size_t i = 0; i < path.count; i++) {
		uint32_t a = path.items[i].value;
		const struct address *address = &process->frames->addresses->list[a];

		if (path.items[i].kind != MERGED_NATIVE)
			continue;
		for (size_t p = address->place_count; p-- > 0;) {
			size_t place = address->first_place + p;
			uint32_t name = p + 1 < address->place_count ? frames->place_names[place]
								     : frames->address_names[a];

			if (name)
				list_append(
					*lines,
					(struct stack_line){
						name - 1,
						process->frames->addresses->places.list[place]});
		}
	}
	free(path.items);
}

/* Takes the frames up to the innermost one with this name. NULL: there is none. */
static const struct place *take_line(struct stack_lines *stack, uint32_t name)
{
	for (size_t i = stack->count; i-- > 0;)
		if (stack->list[i].name == name) {
			stack->count = i;
			return &stack->list[i].place;
		}
	return NULL;
}

/* Length of the function in "function (file.py:12)", which a label may follow. */
static size_t function_length(const char *name, uint32_t line)
{
	char end[16];
	const char *at;

	snprintf(end, sizeof(end), ":%u)", line);
	for (at = strstr(name, end); at && at > name; at--)
		if (at[0] == '(' && at[-1] == ' ')
			return (size_t)(at - 1 - name);
	return strlen(name);
}

static uint32_t key_of(struct lines *lines, const struct process *process, uint32_t name,
		       struct stack_lines *stack)
{
	const struct paths *paths = process->paths;
	const char *text = names_text(&paths->names, name, NULL), *file = "";
	struct frame_line line = {0};
	const struct place *place = NULL;
	struct line_key key;
	bool is_new;

	if (paths_is_user_code(paths, name)) {
		line = *paths_line(paths, name);
		file = names_text(&paths->names, line.file, NULL);
	}
	if (line.line == LINE_SEVERAL) {
		place = take_line(stack, name);
		line.line = place ? place->line : 0;
		file = place ? names_text(&process->model->names, place->file, NULL) : "";
	}
	key = (struct line_key){
		.function = names_intern(&lines->texts, text, function_length(text, line.line)),
		.file = names_intern(&lines->texts, file, strlen(file)),
		.line = line.line};
	return xt_intern(&lines->keys, &key, sizeof(key), &is_new);
}

uint32_t lines_place(struct lines *lines, const struct process *process, const struct owner *owner,
		     uint32_t node, struct frame_list *own)
{
	const struct paths *paths = process->paths;
	struct stack_lines stack = {0};
	bool is_exact = true;
	uint32_t place = PATH_ROOT, *keys;

	xt_grow(lines->known, lines->known_capacity, (size_t)node + 1);
	if (lines->known[node])
		return lines->known[node] - 1;
	list_own(paths, node, own);
	for (size_t i = 0; i < own->count && is_exact; i++)
		is_exact = !paths_is_user_code(paths, paths->nodes[own->list[i]].name) ||
			   paths_line(paths, paths->nodes[own->list[i]].name)->line != LINE_SEVERAL;
	/* The stack of a sample of the CPU is not the owner's. */
	if (!is_exact && !(owner->leaf == LEAF_IDLE && IDLE_WHAT_PATH(owner->what))) {
		list_stack(process, owner->stack, &stack);
		if (owner->creation)
			list_stack(process,
				   process->model->nodes.creations.list[owner->creation].stack,
				   &stack);
	}
	keys = xt_calloc(own->count + 1, sizeof(*keys));
	for (size_t i = 0; i < own->count; i++)
		keys[i] = key_of(lines, process, paths->nodes[own->list[i]].name, &stack);
	for (size_t i = own->count; i-- > 0;)
		place = paths_child(&lines->places, place, keys[i]);
	if (is_exact)
		lines->known[node] = place + 1;
	free_all(keys, stack.list);
	return place;
}

const struct line_key *lines_key(const struct lines *lines, uint32_t key)
{
	size_t bytes;

	return interner_at(&lines->keys, key, &bytes);
}
