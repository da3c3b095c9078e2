/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of interpreter frames of a thread of another process, which may run meanwhile. Sampler
 * thread only.
 */
#ifndef XT_SAMPLER_PYTHON_FRAMES_H
#define XT_SAMPLER_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/python_find.h"
#include "sampler/python_states.h"

#define PYTHON_LINKS_MAX	 2048
#define PYTHON_FRAME_BYTES_MAX	 128
#define PYTHON_WINDOWS		 4
#define PYTHON_WINDOW_PAGE_BYTES 4096
#define PYTHON_MOMENT_NS	 20000 /* the times of samples are exact to half of this */

/* A frame, or from 3.12 a shim between activations of the interpreter loop. */
struct python_link {
	uint64_t address;
	uint64_t previous; /* the caller's */
	uint64_t code;	   /* raw: with tag bits */
	uint64_t instruction;
	uint64_t cframe;	  /* 3.10 and 3.11: of the activation that ends here, or 0 */
	uint64_t cframe_previous; /* valid if cframe is not 0 */
	uint32_t owner;
	uint32_t tlbc_index; /* free-threaded */
	bool is_shim;
};

/* Where a chain starts. */
struct python_start {
	uint64_t innermost;
	uint64_t cframe;    /* 3.10 to 3.12 */
	bool is_active;	    /* from 3.12: a thread runs Python in this state */
	bool is_of_thread;  /* the state still belongs to the thread */
	bool is_finalizing; /* the interpreter frees the states of other threads */
};

/* A copy of a page: frames are neighbours in memory. */
struct python_window {
	uint64_t start, end;
	uint8_t bytes[PYTHON_WINDOW_PAGE_BYTES + PYTHON_FRAME_BYTES_MAX];
};

struct python_frames {
	struct python_state state;
	struct python_start start;
	uint64_t time_ns; /* CLOCK_MONOTONIC: of python_frames_note_time(), or of the read */
	uint32_t count;
	uint32_t code_count; /* links that execute code */
	bool is_whole;
	struct python_link links[PYTHON_LINKS_MAX]; /* innermost first */
	struct python_window windows[PYTHON_WINDOWS];
	uint32_t next_window;
};

/* Reads where the chain of a state starts. False if not readable. */
bool python_frames_start(const struct python_place *place, const struct python_state *state,
			 struct python_start *out);

/*
 * Reads the chain of a state, of at most code_count_max frames. False if a frame cannot be read, or
 * the state no longer belongs to its thread.
 */
bool python_frames_read(struct python_frames *frames, const struct python_place *place,
			const struct python_state *state, uint32_t code_count_max);

/*
 * Reads again where the chain starts, and notes the time of that moment. Call it at once after the
 * read: a call that came and went since is not seen. False if the start differs, or no
 * moment was short enough.
 */
bool python_frames_note_time(struct python_frames *frames, const struct python_place *place);

/* The number of links at the outer end of two whole chains that are equal. */
uint32_t python_frames_common(const struct python_frames *a, const struct python_frames *b);

/* Reads the chain again. Whether it is equal, but for the innermost frame's instruction. */
bool python_frames_are_current(const struct python_frames *frames,
			       const struct python_place *place);

#endif
