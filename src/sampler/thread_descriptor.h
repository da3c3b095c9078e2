/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tid in glibc's descriptor of a thread (struct pthread), as in glibc 2.28 to 2.42. Its address
 * is pthread_self(). Any thread; no state.
 */
#ifndef XT_SAMPLER_THREAD_DESCRIPTOR_H
#define XT_SAMPLER_THREAD_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#define THREAD_DESCRIPTOR_TID	720
#define THREAD_DESCRIPTOR_BYTES 724
#else
#define THREAD_DESCRIPTOR_TID	       208
#define THREAD_DESCRIPTOR_BYTES	       240
/* The kernel reads this from the list of robust mutexes: from a mutex's link to its word. */
#define THREAD_DESCRIPTOR_FUTEX_OFFSET 232
#define THREAD_DESCRIPTOR_FUTEX_VALUE  (-32)
#endif

static inline uint64_t thread_descriptor_word(const uint8_t *bytes, unsigned offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* Whether these bytes, read at the address, are a descriptor of glibc. */
static inline bool thread_descriptor_is_valid(const uint8_t bytes[THREAD_DESCRIPTOR_BYTES],
					      uint64_t address)
{
#if defined(__x86_64__)
	/* It has its own address twice. */
	return thread_descriptor_word(bytes, 0) == address &&
	       thread_descriptor_word(bytes, 16) == address;
#else
	return address && (int64_t)thread_descriptor_word(bytes, THREAD_DESCRIPTOR_FUTEX_OFFSET) ==
				  THREAD_DESCRIPTOR_FUTEX_VALUE;
#endif
}

/* The tid, which fork() keeps right; 0: none. */
static inline int32_t thread_descriptor_tid(const uint8_t bytes[THREAD_DESCRIPTOR_BYTES])
{
	int32_t tid;

	memcpy(&tid, bytes + THREAD_DESCRIPTOR_TID, sizeof(tid));
	return tid > 0 ? tid : 0;
}

#endif
