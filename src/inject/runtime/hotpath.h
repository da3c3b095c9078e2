/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for code on the hot path, as far as the compiler can enforce them.
 *
 * Include this last in every file whose code runs in the program's threads. Such code takes no
 * lock, calls no malloc, makes no system call, never prints, never exits, and keeps errno. Cold
 * paths may do some of these: a thread's first launch, a stack never seen before. They are in files
 * that do not include this header and say so at their head. A test checks the imports of the hot
 * objects.
 */
#ifndef XT_INJECT_HOTPATH_H
#define XT_INJECT_HOTPATH_H

/* Moves rare code away, so that a launch touches fewer cache lines of instructions. */
#define COLD __attribute__((noinline, cold))

/* Places the code of every launch in two pages instead of four, to save TLB entries. */
#define LIKELY __attribute__((section(".text.hot"), aligned(64)))

#pragma GCC poison malloc calloc realloc free aligned_alloc posix_memalign strdup
#pragma GCC poison printf fprintf dprintf vfprintf puts fputs fwrite write read open close syscall
#pragma GCC poison exit abort _exit quick_exit raise kill longjmp
#pragma GCC poison pthread_mutex_lock pthread_cond_wait pthread_cond_signal sem_wait sem_post
#pragma GCC poison mmap munmap nanosleep usleep sched_yield dlopen dlsym dl_iterate_phdr

#endif
