/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PPROF_LOCATIONS_H
#define XT_MERGE_PPROF_LOCATIONS_H

#include "merge/export/pprof/pprof_state.h"

/* Writes the mappings of the process, the program's first. */
void pprof_begin_process(struct pprof *pprof, const struct process *process);

/*
 * Returns the location of a name without code, of an address (index in process->addresses), and of
 * a line of a Python frame. Written on first use.
 */
uint64_t pprof_name_location(struct pprof *pprof, const char *text, size_t length);
uint64_t pprof_address_location(struct pprof *pprof, const struct process *process,
				uint32_t address);
uint64_t pprof_python_location(struct pprof *pprof, const struct process *process,
			       const struct python_line *python);

#endif
