/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the pprof exporter.
 */
#ifndef XT_MERGE_PPROF_STATE_H
#define XT_MERGE_PPROF_STATE_H

#include "merge/base/gzip.h"
#include "merge/base/names.h"
#include "merge/exporter.h"
#include "profile.pb-c.h"

struct pprof {
	struct gzip *gzip;
	uint8_t *packed; /* buffer for one message */
	size_t packed_capacity;
	struct names strings;	/* a name is the string's index in the file */
	struct names functions; /* keys of written functions: a name is an id */
	struct names locations;
	uint64_t time_ns; /* earliest start; 0: none yet */

	/* State of the current process: */
	uint64_t *mappings; /* by index in the model's modules: id, or 0 */
	size_t mapping_capacity;
	uint64_t *address_locations; /* by index in addresses: id, or 0 */
	size_t address_capacity;

	uint64_t mapping_count; /* of all processes */
	uint64_t *path;		/* locations of the current sample, outermost first */
	size_t path_length;
	size_t path_capacity;
};

#endif
