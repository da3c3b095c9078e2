/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot-path law, as far as a compiler can hold it.
 *
 * Include this last in every file whose code runs in the application's threads. Such code takes no
 * lock, calls no malloc, makes no system call, never prints, never exits, and keeps errno. The
 * cold paths that may do a few of these (the first launch of a thread, a stack never seen before)
 * live in files that do not include it, and say so at their head. A test holds the list of what
 * these objects import.
 */
#ifndef XT_INJECT_HOTPATH_H
#define XT_INJECT_HOTPATH_H

/* Kept apart from what runs at every launch, which then takes fewer lines of instructions. */
#define COLD __attribute__((noinline, cold))

/* What runs at every launch lies together, in two pages of instructions rather than four: of pages, too, a program
 * leaves few in the processor's tables. */
#define LIKELY __attribute__((section(".text.hot"), aligned(64)))

#pragma GCC poison malloc calloc realloc free aligned_alloc posix_memalign strdup
#pragma GCC poison printf fprintf dprintf vfprintf puts fputs fwrite write read open close syscall
#pragma GCC poison exit abort _exit quick_exit raise kill longjmp
#pragma GCC poison pthread_mutex_lock pthread_cond_wait pthread_cond_signal sem_wait sem_post
#pragma GCC poison mmap munmap nanosleep usleep sched_yield dlopen dlsym dl_iterate_phdr

#endif
