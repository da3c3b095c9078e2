/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about this machine that recording may depend on.
 */
#ifndef XTRACE_DOCTOR_FACTS_H
#define XTRACE_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct facts {
	char system[128];	      /* such as "Debian GNU/Linux 12 (bookworm)"; empty: unknown */
	char kernel[128];	      /* such as "Linux 6.1.0 x86_64" */
	char glibc[32];		      /* version */
	char driver[64];	      /* version of the NVIDIA kernel module; empty: not loaded */
	bool is_container;	      /* probably */
	bool restricts_profiling;     /* the driver allows it for administrators only */
	bool is_administrator;	      /* CAP_SYS_ADMIN */
	char perf_event_paranoid[16]; /* such as "2", or "unset" */
	char ptrace_scope[16];	      /* such as "1", or "unset" */
	bool can_write;		      /* to the current directory */
	uint64_t free_bytes;	      /* there */
	const char *injection_path;   /* of CUDA_INJECTION64_PATH; NULL: none */
	const char *preload;	      /* of LD_PRELOAD; NULL: none */
};

struct facts facts_read(void);

#endif
