/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From stacks to call paths: trims what is CUDA's own and what only starts threads, and puts each
 * stack into the tree of paths, once.
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

/* Which frames of a stack are shown: of its frames those at [first, end), but for those whose address
 * has no name. */
struct shown_frames {
	uint32_t first;
	uint32_t end;
};

struct frames {
	uint32_t root;	     /* path node of the process */
	uint32_t *nodes;     /* by XT_STACK_ID: path node of the innermost frame that is shown */
	uint32_t *api_names; /* by XT_STACK_ID: the runtime function called, or NAME_EMPTY */
	struct shown_frames *shown; /* by XT_STACK_ID */
	size_t stack_count;
	uint32_t *address_names; /* by place in the addresses: name in paths + 1; 0: not shown */
	uint32_t *place_names;	 /* by place in the places of the addresses: likewise, if inlined */
	uint32_t *python_names;	 /* by XT_PYTHON_FRAME_ID: likewise */
	enum python_shown python;
	uint8_t *of_interpreter;  /* by place in the addresses: is it of a Python interpreter? */
	const uint32_t *by_frame; /* of the addresses */
	uint32_t *api_shown;	  /* by place in the model's apis: their names */
	size_t api_count;
};

/* How frames are shown; of native ones, where there is debug information. */
struct frame_style {
	bool inlines; /* inlined functions as frames of their own */
	bool lines;   /* "f (file.c:12)" */
	enum python_shown python;
};

/*
 * Builds the paths of all stacks below root. Names go into paths->names, through the cache; files are
 * the run's. 0 or -ENOMEM; frames_free() in any case.
 */
int frames_build(struct frames *frames, const struct model *model,
		 const struct addresses *addresses, const struct frame_style *style,
		 struct demangle_cache *cache, struct file_names *files, struct paths *paths,
		 uint32_t root);
void frames_free(struct frames *frames);

/* Begins to go over the frames of a stack that are shown, from the outermost to the innermost. Native
 * ones without a name are not shown. */
void frames_merge(const struct frames *frames, const struct model *model, uint32_t stack,
		  struct frame_merge *frame_merge);

/* Was a stack of that id in the log? */
static inline int frames_has_stack(const struct frames *frames, uint32_t stack)
{
	return stack < frames->stack_count && frames->nodes[stack] != PATH_FAILED;
}

/* Is it known what a call with that stack is called? */
static inline int frames_knows_api(const struct frames *frames, uint32_t stack, uint16_t api)
{
	return api != MODEL_API_UNKNOWN ||
	       (stack < frames->stack_count && frames->api_names[stack] != NAME_EMPTY);
}

/* What a call is called: the runtime function that the program called, else the API's name. */
static inline uint32_t frames_api_name(const struct frames *frames, uint32_t stack, uint16_t api)
{
	if (stack < frames->stack_count && frames->api_names[stack] != NAME_EMPTY)
		return frames->api_names[stack];
	return frames->api_shown[api < frames->api_count ? api : MODEL_API_UNKNOWN];
}

#endif
