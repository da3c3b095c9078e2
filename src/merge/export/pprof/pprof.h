/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the pprof exporter: what it keeps, and what its files do for each other.
 */
#ifndef XT_MERGE_PPROF_H
#define XT_MERGE_PPROF_H

#include "merge/base/gzip.h"
#include "merge/base/names.h"
#include "merge/exporter.h"
#include "profile.pb-c.h"

struct pprof {
	struct gzip *gzip;
	uint8_t *packed; /* of one message */
	size_t packed_capacity;
	struct names strings;	/* a name is its index in the file */
	struct names functions; /* keys of those that were written: a name is an id */
	struct names locations;
	uint64_t time_ns; /* of the earliest start; 0: none yet */

	/* Of the process at hand: */
	uint64_t *mappings; /* by place in the model's modules: id, or 0 */
	size_t mapping_capacity;
	uint64_t *address_locations; /* by place in addresses: id, or 0 */
	size_t address_capacity;

	uint64_t mapping_count; /* of all processes */
	uint64_t *path;		/* locations of the sample at hand, outermost first */
	size_t path_length;
	size_t path_capacity;
};

/* The index of a text (any bytes) in the file; -1 if memory ran out. */
int64_t pprof_string(struct pprof *pprof, const char *text, size_t length);

/*
 * Writes a profile that has some of the whole: put together, such pieces are one profile. 0 or
 * -ENOMEM.
 */
int pprof_put(struct pprof *pprof, const Perftools__Profiles__Profile *piece);

/* Locations (pprof_locations.c). */

/* Gives the process its mappings, that of the program first. 0 or -ENOMEM. */
int pprof_begin_process(struct pprof *pprof, const struct process *process);

/* The location of a name that is no code, of an address (a place in process->addresses), and of an
 * XT_PYTHON_FRAME_ID, written when it is first met. 0 if memory ran out. */
uint64_t pprof_name_location(struct pprof *pprof, const char *text, size_t length);
uint64_t pprof_address_location(struct pprof *pprof, const struct process *process,
				uint32_t address);
uint64_t pprof_python_location(struct pprof *pprof, const struct process *process, uint32_t id);

/* Samples (pprof_samples.c): the exporter's total(). */
int pprof_put_sample(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node);

#endif
