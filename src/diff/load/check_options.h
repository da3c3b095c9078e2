/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the checks of runs.
 */
#ifndef XT_DIFF_CHECK_OPTIONS_H
#define XT_DIFF_CHECK_OPTIONS_H

#include <stdbool.h>

struct check_options {
	bool allow_different; /* programs, devices, drivers, hosts */
	bool is_per_iteration;
	bool allow_different_iterations;
	bool allow_degraded;   /* incomplete logs, but not damaged ones */
	const char *iteration; /* value of --iteration, or NULL */
	const char *warmup;    /* value of --warmup, or NULL */
	const char
		*advice; /* "; see …", appended when runs differ; NULL: the advice of xtrace diff */
};

#endif
