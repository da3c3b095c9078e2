/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which logs belong together. Logs of several programs or jobs can be read at once, but "the run"
 * then has no length, and their processes cannot be compared.
 */
#ifndef XT_MERGE_PROGRAMS_H
#define XT_MERGE_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

struct input;

/* Zeros are valid. */
struct programs {
	struct program_span {
		const struct input *log;
		int64_t start_ns, end_ns; /* on the common clock: to its last activity */
		int64_t last_ns;	  /* until then it existed at least */
		size_t program;
	} * spans;
	size_t span_count, span_capacity;
	size_t count;	  /* of programs and jobs that have nothing to do with each other */
	uint64_t wall_ns; /* of one: from its start to its end. Of several: without gaps */
};

/* Adds the time in which a process ran. The program is set later. */
void programs_add(struct programs *programs, struct program_span span);

/* Sets count and wall_ns. */
void programs_finish(struct programs *programs);

void programs_free(struct programs *programs);

#endif
