/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds call paths from stacks: trims frames of CUDA and of thread start, and adds each stack once
 * to the tree of paths.
 */
#ifndef XT_MERGE_FRAMES_H
#define XT_MERGE_FRAMES_H

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

struct frames {
	uint32_t root;		    /* path node of the process */
	uint32_t *nodes;	    /* by XT_STACK_ID: path node of the innermost shown frame */
	uint32_t *api_names;	    /* by XT_STACK_ID: the runtime function called, or NAME_EMPTY */
	struct shown_frames *shown; /* by XT_STACK_ID */
	size_t stack_count;
	uint32_t *address_names; /* by index in the addresses: name in paths + 1; 0: hidden */
	/* by index in the places of the addresses: name in paths + 1; 0: hidden */
	uint32_t *place_names;
	uint32_t *python_names; /* by XT_PYTHON_FRAME_ID: name in paths + 1; 0: hidden */
	enum python_shown python;
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
};

/*
 * Builds the paths of all stacks below root. Names go through cache into paths->names. files
 * belongs to the run. Returns 0 or -ENOMEM; call frames_free() in any case.
 */
int frames_build(struct frames *frames, const struct model *model,
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

/* Returns whether the log has a stack with this id. */
static inline int frames_has_stack(const struct frames *frames, uint32_t stack)
{
	return stack < frames->stack_count && frames->nodes[stack] != PATH_FAILED;
}

/* Returns whether the name of a call with this stack is known. */
static inline int frames_knows_api(const struct frames *frames, uint32_t stack, uint16_t api)
{
	return api != MODEL_API_UNKNOWN ||
	       (stack < frames->stack_count && frames->api_names[stack] != NAME_EMPTY);
}

/*
 * Returns the name of a call: the runtime function that the program called, else the API function.
 */
static inline uint32_t frames_api_name(const struct frames *frames, uint32_t stack, uint16_t api)
{
	if (stack < frames->stack_count && frames->api_names[stack] != NAME_EMPTY)
		return frames->api_names[stack];
	return frames->api_shown[api < frames->api_count ? api : MODEL_API_UNKNOWN];
}

#endif
