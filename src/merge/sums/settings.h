/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's choices, which hold for a whole run, and the selection among them.
 */
#ifndef XT_MERGE_SETTINGS_H
#define XT_MERGE_SETTINGS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"
#include "merge/base/weights.h"
#include "merge/naming/demangle.h"
#include "merge/naming/frames.h"
#include "merge/naming/paths.h"
#include "merge/read/iterations.h"

enum unit { UNIT_NS, UNIT_US };

/* --graph-stacks: the call path above the work of a graph. */
enum graph_stacks { GRAPH_STACKS_BOTH, GRAPH_STACKS_REPLAY, GRAPH_STACKS_CAPTURE };

/* --by: the root of call paths. */
enum by {
	BY_NONE /* paths of all processes are merged */,
	BY_DEVICE,
	BY_STREAM,
	BY_THREAD,
	BY_PROCESS,
	BY_RANK /* the process, without a rank */
};

/* --nvtx: the place of NVTX ranges in call paths. */
enum nvtx { NVTX_FRAMES, NVTX_ROOTS, NVTX_OFF };

/*
 * Selection: the part of a run that the user asked for, by time, NVTX range and call path.
 * docs/WEIGHTS.md says what a selection means for each weight.
 *
 * - Calls, work and allocations belong to the window in which they begin, so adjacent windows add
 *   up to the whole.
 * - A range contains the calls made while a thread was in it.
 * - A path is kept if one of its frames matches --filter. --focus makes it begin at the outermost
 *   matching frame. --hide removes matching frames.
 */

enum pattern { PATTERN_FILTER, PATTERN_FOCUS, PATTERN_HIDE, PATTERN_RANGE, PATTERNS };

/* The selection as the user entered it. Zeros select the whole run. */
struct wanted {
	const char *patterns[PATTERNS]; /* extended regular expressions, or NULL */
	uint64_t from_ns;		/* relative to the start of the first log */
	uint64_t until_ns;		/* exclusive; 0: no end */
};

struct settings {
	enum unit unit;
	enum weight weight;
	enum graph_stacks graph_stacks;
	enum by by;
	enum nvtx nvtx;
	struct table_choice {
		uint32_t top_count; /* rows of each; 0: the default of each output */
		bool has_all;	    /* of the text: --all */
	} tables;
	size_t html_bytes_max;
	/* By enum rule, in percent; 0: the default of the rule, below 0: the rule is off. */
	const double *finding_shares;
	struct frame_style frames;
	enum demangle_style names;
	uint32_t jobs;		     /* threads that read logs; 0: one per processor */
	const char *debug_directory; /* NULL: only /usr/lib/debug */
	bool is_redacted;
	struct wanted wanted;
	struct iterations_request iterations;
};

struct selection {
	const struct wanted *wanted;
	regex_t compiled[PATTERNS];
	bool has_matched[PATTERNS];  /* the pattern matched at least once */
	BY_ID(uint8_t) name_matches; /* pattern bits by name in paths */
	BY_ID(uint32_t) results;     /* resulting node + 1, by path node */
	uint32_t *chain;
	size_t chain_capacity;
	uint64_t seen_from_ns; /* first and last start time seen */
	uint64_t seen_until_ns;
	bool has_window_event;
	bool has_kept; /* at least one path was kept */
};

#define WANTED_BYTES 1024 /* buffer size for wanted_describe() */

#define PATH_DROPPED (UINT32_MAX - 1)

/* True if work is excluded. Hidden frames exclude none. */
bool wanted_is_part(const struct wanted *wanted);

/* Returns 0, or -EINVAL after reporting an invalid regular expression. */
int selection_new(struct selection **selection_out, const struct wanted *wanted,
		  struct report *report);
void selection_free(struct selection *selection);

static inline bool selection_has_paths(const struct selection *selection)
{
	return selection->wanted->patterns[PATTERN_FILTER] ||
	       selection->wanted->patterns[PATTERN_FOCUS] ||
	       selection->wanted->patterns[PATTERN_HIDE];
}

/* True if something other than time is selected. */
static inline bool wanted_has_patterns(const struct wanted *wanted)
{
	return wanted->patterns[PATTERN_FILTER] || wanted->patterns[PATTERN_FOCUS] ||
	       wanted->patterns[PATTERN_RANGE];
}

/* True if kept paths are changed. */
static inline bool wanted_changes_paths(const struct wanted *wanted)
{
	return wanted->patterns[PATTERN_FOCUS] || wanted->patterns[PATTERN_HIDE];
}

/* True if an event that begins at this time is in the window. */
bool selection_has_time(struct selection *selection, uint64_t time_ns);

/* True if this NVTX range itself matches, or if no range was asked for. */
bool selection_has_range(struct selection *selection, const char *label);

/* The node that replaces the path ending in node; PATH_DROPPED if the path is not selected. */
uint32_t selection_path(struct selection *selection, struct paths *paths, uint32_t node);

/*
 * Checks after reading that every part of the selection matched something. Otherwise reports an
 * error with similar names and returns -EINVAL.
 */
int selection_check(const struct selection *selection, const struct paths *paths,
		    const struct names *ranges, struct report *report);

/*
 * Formats the selection as options, such as "--from 1s --to 2s --filter x". out holds bytes bytes.
 */
void wanted_describe(const struct wanted *wanted, char *out, size_t bytes);

extern const char *const pattern_options[PATTERNS];

#endif
