/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers, through the client library of elfutils. The network is used
 * only if the user has named servers in DEBUGINFOD_URLS.
 */
#ifndef XT_MERGE_DEBUGINFOD_H
#define XT_MERGE_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"

/* Set report and zero the rest before the first use. */
struct debuginfod {
	struct report *report; /* NULL: stay silent */
	void *library;
	void *client;
	bool disabled; /* no library, or a server does not answer */
	uint64_t last_bytes;
	uint64_t progress_ns; /* time of the last progress */
	uint64_t started_ns;  /* of the current download */
	uint64_t spent_ns;    /* on earlier downloads */
	bool timed_out;
	bool is_too_large;
};

/*
 * Fetches the debug file with this build id. Returns a descriptor that the caller closes, or -1.
 * Stops asking servers after 20 seconds without data, and after 5 minutes in total. Rejects files
 * larger than 2 GiB.
 */
int debuginfod_fetch(struct debuginfod *server, const char *path, const void *build_id,
		     size_t build_id_bytes);

/* Closes the client. A disabled server stays disabled. */
void debuginfod_end(struct debuginfod *server);

#endif
