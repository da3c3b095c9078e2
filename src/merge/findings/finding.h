/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finding: its text, its evidence and the places in the program. A place has the frames of a
 * callsite with their lines, and the line to look at.
 */
#ifndef XT_MERGE_FINDING_H
#define XT_MERGE_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/findings/rules.h"

#define FINDING_PLACES_MAX   5
#define FINDING_EVIDENCE_MAX 8

/* A function, as named in run->paths. */
struct finding_frame {
	uint32_t name;
	uint32_t file;	     /* NAME_EMPTY: unknown */
	uint32_t line;	     /* 0: unknown */
	bool says_line;	     /* the name already contains the line */
	bool is_own;	     /* the line is in the user's code, not in a library */
	bool is_interpreter; /* of the Python interpreter itself */
};

/* A line of the program that causes cost. Names are those of run->paths. */
struct finding_place {
	uint32_t node;		      /* the call in the tree of paths */
	uint32_t api;		      /* name of the function called */
	struct finding_frame at;      /* the one to look at */
	struct finding_frame *frames; /* outermost first */
	size_t frame_count;
	size_t frame_capacity;
	uint64_t cost_ns;
	uint64_t path_cost_ns; /* cost of the call stack shown; other stacks may call there too */
	uint64_t count;	       /* number of calls */
};

struct finding {
	enum rule rule;
	const char *process;	/* label of the process */
	size_t process_index;	/* index of that process */
	uint32_t process_count; /* number of processes with the same finding */
	uint64_t cost_ns;
	uint64_t whole_ns;   /* active time of these processes, see callsites_active_ns() */
	uint64_t step_count; /* steps that cost and whole are of, of all processes; 0: the run */
	bool is_outside;     /* of the part of the run outside its steps; step_count is 0 */
	char *what;
	char *headline; /* NULL: that of the rule */
	const char *advice;
	struct {
		struct {
			const char *name;
			uint64_t value;
		} list[FINDING_EVIDENCE_MAX];
		size_t count;
	} evidence;
	struct finding_place places[FINDING_PLACES_MAX]; /* most expensive first */
	size_t place_count;
	size_t place_all_count; /* number of places before the limit */
};

struct callsite;
struct paths;
struct reading;
struct run;

/*
 * Adds a finding about a process, with the advice of its rule. Returns NULL if the user's settings
 * do not report this cost. The pointer is valid until the next call.
 */
struct finding *finding_add(struct run *run, enum rule rule, size_t process_index, uint64_t cost_ns,
			    uint64_t whole_ns);

/* The mean cost in one step, if there are steps. */
static inline uint64_t finding_step_ns(const struct finding *finding)
{
	return finding->step_count ? finding->cost_ns / finding->step_count : 0;
}

/* The meaning of whole_ns, as in "of 22.943 ms active time". */
const char *finding_whole_text(const struct finding *finding);

/* "error", "high", "medium" or "low". */
const char *finding_severity(const struct finding *finding);

/* "33.6 ms (4.80 ms per step)", and its share, "41.0 %". The next call overwrites each. */
const char *finding_cost(const struct finding *finding);
const char *finding_share(const struct finding *finding);

/* "24.1 %". The second next call overwrites the buffer. */
const char *format_percent_of(uint64_t part, uint64_t whole);

void finding_add_evidence(struct finding *finding, const char *name, uint64_t value);

/* Frees the members, not the finding itself. */
void finding_free(struct finding *finding);

/* Fills in the place of a callsite, other than cost, count and node. */
void finding_resolve_line(struct reading *reading, const struct callsite *callsite,
			  struct finding_place *place);

/*
 * Adds the frames of a stack of reading->model, and moves the line of the place to the innermost
 * one in the user's own code.
 */
void finding_add_stack(struct reading *reading, uint32_t stack, struct finding_place *place);

/* Like finding_resolve_line(), but also adds the path to the tree and sets the node. */
void finding_place(struct reading *reading, const struct callsite *callsite,
		   struct finding_place *place);

/*
 * Name of the innermost frame that the paths of all places share, or NAME_EMPTY. For a single place
 * this is its innermost frame.
 */
uint32_t finding_common_caller(const struct paths *paths, const struct finding *finding);

/* True if both are the same call in the same line. */
bool finding_is_same_place(const struct finding_place *a, const struct finding_place *b);

/* "step (train.c:42)", or the function alone if the line is unknown. The caller frees it. */
char *finding_place_location(const struct paths *paths, const struct finding_place *place);

/*
 * The line to look at, such as "step (train.c:42)". If there are several places and no line is
 * known, the function that all are called from. The caller frees it.
 */
char *finding_location(const struct paths *paths, const struct finding *finding);

/*
 * The same, with the line of own code that calls a wrapper: "launch (llm.c:128) from matmul
 * (llm.c:159)", and "and others" if its work has other paths. For outputs. The caller frees it.
 */
char *finding_where(const struct run *run, const struct finding *finding);
char *finding_place_where(const struct run *run, const struct finding_place *place);

/* The only step, from 1, with nearly all of the cost; 0: none. For outputs, as the above. */
uint32_t finding_only_step(const struct run *run, const struct finding *finding);

/* finding->what, and a sentence about that step. The caller frees it. */
char *finding_what(const struct run *run, const struct finding *finding);

/* "short-kernels:step (train.py:42)" or "...:42), outside the steps". The caller frees it. */
char *finding_id(const struct paths *paths, const struct finding *finding);

#endif
