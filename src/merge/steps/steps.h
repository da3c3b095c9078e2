/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: the iterations of a process as a device sees them, and what a device did in each.
 *
 * A step begins on a device with the first work that was launched in it. Idle time before that work
 * belongs to the step as far as the CPU was already in it. So a step lasts as long as the device
 * takes for it, even if the CPU runs ahead. The steps of a device follow each other without gaps.
 * A step ends where the next one begins. The last one ends with the work before the first work
 * launched after the iterations.
 *
 * Each moment of a step has one part. If several kinds of work run, compute comes before
 * collectives, and collectives before copies and memsets. If none runs, the part is the cause of
 * the idle time. So the parts of a step add up to its time exactly.
 */
#ifndef XT_MERGE_STEPS_H
#define XT_MERGE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idle/idle.h"
#include "merge/read/iterations.h"
#include "merge/sums/exporter.h"

struct json;

enum step_part {
	STEP_COMPUTE,
	STEP_COLLECTIVE, /* without compute */
	STEP_COPY,	 /* without compute and collectives */
	STEP_WORK_PARTS,
	STEP_IDLE = STEP_WORK_PARTS, /* + enum idle_class */
	/* No call is known, recording was paused, or work is missing. */
	STEP_UNEXPLAINED = STEP_IDLE + IDLE_CALL_UNKNOWN,
	STEP_PARTS = STEP_IDLE + IDLE_CLASSES
};

_Static_assert(STEP_UNEXPLAINED == STEP_PARTS - 1, "the last part is what is not explained");

/* "compute", "idle: launch late (CPU busy)", "not explained". */
extern const char *const step_part_names[STEP_PARTS];

#define STEPS_MAX	  (1u << 16) /* rows of each device and kind; later steps have only sums */
#define STEPS_SLOW	  3	     /* slow steps of each device that are explained */
#define STEP_NOTES_MAX	  (1u << 20) /* notes of one step; later events have none */
#define STEPS_DEVICES_MAX 64	     /* larger device numbers have no steps */

struct step {
	uint32_t process; /* index in steps.processes */
	uint32_t device;
	uint32_t number; /* from 0 */
	bool is_warmup;
	uint64_t start_ns; /* on the clock of the log */
	uint64_t parts_ns[STEP_PARTS];
	uint64_t wall_ns; /* their sum */
};

/*
 * Time of a part of a step that belongs to a call path: that of the work that ran, or that the idle
 * time belongs to. If work of one part overlaps, the time belongs to the work that ends last.
 */
struct step_note {
	uint32_t place; /* index in the aggregate of its log; later: node in run->paths */
	uint32_t part;	/* enum step_part */
	uint64_t ns;
};

/* Sorted by place and part, once joined. */
struct step_notes {
	LIST(struct step_note);
};

/* A slow step, with all of its time. */
struct slow_step {
	struct step step;
	struct step_notes notes;
};

struct step_sums {
	uint64_t count, wall_ns;
	uint64_t parts_ns[STEP_PARTS];
};

/* All steps of a device, also those without a row. */
struct step_device_sums {
	uint32_t process, device;
	uint64_t busy_count; /* steps in which it ran work */
	struct step_sums warmup, steady;
};

/* A device of the log that is being read. */
struct step_device {
	bool has_run, is_in_step;
	size_t next;	     /* iteration that has not begun */
	uint64_t settled_ns; /* all time before it is in a step or in none */
	/* The work of each part that ends last: its end and its place. */
	uint64_t until_ns[STEP_WORK_PARTS];
	uint32_t places[STEP_WORK_PARTS];
	struct step_device_sums sums;
	struct step step;	 /* the one that lasts */
	struct step_notes notes; /* of it */
	LIST(struct step) ended;
	struct slow_step slow[STEPS_SLOW]; /* slowest first */
	BY_ID(uint64_t) sums_ns;	   /* of the steps after the warm-up, by place and part */
};

struct step_process {
	const char *label;
	const struct input *log;
	int64_t origin_ns;
	enum iterations_source source;
	char *name; /* of the NVTX range, or NULL; owned */
	uint64_t found_count, warmup_count;
};

/*
 * Sums of a call path over the steps after the warm-up, of all processes, and of devices that have
 * such steps. Idle times of known causes add up to those of the budget.
 */
struct step_weights {
	uint64_t gpu_ns, count, idle_ns;
};

/* The log that is being read. */
struct steps_reading {
	const struct iterations *iterations;
	bool has_ended;
	uint64_t from_ns;	     /* the user left out what is before */
	bool is_cut;		     /* or what is after some time */
	struct step_device *devices; /* STEPS_DEVICES_MAX */
	uint32_t *nodes;	     /* by index in the aggregate: node in run->paths + 1 */
	size_t node_capacity;
	size_t sums_from; /* sums from here on have no nodes yet */
};

/* The state of analysis_steps. */
struct steps {
	LIST(struct step) all;	     /* by process, device and number */
	LIST(struct slow_step) slow; /* of each device the slowest ones */
	LIST(struct step_process) processes;
	LIST(struct step_device_sums) devices; /* by process */
	struct step_notes sums;		       /* of the steps after the warm-up */
	BY_ID(struct step_weights) weights;    /* by node in run->paths */
	struct step_sums warmup, steady; /* of all devices. A step counts once on each of them */
	struct interner uuids;		 /* of GPUs with steps after the warm-up */
	size_t gpu_count;		 /* with steps after the warm-up; processes may share one */
	/* Of the steps after the warm-up, by their time. The median is that of the rows. */
	const struct step *median, *slowest;
	struct steps_reading reading;
};

extern const struct exporter analysis_steps;

/* Returns the steps, or NULL if the run has none after a warm-up. */
const struct steps *steps_of(const struct run *run);

/* The median of the steps on the same device after the warm-up. */
const struct step *steps_median(const struct steps *steps, const struct step *like);

/* Whether all processes have the same steps, so that their numbers mean the same in each. */
bool steps_are_alike(const struct run *run);

/*
 * Adds up the steps after the warm-up of the log that was read last, until the next one begins.
 * Returns the number of its devices that have such steps.
 */
size_t steps_of_log(const struct run *run, struct step_sums *sums);

/* Idle time of known causes in these steps, by total of the log. The caller frees it. */
uint64_t *steps_idle_of_log(const struct run *run, size_t total_count);

/*
 * "20 steps of 12.1 ms (median; slowest 14.0 ms, step 7), GPU busy 15 %". gpu_count: those of the
 * run. run_ns: its time, as sum over the devices. The caller frees it.
 */
char *steps_text(const struct steps *steps, size_t gpu_count, uint64_t run_ns);

/* Describes the steps of the warm-up. NULL if there are none. The caller frees it. */
char *steps_warmup_text(const struct steps *steps);

/* Writes the figures of steps_text() as an object "steps". */
void steps_put_json(struct json *json, const struct steps *steps, size_t gpu_count,
		    uint64_t run_ns);

/* The time of a step, or of several, in which the device ran anything. */
uint64_t step_busy_ns(const uint64_t parts_ns[STEP_PARTS]);

/* The time in which it was idle, for known causes. */
uint64_t step_idle_ns(const uint64_t parts_ns[STEP_PARTS]);

#endif
