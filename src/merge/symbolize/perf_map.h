/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of code that a process made at run time, from the file in which compilers that do so say
 * what they made: /tmp/perf-<pid>.map, a line "start size name" for each function, in hexadecimal.
 *
 * The file outlives its process, and a later process may have the same number: what was not written
 * during the recording, or by somebody else than the log, is not the process's. As long as the log
 * has no such names of its own, the file has to be where the log was recorded.
 */
#ifndef XT_MERGE_PERF_MAP_H
#define XT_MERGE_PERF_MAP_H

#include "merge/base/report.h"
#include "merge/symbolize/addresses.h"

/*
 * Names those of the addresses order[0 .. count), none of which lies in a module, that the map of the
 * process that wrote the log at log_path has. Of several functions at an address none is meant: the report says
 * so.
 * 0 or -ENOMEM; that there is no such file is no error.
 */
int perf_map_resolve(struct addresses *addresses, struct model *model, const char *log_path,
		     const uint32_t *order, uint32_t count, struct report *report);

#endif
