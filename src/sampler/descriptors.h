/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of a sampled process: what they refer to, and which pipes it has open. Sampler
 * thread only.
 */
#ifndef XT_SAMPLER_DESCRIPTORS_H
#define XT_SAMPLER_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/wait_class.h"

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

struct pipe_end {
	uint64_t inode;
	bool can_read, can_write;
};

/* The pipes of a process. Zeros are an empty table. */
struct pipe_table {
	struct pipe_end *ends;
	size_t count, capacity;
	uint64_t read_ns; /* when it was read; 0: never */
};

/* Reads the table again if it is older than half a second. */
void pipe_table_refresh(struct pipe_table *table, pid_t pid, uint64_t now_ns);

/* Whether the process can write to the pipe (or read from it). */
bool pipe_table_has(const struct pipe_table *table, uint64_t inode, bool writes);
void pipe_table_free(struct pipe_table *table);

#endif
