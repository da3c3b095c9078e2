/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of own code of a call path.
 */
#ifndef XT_MERGE_OWN_LINES_H
#define XT_MERGE_OWN_LINES_H

#include "merge/naming/paths.h"

struct lines;
struct owner;
struct process;

/* A line of own code. Two functions may have frames at one line. */
struct line_key {
	uint32_t function; /* both in lines.texts */
	uint32_t file;	   /* NAME_EMPTY: the line is unknown */
	uint32_t line;
};

/* Nodes of a path, innermost first. */
struct frame_list {
	LIST(uint32_t);
};

static inline unsigned marks_of(const struct paths *paths, uint32_t node)
{
	uint32_t name = paths->nodes[node].name;

	return by_id_get(paths->marks, name);
}

static inline const char *frame_text(const struct paths *paths, uint32_t node)
{
	return names_text(&paths->names, paths->nodes[node].name, NULL);
}

/*
 * Returns the place of the innermost own frame of a path. Lists its own frames, unless the place of
 * the path was returned before. The caller frees the list.
 */
uint32_t lines_place(struct lines *lines, const struct process *process, const struct owner *owner,
		     uint32_t node, struct frame_list *own);

const struct line_key *lines_key(const struct lines *lines, uint32_t key);

#endif
