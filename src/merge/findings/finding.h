/* SPDX-License-Identifier: Apache-2.0 */
/* One finding: its text, its evidence and the places in the program. */
#ifndef XT_MERGE_FINDING_H
#define XT_MERGE_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/findings/rules.h"

#define FINDING_PLACES_MAX   5
#define FINDING_EVIDENCE_MAX 8

/* A call of what costs. Names are of run->paths. */
struct finding_place {
	uint32_t node;	   /* the call in the tree of paths */
	uint32_t api;	   /* name of the function called */
	uint32_t function; /* whose line is to be looked at: as paths have it … */
	uint32_t file;	   /* … NAME_EMPTY: not known */
	uint32_t line;	   /* … 0: not known */
	bool says_line;	   /* … the name does already */
	bool is_own;	   /* the user's, not a library's */
	struct finding_frame {
		uint32_t name;
		uint32_t file;
		uint32_t line;
		bool says_line;
		bool is_interpreter; /* Python's own, which says nothing of the program */
	} * frames;		     /* outermost first */
	size_t frame_count;
	size_t frame_capacity;
	uint64_t cost_ns;
	uint64_t
		path_cost_ns; /* of these, those of the call stack that is shown: others may call there, too */
	uint64_t count; /* of calls */
};

struct finding {
	enum rule rule;
	char *process;		/* label */
	size_t process_index;	/* of that process */
	uint32_t process_count; /* in which the same was found */
	uint64_t cost_ns;
	uint64_t whole_ns; /* for which these processes were at work: sites_whole_ns() */
	char *what;
	const char *advice;
	struct {
		const char *name;
		uint64_t value;
	} evidence[FINDING_EVIDENCE_MAX];
	size_t evidence_count;
	struct finding_place places[FINDING_PLACES_MAX]; /* the costliest first */
	size_t place_count;
	size_t place_all_count; /* … of so many */
};

/* "error", "high", "medium", "low". */
const char *finding_severity(const struct finding *finding);

/* The sentence of the finding. */
void finding_set_text(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void finding_add_evidence(struct finding *finding, const char *name, uint64_t value);

/* Frees what it holds, not itself. */
void finding_free(struct finding *finding);

#endif
