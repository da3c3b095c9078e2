/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the pprof exporter: what it keeps, and what its files do for each other.
 */
#ifndef XT_MERGE_PPROF_STATE_H
#define XT_MERGE_PPROF_STATE_H

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

#endif
