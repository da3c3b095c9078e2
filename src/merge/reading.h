/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reading of a log: its events, joined and handed on as they come.
 */
#ifndef XT_MERGE_READING_H
#define XT_MERGE_READING_H

#include "merge/exporter.h"
#include "merge/labels.h"
#include "merge/memory.h"
#include "merge/threads.h"
#include "merge/timeline.h"
#include "merge/totals.h"

struct reading {
	struct run *run;
	struct sink *sinks;
	size_t sink_count;
	struct process process;
	struct model *model; /* process.model, to be written to */
	struct frames frames;
	struct totals totals;
	struct correlate *correlate;
	struct threads threads;
	struct memory memory;
	struct timeline *timeline;   /* NULL if no weight needs it */
	struct transfer_sum *copies; /* by XT_COPY_SHAPE_ID */
	struct transfer_sum sets[MEMORY_KINDS];
	int error; /* of a listener, which cannot return it */
};

/* Reads all events of the log of reading->process. 0 or -ENOMEM. */
int reading_events(struct reading *reading, struct report *report);

/* Frees what the reading made. */
void reading_free(struct reading *reading);

/*
 * Puts the totals of a log into the tree of run->paths: below the frames of the stack, the API's
 * name, for the work of graphs the path that made the node, and the leaf. 0 or -ENOMEM.
 */
int plant_totals(struct run *run, const struct process *process, const struct totals *totals);

#define ROOT_UNKNOWN UINT32_MAX	      /* a device that the log does not tell */
#define ROOT_HOST    (UINT32_MAX - 1) /* in place of a device: memory of the host */

/* The root of all paths that owner.root stands for, by the settings, of that work. */
uint32_t plant_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread);

#endif
