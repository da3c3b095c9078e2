/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the threads of another process, read from its memory: CPython 3.9 to 3.14.
 * Follows all interpreters of the process. Sampler thread only.
 */
#ifndef XT_SAMPLER_PYTHON_PROCESS_H
#define XT_SAMPLER_PYTHON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/process_modules.h"
#include "xtrace/log_format.h"

struct python_process;

/* A code object. The texts are owned by the python_process. */
struct python_function {
	const char *name; /* qualified name, as the injected library records it */
	const char *file;
	uint32_t first_line;
};

struct python_frame_read {
	uint32_t function; /* for python_process_function() */
	uint32_t line;
	/*
	 * An address on the native stack, inside the frame of the interpreter loop that runs this
	 * frame. 0: unknown.
	 */
	uint64_t anchor;
};

struct python_stack {
	uint32_t frame_count;
	bool is_truncated;  /* outer frames are missing */
	uint64_t time_ns;   /* CLOCK_MONOTONIC: when the thread was there */
	uint64_t innermost; /* address of the innermost interpreter frame */
	struct python_frame_read frames[XT_PYTHON_FRAMES_MAX]; /* innermost first */
};

enum python_read {
	PYTHON_READ_NONE, /* the thread has no Python state, or no frames */
	/*
	 * The chain was equal in two reads around the texts. The innermost frame may have advanced
	 * to another instruction; its line is that of the first read.
	 */
	PYTHON_READ_OK,
	/*
	 * It changed. The stack has the frames at the outer end that were the same in all reads,
	 * with the same instructions; it may be empty.
	 */
	PYTHON_READ_CHANGED,
	PYTHON_READ_FAILED, /* not readable */
};

/*
 * Finds the interpreter in the process. Returns 0; -ENOENT: there is none; -EAGAIN: it is not
 * initialised yet; -EINVAL with *why: its version or build is not supported.
 */
int python_process_open(struct python_process **out, pid_t pid,
			const struct process_modules *modules, char *why, size_t why_bytes);
void python_process_close(struct python_process *process);

const char *python_process_version(const struct python_process *process); /* such as "3.12.3" */
const char *python_process_path(const struct python_process *process);	  /* of its file */

/* Finds the states of threads that were created since. Cheap; call once per round. */
void python_process_refresh(struct python_process *process);

/*
 * Reads the frames of a thread, twice. If has_pause, reads them three times, with random pauses of
 * about 20 us in between. Use it for a running thread: frames that exist only briefly are then
 * recognised as changing. Reads of blocked threads take 20 to 60 us for 20 frames.
 *
 * Up to 3.11, PYTHON_READ_FAILED if the thread has frames in several interpreters.
 */
enum python_read python_process_read(struct python_process *process, pid_t tid, bool has_pause,
				     struct python_stack *out);

const struct python_function *python_process_function(const struct python_process *process,
						      uint32_t function);

/*
 * Whether a futex address is that of an interpreter lock (GIL): in its condition variables or
 * mutexes. Free-threaded builds have no such waits.
 */
bool python_process_is_gil(const struct python_process *process, uint64_t futex_address);

/*
 * The thread that holds the interpreter lock; 0: none or unknown. If interpreters have their own
 * locks, the holder of the oldest interpreter's lock that is held.
 */
pid_t python_process_gil_holder(const struct python_process *process);

/* The code range of the interpreter loop, to find its frames in a native stack. */
bool python_process_is_loop(const struct python_process *process, uint64_t address);

#endif
