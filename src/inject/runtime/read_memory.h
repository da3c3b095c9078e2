/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies memory of this process that may be unmapped meanwhile.
 */
#ifndef XT_INJECT_READ_MEMORY_H
#define XT_INJECT_READ_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
