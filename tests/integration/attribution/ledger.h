/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own record of what it did: every driver call and NVTX event of each thread, in
 * order, with its call path. The functions maintain the path themselves, independently of
 * unwinding: each enters and leaves it by name.
 *
 * The file has one block per thread, one event per line, with fields separated by a space:
 *
 * 	thread <tid> <name>
 * 	call <api name> <result> <path>
 * 	push <time before> <time after> <domain or -> <text> <path>
 * 	pop <time before> <time after> <domain or ->
 * 	start <time before> <time after> <domain or -> <key> <text> <path>
 * 	end <time before> <time after> <domain or -> <key>
 * 	mark <time before> <time after> <domain or -> <text> <path>
 *
 * Paths are "main;path_a;…", outermost first. Texts have no spaces.
 */
#ifndef XTRACE_TESTS_LEDGER_H
#define XTRACE_TESTS_LEDGER_H

#include <stdint.h>

#include <cuda.h>

/* A function with its own frame, which records its name. */
#define FRAME_FUNCTION __attribute__((noipa, noinline))
#define ENTER()	       ledger_enter(__func__)
#define LEAVE()	       ledger_leave()

/* Calls the driver and records the call after its return. */
#define CU(function, ...)  CU_(function, __VA_ARGS__)
#define CU_(function, ...) ledger_call(#function, function(__VA_ARGS__))

/* Starts the calling thread's block. */
void ledger_begin_thread(void);
void ledger_enter(const char *function);
void ledger_leave(void);
CUresult ledger_call(const char *api, CUresult result);

/* kind, domain (NULL: the default one), key and text as above; NULL: none. */
void ledger_range(const char *kind, uint64_t before_ns, const char *domain, const uint64_t *key,
		  const char *text);
uint64_t ledger_now_ns(void);

/* Writes all blocks. All other threads must have finished. */
void ledger_write(const char *path);

#endif
