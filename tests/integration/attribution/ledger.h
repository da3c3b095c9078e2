/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program says of itself: every driver call and NVTX event of each thread, in order, with
 * the call path that made it. The path is kept by the functions themselves, independently of any
 * unwinding: each enters and leaves it by name.
 *
 * The file has a block for each thread, one line each, fields separated by a space:
 *
 *	thread <tid> <name>
 *	call <api name> <result> <path>
 *	push <time before> <time after> <domain or -> <text> <path>
 *	pop <time before> <time after> <domain or ->
 *	start <time before> <time after> <domain or -> <key> <text> <path>
 *	end <time before> <time after> <domain or -> <key>
 *	mark <time before> <time after> <domain or -> <text> <path>
 *
 * Paths are "main;path_a;…", outermost first. Texts have no spaces.
 */
#ifndef XTRACE_TESTS_LEDGER_H
#define XTRACE_TESTS_LEDGER_H

#include <stdint.h>

#include <cuda.h>

/* A function that is its own frame, and knows it. */
#define FRAME_FUNCTION __attribute__((noipa, noinline))
#define ENTER()	       ledger_enter(__func__)
#define LEAVE()	       ledger_leave()

/* A call of the driver, noted when it has returned. */
#define CU(function, ...)  CU_(function, __VA_ARGS__)
#define CU_(function, ...) ledger_call(#function, function(__VA_ARGS__))

/* Begins the calling thread's block. */
void ledger_begin_thread(void);
void ledger_enter(const char *function);
void ledger_leave(void);
CUresult ledger_call(const char *api, CUresult result);

/* kind, domain (NULL: the default one), key and text as above; NULL where there is none. */
void ledger_range(const char *kind, uint64_t before_ns, const char *domain, const uint64_t *key,
		  const char *text);
uint64_t ledger_now_ns(void);

/* Writes all blocks; no other thread may be at work any more. */
void ledger_write(const char *path);

#endif
