/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a blocked thread waits for, from its system call, and what its descriptors refer to.
 * Sampler thread only.
 */
#ifndef XT_SAMPLER_WAIT_CLASS_H
#define XT_SAMPLER_WAIT_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "xtrace/log_format.h"

/* Kind of file behind a descriptor. */
enum descriptor_kind {
	DESCRIPTOR_UNKNOWN,
	DESCRIPTOR_FILE,     /* regular file, directory or block device */
	DESCRIPTOR_TERMINAL, /* or another character device */
	DESCRIPTOR_GPU,	     /* /dev/nvidia*, /dev/dri/…, /dev/kfd */
	DESCRIPTOR_PIPE,
	DESCRIPTOR_LOCAL_SOCKET, /* AF_UNIX */
	DESCRIPTOR_SOCKET,	 /* of another family */
	DESCRIPTOR_EVENT,	 /* eventfd */
	DESCRIPTOR_TIMER,	 /* timerfd */
	DESCRIPTOR_EPOLL,
	DESCRIPTOR_PROCESS, /* pidfd */
	DESCRIPTOR_OTHER,
	DESCRIPTOR_KINDS
};

/* Where a system call names what it waits for. */
enum wait_subject {
	WAIT_FIXED,	  /* nowhere: it follows from the call */
	WAIT_DESCRIPTOR,  /* an argument is a descriptor */
	WAIT_DESCRIPTORS, /* poll: array of struct pollfd, and its length in the next argument */
	WAIT_SETS,	  /* select: the number of descriptors, and three sets behind it */
	WAIT_EPOLL,	  /* epoll: the descriptor of the set */
	WAIT_FUTEX,
	WAIT_CHILD, /* wait4, waitid */
};

struct wait_rule {
	enum wait_subject subject;
	uint8_t argument;	 /* number of the argument, from 0 */
	enum xt_cpu_state state; /* if the subject is WAIT_FIXED, or is unknown */
};

/* The rule for a system call. NULL: it has none, so the thread is XT_CPU_BLOCKED. */
const struct wait_rule *wait_rule_find(long number);

/*
 * The state of a thread that waits for several descriptors: the most telling one. count 0: it only
 * waits for time to pass.
 */
enum xt_cpu_state wait_state_of_descriptors(const enum descriptor_kind *kinds, uint32_t count);

/* The state of a thread that is blocked, but not in a system call. */
enum xt_cpu_state wait_state_outside_calls(char proc_state);

/*
 * A disk read can block any call that touches a file: D means uninterruptible. The state from its
 * rule is `state`.
 */
enum xt_cpu_state wait_state_uninterruptible(enum xt_cpu_state state);

/* Descriptors of a poll to check at most. */
#define WAIT_DESCRIPTORS_MAX 16

struct descriptor {
	enum descriptor_kind kind;
	uint64_t inode;
	bool can_read, can_write;
};

/* Looks at one descriptor. Not cached: it may be closed at any time. */
struct descriptor descriptor_of(pid_t pid, int fd);

/* The descriptors in an epoll set. Returns their number, at most `max`. */
uint32_t descriptors_of_epoll(pid_t pid, int fd, int *out, uint32_t max);

/* The pipes of a process. Zeros are an empty table. */
struct pipe_table {
	struct descriptor *ends;
	size_t count, capacity;
	uint64_t read_ns; /* when it was read; 0: never */
};

/* Reads the table again if it is older than half a second. */
void pipe_table_refresh(struct pipe_table *table, pid_t pid, uint64_t now_ns);

/* Whether the process can write to the pipe (or read from it). */
bool pipe_table_has(const struct pipe_table *table, uint64_t inode, bool writes);
void pipe_table_free(struct pipe_table *table);

#endif
