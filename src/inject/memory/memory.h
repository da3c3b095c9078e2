/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's memory: limits it to 32 MiB per process and 256 KiB per thread, and maps it. Copies
 * memory of the program that may be unmapped meanwhile.
 *
 * Fixed needs are reserved here: the writer's tables and the initial size of each thread buffer.
 * Everything that grows with the program asks first: rings of busy threads, stack caches, id
 * tables, activity buffers. If refused, it does not grow.
 */
#ifndef XT_INJECT_MEMORY_H
#define XT_INJECT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_PROCESS_BYTES (32u << 20)
#define BUDGET_THREAD_BYTES  (256u << 10)

/* False if not enough is left. Any thread, no locks. */
bool budget_take(size_t bytes);
void budget_give_back(size_t bytes);

/*
 * Accounts for a thread buffer that gets its first thread: it uses own_bytes and adds one thread's
 * share to the budget.
 */
void budget_add_thread_buffer(size_t own_bytes);

/* The most memory used at any time, and the number of refusals. */
uint64_t budget_peak_bytes(void);
uint64_t budget_refusals(void);

#define MAP_LEFT_BYTES (16u << 20) /* mapped beyond each request, and given back */

/* Private, zeroed memory that gets pages when touched. NULL if there is no room; errno says why. */
void *map_memory(size_t bytes);

/* A part of a file, shared. */
void *map_file_part(int fd, uint64_t offset, size_t bytes);

/* Whether a mapping failed a short time ago. Callers that can do without memory then do not try. */
bool map_has_failed_lately(void);

/*
 * Copies all bytes, or returns false. Cold path of any thread: a system call, which a sandbox may
 * forbid. Keeps errno.
 */
bool read_memory(void *to, uintptr_t from, size_t bytes);

/* Copies 8 bytes from each address. At most READ_WORDS_MAX of them. */
#define READ_WORDS_MAX 64
bool read_memory_words(uint64_t *to, const uintptr_t *from, size_t count);

/* Copies a text, cut to out_bytes - 1. Returns its length; 0 if it is empty or unreadable. */
size_t read_memory_text(char *out, size_t out_bytes, uintptr_t from);

#endif
