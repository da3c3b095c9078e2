/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the Python interpreter in another process by the symbols of its files, the states of its
 * threads, and the chain of frames of a state. The process may run meanwhile. Sampler thread only.
 */
#ifndef XT_SAMPLER_PYTHON_FRAMES_H
#define XT_SAMPLER_PYTHON_FRAMES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/python_layout.h"
#include "sampler/process_modules.h"

/* Addresses are those in the process. */
struct python_place {
	pid_t pid;
	uint64_t runtime;	       /* _PyRuntime */
	uint64_t loop_start, loop_end; /* the interpreter loop; 0: unknown */
	uint64_t cold_start, cold_end; /* its rarely executed part; 0: none or unknown */
	struct python_layout layout;
	/*
	 * The program is an interpreter, not one that embeds it and may start it again. Then no two
	 * code objects of an interpreter have the same version.
	 */
	bool is_program;
	char version[32];
	char path[PATH_MAX];
};

/* Returns as python_process_open(). */
int python_find_in(struct python_place *out, pid_t pid, const struct process_modules *modules,
		   char *why, size_t why_bytes);

#define PYTHON_INTERPRETERS_MAX 64

struct python_state {
	uint64_t address;
	uint64_t previous, next, interpreter;
	uint64_t pthread;  /* pthread_self() of its thread; 0: it has not started */
	pid_t tid;	   /* as the process itself sees it; 0: unknown */
	bool has_tid_word; /* tid is that of a thread descriptor at `pthread` */
};

struct python_interpreter {
	uint64_t address, next;
	uint64_t threads; /* its newest state */
};

/*
 * The thread states of all interpreters, and the interpreter lock (GIL). Zeros are an empty list.
 */
struct python_states {
	LIST(struct python_state);					 /* by tid */
	struct python_interpreter interpreters[PYTHON_INTERPRETERS_MAX]; /* newest first */
	uint32_t interpreter_count;
	uint32_t gil_offset; /* from the interpreter, to 3.11 from _PyRuntime; 0: unknown */
	uint32_t gil_tries;
};

/* Reads the list again. Returns 0, -ENOMEM, or -EAGAIN if it changed: the old one stays. */
int python_states_refresh(struct python_states *states, const struct python_place *place);

/* The states of a thread: *count_out consecutive ones. A thread has one for each interpreter. */
const struct python_state *python_states_of(const struct python_states *states, pid_t tid,
					    size_t *count_out);

/* Whether a futex address is inside the condition variables and mutexes of an interpreter lock. */
bool python_states_is_gil(const struct python_states *states, const struct python_place *place,
			  uint64_t futex_address);

/* Reads which thread holds an interpreter lock. 0: none, or unknown. */
pid_t python_states_gil_holder(const struct python_states *states,
			       const struct python_place *place);

void python_states_free(struct python_states *states);

#define PYTHON_LINKS_MAX	 2048
#define PYTHON_FRAME_BYTES_MAX	 128
#define PYTHON_WINDOWS		 4
#define PYTHON_WINDOW_PAGE_BYTES 4096

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

/*
 * glibc's descriptor of a thread (struct pthread), as in glibc 2.28 to 2.42. Its address is
 * pthread_self().
 */
#if defined(__x86_64__)
#define THREAD_DESCRIPTOR_BYTES 724
#else
#define THREAD_DESCRIPTOR_BYTES 240
#endif

/* Whether these bytes, read at the address, are a descriptor of glibc. */
bool thread_descriptor_is_valid(const uint8_t bytes[THREAD_DESCRIPTOR_BYTES], uint64_t address);

/* The tid, which fork() keeps right; 0: none. */
int32_t thread_descriptor_tid(const uint8_t bytes[THREAD_DESCRIPTOR_BYTES]);

#endif
