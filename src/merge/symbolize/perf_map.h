/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a process generated at run time. JIT compilers list it in /tmp/perf-<pid>.map,
 * one line "start size name" for each function, in hexadecimal.
 *
 * The file outlives its process, and a later process may reuse the number. A file is rejected
 * unless it was written during the recording by the owner of the log. Unless the names are embedded
 * in the log, merge must run on the machine that recorded it.
 */
#ifndef XT_MERGE_PERF_MAP_H
#define XT_MERGE_PERF_MAP_H

#include "merge/base/report.h"
#include "merge/symbolize/addresses.h"

/*
 * Names the addresses order[0 .. count), which are outside all modules, from the map of the
 * process that wrote the log at log_path. Addresses with several functions stay unnamed, with a
 * warning. A missing map is not an error.
 */
void perf_map_resolve(struct addresses *addresses, struct model *model, const char *log_path,
		      const uint32_t *order, uint32_t count, struct report *report);

#endif
