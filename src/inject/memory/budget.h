/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tracer may hold of the process's memory: 32 MiB, and 256 KiB for each of its threads.
 *
 * What the writer always has, and what each thread buffer has from the start, is of a known size and set
 * aside here. Whatever grows with what the program does (rings of busy threads, stack caches, tables of
 * what is known, activity buffers) asks first, and makes do with what it has when it gets none.
 */
#ifndef XT_INJECT_BUDGET_H
#define XT_INJECT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_PROCESS_BYTES (32u << 20)
#define BUDGET_THREAD_BYTES  (256u << 10)

/* The writer's tables and buffers, its thread and the flusher's, code and data, thread buffers in stock, the
 * activity buffers that there always are. */
#define BUDGET_FIXED_BYTES (15u << 20)

/* False: there is not as much left. Any thread, no locks. */
bool budget_take(size_t bytes);
void budget_give_back(size_t bytes);

/* A thread buffer has its first thread: it has own_bytes, and its thread brings what a thread may have. */
void budget_add_thread_buffer(size_t own_bytes);

/* The most that was held at any time; how often more was asked for than there was. */
uint64_t budget_peak_bytes(void);
uint64_t budget_refusals(void);

#endif
