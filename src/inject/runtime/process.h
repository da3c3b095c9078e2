/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tracer knows about this process: settings, identity, whether it is the traced one,
 * whether its threads have ended, whether recording is paused.
 */
#ifndef XT_INJECT_PROCESS_H
#define XT_INJECT_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "inject/runtime/hot_state.h"

/*
 * The identity of this process: a random number of 128 bits, and its ranks in a distributed job.
 * Host name and pid are not enough: containers on one host often have the same name and the same
 * few pids.
 */
#define PROCESS_IDENTITY_BYTES 33 /* as text: 32 hexadecimal digits and the terminator */

/*
 * Draws the number before this process creates its log; a forked child draws its own. Not in
 * callbacks.
 */
void process_identity_draw(void);

/* The text is the same for all logs of the process. */
void process_identity_text(char out[PROCESS_IDENTITY_BYTES]);

#define PROCESS_RANKS 8 /* environment variables in which launchers number processes and jobs */

/*
 * Reads these variables, before the writer thread exists. Later changes have no effect. Not in
 * callbacks.
 */
void process_ranks_read(void);

/*
 * Returns the value of variable i, or "" if it was not a decimal number of at most 9 digits. The
 * name of a job may have 63 letters, digits and "_-." instead. Stores the name of the variable in
 * *name. Both are static. Any thread.
 */
const char *process_rank(int i, const char **name);

/*
 * Settings of the tracer: environment variables, or the text that xtrace attach passed instead.
 *
 * A process that runs already may be changing its environment, so getenv() could read freed memory
 * there. Everything that is read at start-up goes through here.
 *
 * From now on, settings come from `block` alone: strings NAME=VALUE, ended by an empty one. The
 * block must stay valid while the tracer starts. NULL: from the environment again.
 */
void settings_use(const char *block);

/* Whether a process that ran already was attached. */
bool settings_are_attached(void);

/* The value of a variable, or NULL. Only in the thread that starts the tracer. */
const char *setting(const char *name);

/*
 * The file of the program that this process runs. Any thread; a system call.
 *
 * Returns the length of the path, cut to the room and with a final 0, or 0 if it is not known.
 * /proc/self is of the main thread, which may have ended. Emulators do not know /proc/thread-self,
 * so it names the emulator.
 */
static inline size_t own_program_path(char *out, size_t out_bytes)
{
	ssize_t length = readlink("/proc/self/exe", out, out_bytes - 1);

	if (length <= 0)
		length = readlink("/proc/thread-self/exe", out, out_bytes - 1);
	if (length < 0)
		length = 0;
	out[length] = '\0';
	return (size_t)length;
}

/*
 * Whether this process is the traced one. The C library does not report a child made by a raw
 * system call. Such a child has a copy of our memory and none of our threads.
 *
 * Makes the calling process the traced one. Once, when tracing starts.
 */
void fork_guard_begin(void);

/* In a forked child: no process is traced until fork_guard_begin(). */
void fork_guard_abandon(void);

/*
 * False in a child that shares or copied this memory, whatever its pid in its own namespace. True
 * if tracing has not started. Async-signal-safe.
 */
bool is_own_process(void);

/*
 * Detects that the program's last thread has ended. The C library ends a process with its last
 * thread. The tracer's threads, and those that CUPTI starts for it, must not keep the process
 * alive. These functions make system calls and call malloc.
 *
 * Enclose the start-up: if the process has one thread before, all threads created in between belong
 * to the tracer. Called by the thread of InitializeInjection().
 */
void process_exit_watch_begin(void);
void process_exit_watch_end(void);

/*
 * Whether the main thread and all other threads of the program have ended. False if unknown. Writer
 * thread.
 */
bool process_exit_watch_has_ended(void);

/*
 * Ends the process as the C library does after the last thread, in a new thread that runs the
 * program's exit handlers. Writer thread, as its last action.
 */
void process_exit_watch_end_process(void);

/*
 * Why calls that start now are not recorded; 0: they are recorded. Graph nodes are always recorded,
 * and NVTX events except while recording is stopped.
 */
enum pause_cause {
	PAUSED_REQUESTED = 1, /* by the user or the program; CUPTI stays enabled */
	PAUSED_HANDOFF = 2,   /* another tool uses CUPTI */
	PAUSED_SIZE = 4,      /* the log has reached --max-size; permanent */
	PAUSED_SHUTDOWN = 8,  /* the process ends; permanent; drops for it alone are losses */
	PAUSED_STOPPED = 16,  /* by the user; CUPTI is released if that is safe */
	PAUSED_CHANGING = 32, /* for a moment: GPU work will not be recorded any more */
};
HOT_EXTERN atomic_uint recording_paused;     /* bits of enum pause_cause */
HOT_EXTERN atomic_bool recording_was_paused; /* set before the first pause, never cleared */

/* Any thread. True if this call changed whether recording is paused. */
static inline bool recording_pause(enum pause_cause cause)
{
	atomic_store(&recording_was_paused, true);
	return atomic_fetch_or(&recording_paused, cause) == 0;
}

/* causes: one or several */
static inline bool recording_resume(unsigned causes)
{
	unsigned before = atomic_fetch_and(&recording_paused, ~causes);

	return before && !(before & ~causes);
}

#endif
