/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run profile: program, machine and completeness of one run, and the mean cost per iteration of
 * each row with its standard error. `xtrace merge --profile` makes it from logs. docs/DIFF.md
 * defines the document.
 *
 * A run set holds the runs of one side of a comparison.
 */
#ifndef XT_DIFF_RUN_PROFILE_H
#define XT_DIFF_RUN_PROFILE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/base/text.h"

/* NULL if it is not JSON. The caller calls cJSON_Delete(). */
static inline cJSON *json_parse(const char *text, size_t bytes)
{
	/* Otherwise a lack of memory would look like a damaged document. */
	cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = xt_malloc, .free_fn = free});
	return cJSON_ParseWithLength(text, bytes);
}

/* NULL if the object is NULL or has no such member. */
static inline cJSON *json_member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The same, if it is no text. */
static inline char *json_member_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(json_member(object, name));
}

#define FRAME_KEY_BOUND(frame_bytes) (4 * (frame_bytes) + 1)

/*
 * Writes the terminated key of a frame into out, which has FRAME_KEY_BOUND() bytes. Removes files
 * and lines, addresses, numbers of lambdas and closures, clone suffixes, Rust hashes, and numbers
 * in NVTX ranges and Triton names. Returns the length.
 */
size_t frame_key(char *out, const char *frame);

/*
 * Writes the stem of a key: the key without template arguments and parameters. It is used to match
 * paths whose keys differ. Returns the length, which is at most that of the key.
 */
size_t frame_stem(char *out, const char *key);

#define RUN_PROFILE_FORMAT  "xtrace-profile"
#define RUN_PROFILE_VERSION 2
#define WALL_VERSION	    2 /* before, wall left out the start of a run */

enum trust_word { TRUST_COMPLETE, TRUST_DEGRADED, TRUST_DAMAGED };

/* Unknown values are NAN. Errors are standard errors of the mean over iterations. */
struct quantity {
	double mean;
	double typical;	 /* mean without outliers; comparisons use it */
	double error;	 /* of typical */
	double residual; /* error without the variation common to all paths */
};

/* A row of a level. */
struct profile_entry {
	enum level level;
	const char *key; /* the same in all runs: frame_key() of each frame, separated by ';' */
	const char *const *frames; /* for display, "f (file.c:12)", outermost first */
	uint32_t frame_count;	   /* 1 if the level has no frames */
	struct quantity quantities[METRICS];
	double whole_value; /* of the whole run, including warm-up */
	double whole_count;
};

/* The profile owns all texts. */
struct run_profile {
	char *origin; /* file name, for messages */
	struct {
		char *text; /* not terminated */
		size_t bytes;
	} document;	     /* as read; a baseline stores it */
	const char *program; /* of the main process */
	const char *title;   /* its script, or else program */
	const char *command;
	struct {
		const char *host;
		const char *driver; /* CUDA version of the driver, such as "13000" */
		const char *cupti;
		const char **devices; /* names */
		size_t device_count;
		const char *device; /* the first, or "" */
		bool is_simulated;
		double clock_mhz; /* mean GPU clock during the run; NAN: unknown */
	} machine;
	uint64_t start_realtime_ns; /* 0: unknown */
	struct {
		enum trust_word word;
		const char **warnings;
		size_t warning_count;
	} trust;
	const char *selection; /* filter options of the profile; "": the whole run */
	struct {
		const char *kind; /* their source, "none", or "missing": no such range */
		const char *name;
		uint64_t found_count, warmup_count, used_count;
		bool is_whole; /* values are of the whole run */
	} iterations;
	bool lacks_wall; /* the document is older than WALL_VERSION; its wall is not read */
	/*
	 * 0: a run of its side. n: a run of the n-th older set of a baseline, only used for noise
	 */
	uint32_t history;
	struct profile_entry *entries; /* sorted by level and key */
	size_t entry_count;
	struct arena *memory; /* owns texts and lists */
};

/*
 * Parses a document and keeps a copy of it. Returns NULL after adding a problem. Free it with
 * run_profile_free(), which accepts NULL.
 */
struct run_profile *run_profile_read(const char *document, size_t document_bytes,
				     const char *origin, struct problems *problems);
void run_profile_free(struct run_profile *profile);

/* Are values per iteration, not per run? */
static inline bool run_profile_has_iterations(const struct run_profile *profile)
{
	const char *kind = profile->iterations.kind;

	return profile->iterations.used_count && !profile->iterations.is_whole && kind[0] &&
	       strcmp(kind, "none") != 0 && strcmp(kind, "missing") != 0;
}

/* The names of the devices: "A + B". Which one of several equal GPUs was used does not matter. */
const char *run_profile_devices(const struct run_profile *profile, char *out, size_t out_bytes);

/* The entry with that key, or NULL. */
const struct profile_entry *run_profile_find(const struct run_profile *profile, enum level level,
					     const char *key);

/*
 * Makes all values those of the whole run, warm-up included, and those of NVTX ranges the mean of
 * one instance. Errors stay relative: how much iterations differ still tells the noise of a run.
 */
void run_profile_use_whole(struct run_profile *profile);

/* All zeros is an empty set. */
struct run_set {
	struct run_profile **runs; /* owned */
	size_t count, capacity;
	struct problems notes; /* about the runs, for people */
};

/* Appends a run; the set then owns it. */
void run_set_add(struct run_set *set, struct run_profile *run);
void run_set_free(struct run_set *set);

#endif
