/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PPROF_LOCATIONS_H
#define XT_MERGE_PPROF_LOCATIONS_H

#include "merge/export/pprof/pprof_state.h"

/* Gives the process its mappings, that of the program first. 0 or -ENOMEM. */
int pprof_begin_process(struct pprof *pprof, const struct process *process);

/* The location of a name that is no code, of an address (a place in process->addresses), and of an
 * XT_PYTHON_FRAME_ID, written when it is first met. 0 if memory ran out. */
uint64_t pprof_name_location(struct pprof *pprof, const char *text, size_t length);
uint64_t pprof_address_location(struct pprof *pprof, const struct process *process,
				uint32_t address);
uint64_t pprof_python_location(struct pprof *pprof, const struct process *process, uint32_t id);

#endif
