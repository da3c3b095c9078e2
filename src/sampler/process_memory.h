/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the memory of a sampled process. Any thread; keeps errno. Needs the permission to trace the
 * process: a parent has it for its descendants under Yama's ptrace_scope 1.
 */
#ifndef XT_SAMPLER_PROCESS_MEMORY_H
#define XT_SAMPLER_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* True if all bytes were read. */
bool process_memory_read(pid_t pid, void *to, uint64_t from, size_t bytes);

/* Returns the number of bytes read from the start: less than asked if a page is missing. */
size_t process_memory_read_some(pid_t pid, void *to, uint64_t from, size_t bytes);

struct process_memory_part {
	void *to;
	uint64_t from;
	size_t bytes;
};

/* Whether the kernel forbids to read it, at an address that it has. */
bool process_memory_is_refused(pid_t pid, uint64_t address);

/*
 * Explains why the memory of the process cannot be read, and how to allow it. Empty text: it can,
 * or the process has ended. address: of memory that it has.
 */
void process_memory_explain(pid_t pid, uint64_t address, char *why, size_t why_bytes);

#define PROCESS_MEMORY_PARTS_MAX 64

/* Reads up to PROCESS_MEMORY_PARTS_MAX parts in one system call. True if all were read. */
bool process_memory_read_parts(pid_t pid, const struct process_memory_part *parts, size_t count);

#endif
