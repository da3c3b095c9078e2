/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds call paths from stacks: trims frames of CUDA and of thread start, and adds each stack once
 * to the tree of paths.
 */
#ifndef XT_MERGE_FRAMES_H
#define XT_MERGE_FRAMES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/naming/demangle.h"
#include "merge/naming/file_names.h"
#include "merge/naming/frame_names.h"
#include "merge/naming/merge_python_frames.h"
#include "merge/naming/paths.h"
#include "merge/read/model.h"

/* The shown native frames of a stack, [first, end), except addresses without a name. */
struct shown_frames {
	uint32_t first;
	uint32_t end;
};

/* Call path to show for launches in PyTorch's backward pass. */
enum backward_shown {
	BACKWARD_FORWARD, /* the forward path that created the autograd node */
	BACKWARD_ENGINE,  /* the path of the launch itself */
	BACKWARD_BOTH,	  /* the first, followed by the second */
};

/* A frame of a call path, or a label between frames. */
struct path_item {
	enum merged_kind kind;
	/* native: index in the addresses; Python: XT_PYTHON_FRAME_ID; label: name */
	uint32_t value;
};

/* Belongs to the caller, who frees items. */
struct path_items {
	struct path_item *items; /* outermost first */
	size_t count, capacity;
};

/* The path of a joined stack (joined_paths.c). */
struct joined_path {
	struct path_items items;
	uint32_t node;
	uint8_t result; /* enum join_result */
};

struct joined_paths {
	struct joined_path *list; /* by number of the joined stack */
	size_t count, capacity;
};

struct frames {
	const struct model *model;
	const struct addresses *addresses;
	struct paths *paths;
	struct frames_context *context; /* private to frames.c */
	struct joined_paths *joined;	/* filled by joined_paths.c */
	uint32_t root;			/* path node of the process */
	uint32_t *nodes;		/* by XT_STACK_ID: path node of the innermost shown frame */
	uint32_t *api_names;	    /* by XT_STACK_ID: the runtime function called, or NAME_EMPTY */
	struct shown_frames *shown; /* by XT_STACK_ID */
	size_t stack_count;
	uint32_t *address_names; /* by index in the addresses: name in paths + 1; 0: hidden */
	/* by index in the places of the addresses: name in paths + 1; 0: hidden */
	uint32_t *place_names;
	enum python_shown python;
	enum backward_shown backward;
	uint8_t *of_interpreter;  /* by index in the addresses: see frame_is_of_interpreter() */
	const uint32_t *by_frame; /* as in the addresses */
	uint32_t *api_shown;	  /* by index in the model's apis: name */
	size_t api_count;
};

/* How frames are shown. inlines and lines need debug information. */
struct frame_style {
	bool inlines; /* show inlined functions as frames */
	bool lines;   /* append lines: "f (file.c:12)" */
	enum python_shown python;
	enum backward_shown backward;
	const char *user_files;		    /* --my-code: a regular expression, or NULL */
	const regex_t *user_files_compiled; /* NULL without user_files */
	struct redaction *redaction;	    /* --redact; NULL: off */
};

/*
 * Builds the paths of all stacks below root. Names go through cache into paths->names. files
 * belongs to the run. Free it with frames_free().
 */
void frames_build(struct frames *frames, const struct model *model,
		  const struct addresses *addresses, const struct frame_style *style,
		  struct demangle_cache *cache, struct file_names *files, struct paths *paths,
		  uint32_t root);
void frames_free(struct frames *frames);

/*
 * Starts an iteration over the shown frames of a stack, outermost first. Includes hidden native
 * frames: skip those whose address_names is 0.
 */
void frames_merge(const struct frames *frames, const struct model *model, uint32_t stack,
		  struct frame_merge *merge);

/* Appends the shown frames of a stack of the log. */
void frames_list(const struct frames *frames, uint32_t stack, struct path_items *list);

/* Adds an item below a node. Returns the new node. */
uint32_t frames_add_item(const struct frames *frames, uint32_t node, const struct path_item *item);

/*
 * Line n of those that a Python frame is shown as, outermost first. There are several if
 * torch.compile generated its code. Returns false if there is no such line. Any id is valid.
 */
bool frames_python_line(const struct frames *frames, uint32_t id, uint32_t n,
			struct python_line *line);

/* Returns whether the log has a stack with this id, or makes a joined one. */
static inline int frames_has_stack(const struct frames *frames, uint32_t stack)
{
	stack = model_own_stack(frames->model, stack);
	return stack < frames->stack_count && frames->nodes[stack] != PATH_FAILED;
}

/* Returns whether the name of a call with this stack is known. */
static inline int frames_knows_api(const struct frames *frames, uint32_t stack, uint16_t api)
{
	stack = model_own_stack(frames->model, stack);
	return api != MODEL_API_UNKNOWN ||
	       (stack < frames->stack_count && frames->api_names[stack] != NAME_EMPTY);
}

/*
 * Returns the name of a call: the runtime function that the program called, else the API function.
 */
static inline uint32_t frames_api_name(const struct frames *frames, uint32_t stack, uint16_t api)
{
	stack = model_own_stack(frames->model, stack);
	if (stack < frames->stack_count && frames->api_names[stack] != NAME_EMPTY)
		return frames->api_names[stack];
	return frames->api_shown[api < frames->api_count ? api : MODEL_API_UNKNOWN];
}

#endif
