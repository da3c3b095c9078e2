/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the Python interpreter in another process by the symbols of its files. Sampler thread only.
 */
#ifndef XT_SAMPLER_PYTHON_FIND_H
#define XT_SAMPLER_PYTHON_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/python_layout.h"
#include "sampler/process_modules.h"

/* Addresses are those in the process. */
struct python_place {
	pid_t pid;
	uint64_t runtime; /* _PyRuntime */
	uint64_t runtime_bytes;
	uint64_t loop_start, loop_end; /* the interpreter loop; 0: unknown */
	uint64_t cold_start, cold_end; /* its rarely executed part; 0: none or unknown */
	struct python_layout layout;
	/*
	 * The program is an interpreter, not one that embeds it and may start it again. Then no two
	 * code objects of an interpreter have the same version.
	 */
	bool is_program;
	char version[32];
	char path[PATH_MAX];
};

/* Returns as python_process_open(). */
int python_find_in(struct python_place *out, pid_t pid, const struct process_modules *modules,
		   char *why, size_t why_bytes);

#endif
