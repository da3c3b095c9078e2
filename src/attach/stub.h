/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that runs in the attached process, and the memory that it shares with this program.
 * Included by assembly too. One stub_ARCHITECTURE.S for each architecture.
 *
 * The stub runs in a thread of the program that was blocked in a system call. It makes a thread,
 * the worker, and goes back into the system call. The worker opens the library and calls its entry
 * point, which may take long. No signal handler runs in either, except the C library's own for
 * setuid().
 *
 * At its start, registers hold:
 *
 *	r12  address of the block, which is not mapped yet
 *	r13  the start of the block's contents, on the thread's stack
 *	r14  a struct ucontext of the kernel with the state to return to, above the stub's stack
 *	r15  size of these contents in bytes
 *	rbx  STUB_RESTART_*
 */
#ifndef XT_ATTACH_STUB_H
#define XT_ATTACH_STUB_H

/* The first bytes of the code, which has no data of a thread or process. */
#define STUB_MAGIC 0x7c5b1fd2a94e6083

/* The block: fields by offset. */
#define STUB_STATE    0 /* u32, STUB_IS_* */
#define STUB_ERROR    4 /* u32, errno of pthread_create() */
#define STUB_CREATE   8 /* addresses of functions */
#define STUB_DETACH   16
#define STUB_ERRNO    24
#define STUB_DLOPEN   32
#define STUB_DLSYM    40
#define STUB_DLERROR  48
#define STUB_THREAD   56  /* pthread_t of the worker */
#define STUB_STACK    64  /* u64, bytes of its stack */
#define STUB_SETTINGS 72  /* u64, offset of strings NAME=VALUE, ended by an empty one */
#define STUB_ENTRY    80  /* name of the entry point, 32 bytes */
#define STUB_TOKEN    112 /* u64, of this attempt, so that it reads no other block */
#define STUB_CANCEL   120 /* u32, not 0: the worker must not call the entry point any more */
#define STUB_POLICY   124 /* u32, a schedule: see sched_setscheduler() */
#define STUB_NICE     128 /* i32 */
#define STUB_PRIORITY 132 /* u32, 0 */
#define STUB_CPUS     136 /* STUB_CPU_BYTES */
#define STUB_ATTR     264 /* more addresses of functions */
#define STUB_SIZE     272
#define STUB_LIBRARY  280 /* path of the library, followed by the settings */

#define STUB_CPU_BYTES	    128
#define STUB_DATA_BYTES_MAX 12288
#define STUB_MESSAGE	    STUB_DATA_BYTES_MAX /* text: why it failed */
#define STUB_MESSAGE_BYTES  2048
#define STUB_BLOCK_BYTES    16384 /* stays mapped */
#define STUB_GUARD_BYTES    4096
#define STUB_ATTR_BYTES	    64	   /* room for pthread_attr_t */
#define STUB_STACK_BYTES    131072 /* unmapped at the end, like the guard */

/* STUB_STATE */
#define STUB_IS_STARTED	   1
#define STUB_IS_ENTERING   2 /* no longer cancelled, unless STUB_IS_CANCELLED follows */
#define STUB_HAS_NO_THREAD 3 /* STUB_ERROR says why */
#define STUB_IS_DONE	   4
#define STUB_CANNOT_LOAD   5 /* the message is that of dlerror() */
#define STUB_IS_REFUSED	   6 /* the message is that of the entry point */
#define STUB_IS_CANCELLED  7

/* The behaviour of the system call if a signal handler has interrupted it. */
#define STUB_RESTART_NONE	    0 /* it has finished */
#define STUB_RESTART_BY_HANDLER	    1 /* restarts if the handler has SA_RESTART */
#define STUB_RESTART_ALWAYS	    2
#define STUB_RESTART_UNLESS_HANDLED 3
#define STUB_RESTART_KIND	    15
#define STUB_RESTART_BLOCK	    16 /* flag: restart_syscall() continues it */

/* Offsets in the kernel's struct ucontext of x86-64. */
#define STUB_UC_LINK	 8 /* unused by the kernel. Here: below the red zone, see STUB_RETURN_BYTES */
#define STUB_UC_RAX	 144
#define STUB_UC_RSP	 160
#define STUB_UC_RIP	 168
#define STUB_UC_FLAGS	 176
#define STUB_UC_FPSTATE	 224
#define STUB_UC_MASK	 296
#define STUB_UC_BYTES	 304
#define STUB_FP_FEATURES 472 /* in the floating-point state */

/* The address of the system call instruction, then the red zone, then the thread's stack. */
#define STUB_RED_ZONE_BYTES 128
#define STUB_RETURN_BYTES   (STUB_RED_ZONE_BYTES + 8)

#ifndef __ASSEMBLER__
#include <stdint.h>

#define STUB_CODE_BYTES_MAX 4096

extern const uint8_t xt_stub_begin[], xt_stub_entry[], xt_stub_end[];
#endif

#endif
