/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running processes that carry xtrace, and the file through which they are controlled.
 */
#ifndef XTRACE_PROCESSES_H
#define XTRACE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "xtrace/crash_buffer_format.h"

struct traced_process {
	pid_t pid;	    /* in this PID namespace; 0: not visible from here */
	char *crash_buffer; /* a path that can be opened here */
	char *log;	    /* the log's path, for messages */
};

struct process_list {
	struct traced_process *rows;
	size_t count, capacity;
	size_t hidden_count; /* processes whose maps may not be read */
	pid_t *deleted;	     /* processes whose trace was deleted */
	size_t deleted_count, deleted_capacity;
};

/* All processes that may be inspected. Returns 0 or -errno. */
int processes_find_all(struct process_list *list);

/* Process `pid`. Returns 0, or -errno: -ESRCH, -EACCES, -ENOENT if it does not carry
 * xtrace, or -ESTALE if its trace was deleted. */
int processes_find_pid(struct process_list *list, pid_t pid);

/* The same for process `pid`, or for the descendants of `pid` if it is xtrace record. */
int processes_find_tree(struct process_list *list, pid_t pid);

/* The number of a process that the user named, or 0 after an error message. */
pid_t process_parse(const char *text);

/* Whether it is xtrace record, or has the library in its environment, so that CUDA may load it. */
bool process_may_load_xtrace(pid_t pid);

/* Those that record into a directory. Also finds processes of containers that share it. */
int processes_find_directory(struct process_list *list, const char *directory);

/* The same with pid 0. */
int processes_find_logs(struct process_list *list, const char *directory);

/* Sets the pids of rows without one, if they are visible. Reads the maps of all processes. */
void processes_find_pids(struct process_list *list);

void processes_free(struct process_list *list);

/* The part of the crash buffer's header that other processes read. */
struct process_status {
	enum xt_tracer_state state;
	uint64_t launch_count, lost_count, log_bytes, gpus;
	char problem[XT_CRASH_BUFFER_PROBLEM_BYTES];
	uint32_t snapshot_number; /* the last snapshot; 0: none */
	int snapshot_error;	  /* errno of the last one, if it failed */
};

/* Returns 0 or -errno. */
int process_status_read(const struct traced_process *process, struct process_status *status);

/* "recording", "stopped", … */
const char *process_state_name(enum xt_tracer_state state);

/*
 * Asks a process to start, stop or take a snapshot. Returns the word to pass to process_progress(),
 * or -EBADMSG if the file is no crash buffer, -ENOTSUP if the tracer is too old, or another -errno.
 */
int64_t process_request(const struct traced_process *process, enum xt_crash_buffer_request request,
			uint32_t delay_ms, uint32_t duration_ms);

/* How far the tracer is with a request. */
enum request_progress {
	REQUEST_UNREAD,
	REQUEST_READ,
	REQUEST_DONE,
	REQUEST_REPLACED, /* by another one */
	REQUEST_GONE,	  /* the process has ended, or its trace was deleted */
};
enum request_progress process_progress(const struct traced_process *process, uint32_t word);

/*
 * Whether the process still holds the lock of its log, or runs, if the log was deleted. True if the
 * file system has no locks.
 */
bool process_is_alive(const struct traced_process *process);

/*
 * Starts recording in these processes, and prints the messages of 'xtrace start'. target is their
 * name in commands that a message suggests. With duration_ns 0, returns when they record, else
 * after that time. Returns false if no process confirmed. Changes the order of the list.
 */
bool control_start(struct process_list *list, const char *target, uint64_t duration_ns);

/* From now on, Ctrl-C ends control_start(), also if it comes before it. */
void control_handle_interrupts(void);

#endif
