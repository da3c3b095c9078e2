/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from a debuginfod server, by elfutils' client library, which is opened only if the
 * user has named servers in DEBUGINFOD_URLS. Nothing is ever asked of a network otherwise.
 */
#ifndef XT_MERGE_DEBUGINFOD_H
#define XT_MERGE_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"

/* All zeros (but for report) before the first use. */
struct debuginfod {
	struct report *report; /* NULL: nothing is said */
	void *library;
	void *client;
	bool disabled; /* no library, or a server that does not answer */
	uint64_t last_bytes;
	uint64_t progress_ns; /* when there was more than before */
	uint64_t started_ns;  /* the download at hand */
	uint64_t spent_ns;    /* on those before */
	bool timed_out;
	bool is_too_large;
};

/*
 * The debug file of the module with that build id, as a descriptor that is the caller's, or -1. A
 * server that sends nothing for 20 seconds is not asked again, nor is any once five minutes were spent
 * in all; files of more than 2 GiB are not wanted.
 */
int debuginfod_fetch(struct debuginfod *server, const char *path, const void *build_id,
		     size_t build_id_bytes);

/* Closes what was opened; what was given up stays so. */
void debuginfod_end(struct debuginfod *server);

#endif
