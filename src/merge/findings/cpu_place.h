/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source lines of sampled threads, as places of findings and of the headline.
 */
#ifndef XT_MERGE_CPU_PLACE_H
#define XT_MERGE_CPU_PLACE_H

#include "merge/findings/finding.h"
#include "merge/findings/finding_place.h"

struct idle_path;
struct reading;
struct run;

/*
 * Sets frames, function, file and line of a place: those of the thread and, if it waited, of the
 * thread that it waited for.
 */
void cpu_place(struct run *run, const struct idle_path *path, struct finding_place *place);

/*
 * Finds the line in which a thread spent most of [from_ns, until_ns). *share_ns_out is its time; 0:
 * the time was not sampled, and the place is not set. The caller frees place->frames. Returns 0 or
 * -ENOMEM.
 */
void cpu_place_of_span(struct reading *reading, uint32_t tid, uint64_t from_ns, uint64_t until_ns,
		       struct finding_place *place, uint64_t *share_ns_out);

#endif
