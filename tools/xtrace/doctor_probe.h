/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small recorded program, which shows what recording can do on this machine.
 */
#ifndef XTRACE_DOCTOR_PROBE_H
#define XTRACE_DOCTOR_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "install_paths.h"

#define PROBE_GPUS_MAX 16
#define PROBE_OPERAND  "--probe" /* xtrace doctor --probe is the recorded program */

enum probe_kind {
	PROBE_PYTHON,	 /* in Python, which finds libcupti in its packages */
	PROBE_PROGRAM,	 /* in C */
	PROBE_SIMULATED, /* in C, on the simulated GPU */
	PROBE_KINDS
};

struct probe {
	bool works;	   /* a kernel and the call path of its launch were recorded */
	char reason[1024]; /* why it does not work: one sentence */
	char python[PATH_MAX], python_version[32], torch_version[64]; /* empty: none */
	bool has_no_driver, has_python_frames;
	char gpus[PROBE_GPUS_MAX][96];
	unsigned gpu_count;
	uint32_t cuda_version, cupti_version; /* as CUDA and CUPTI number them; 0: unknown */
	char cupti_path[PATH_MAX], cupti_found[64];
};

/* Runs for up to PROBE_LIMIT_S seconds. Writes to /tmp, and removes what it wrote. */
void probe_run(enum probe_kind kind, const struct install_paths *paths, struct probe *probe);

#define PROBE_LIMIT_S 20

/* Runs the C program to record. Returns its exit status. */
int probe_main(void);

#endif
