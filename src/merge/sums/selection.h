/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a run is wanted: a window of time, what was asked for in some NVTX ranges, and call
 * paths by their frames. docs/WEIGHTS.md says what that is to each weight.
 *
 * - Calls, work and allocations are of the window in which they begin: what is counted in windows
 *   that follow each other adds up to the whole.
 * - A range holds what was called while a thread was in it.
 * - A path is wanted if a frame of it matches --filter; with --focus it begins with the outermost frame
 *   that matches; frames that match --hide are left out of it.
 */
#ifndef XT_MERGE_SELECTION_H
#define XT_MERGE_SELECTION_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"
#include "merge/naming/paths.h"

enum pattern { PATTERN_FILTER, PATTERN_FOCUS, PATTERN_HIDE, PATTERN_RANGE, PATTERNS };

/* As the user says it; all zeros is all of the run. */
struct wanted {
	const char *patterns[PATTERNS]; /* extended regular expressions; NULL: none */
	uint64_t from_ns;		/* from the start of the first log on … */
	uint64_t until_ns;		/* … and not included; 0: no end */
};

struct selection {
	const struct wanted *wanted;
	regex_t compiled[PATTERNS];
	bool has_matched[PATTERNS]; /* … anything */
	uint8_t *name_matches;	    /* by name of paths */
	size_t name_capacity;
	uint32_t *results; /* by path node: what became of it, + 1 */
	size_t result_capacity;
	uint32_t *chain;
	size_t chain_capacity;
	uint64_t seen_from_ns; /* of what began: the first and the last */
	uint64_t seen_until_ns;
	bool has_window_event;
	bool has_kept; /* a path is what is wanted */
};

#define WANTED_BYTES 1024 /* of wanted_describe() */

#define PATH_DROPPED (UINT32_MAX - 1)

/* Is anything left out at all? */
bool wanted_is_part(const struct wanted *wanted);

/* 0, -EINVAL if a pattern is no regular expression (which was reported), or -ENOMEM. */
int selection_new(struct selection **selection_out, const struct wanted *wanted,
		  struct report *report);
void selection_free(struct selection *selection);

static inline bool selection_has_paths(const struct selection *selection)
{
	return selection->wanted->patterns[PATTERN_FILTER] ||
	       selection->wanted->patterns[PATTERN_FOCUS] ||
	       selection->wanted->patterns[PATTERN_HIDE];
}

/* Is it chosen by more than time? */
static inline bool wanted_has_patterns(const struct wanted *wanted)
{
	return wanted->patterns[PATTERN_FILTER] || wanted->patterns[PATTERN_FOCUS] ||
	       wanted->patterns[PATTERN_RANGE];
}

/* Do paths become others? */
static inline bool wanted_changes_paths(const struct wanted *wanted)
{
	return wanted->patterns[PATTERN_FOCUS] || wanted->patterns[PATTERN_HIDE];
}

/* Does what begins at that time belong to the window? */
bool selection_has_time(struct selection *selection, uint64_t time_ns);

/* Does that NVTX range, by itself, match? Any if no range is asked for. */
bool selection_has_range(struct selection *selection, const char *label);

/* The node that stands for the path that ends in node, PATH_DROPPED if it is not wanted, or
 * PATH_FAILED. */
uint32_t selection_path(struct selection *selection, struct paths *paths, uint32_t node);

/* All is read. -EINVAL if nothing was found of what was asked for, which was reported, with what may
 * be meant instead; else 0. */
int selection_check(const struct selection *selection, const struct paths *paths,
		    const struct names *ranges, struct report *report);

/* "--from 1s --to 2s --filter x", as text of at most bytes. */
void wanted_describe(const struct wanted *wanted, char *out, size_t bytes);

extern const char *const pattern_options[PATTERNS];

#endif
