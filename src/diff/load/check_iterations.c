/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that an iteration is the same unit of work on both sides, and the one the user asked for.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diff/load/check_iterations.h"

#define COUNTS_ALIKE 1.05 /* largest ratio of equal iteration counts */

/* Is that run's count the median of its side? The larger of two in the middle counts. */
static bool is_median(const struct run_set *set, uint64_t found_count)
{
	size_t smaller = 0, equal = 0, count = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->runs[i]->history)
			continue;
		count++;
		smaller += set->runs[i]->found_count < found_count;
		equal += set->runs[i]->found_count == found_count;
	}
	return smaller <= count / 2 && count / 2 < smaller + equal;
}

struct iteration_counts check_count_iterations(const struct run_set *set)
{
	struct iteration_counts counts = {.least = UINT64_MAX};

	for (size_t i = 0; i < set->count; i++) {
		uint64_t found = set->runs[i]->found_count;

		/* Without a kind of iteration, the count is that of a failed search. */
		if (set->runs[i]->history || !strcmp(set->runs[i]->iterations, "none"))
			continue;
		if (is_median(set, found))
			counts.median = found;
		counts.least = found < counts.least ? found : counts.least;
		counts.most = found > counts.most ? found : counts.most;
	}
	return counts;
}

bool check_counts_differ(uint64_t a, uint64_t b)
{
	return a && b && (double)(a > b ? a : b) > COUNTS_ALIKE * (double)(a < b ? a : b);
}

/* Names the kind of iteration, for messages. */
static const char *kind_of(const struct run_profile *run)
{
	if (!run_profile_has_iterations(run))
		return "the whole run";
	return run->iteration_name[0] ? run->iteration_name : "the detected period";
}

/* The first run of a side with another kind of iteration than `run`, or NULL. */
static const struct run_profile *find_other_kind(const struct run_set *set,
						 const struct run_profile *run)
{
	for (size_t i = 0; i < set->count; i++)
		if (!set->runs[i]->history && strcmp(kind_of(set->runs[i]), kind_of(run)) != 0)
			return set->runs[i];
	return NULL;
}

/*
 * After a change, an iteration can be another unit of work. For example, the detected period of a
 * step that was split into two equal halves is half of it.
 */
static void check_alike_iterations(const struct run_set *base, const struct run_set *new,
				   const struct check_options *options, struct problems *problems)
{
	uint64_t b = check_count_iterations(base).median, n = check_count_iterations(new).median;
	const struct run_profile *first, *other;

	if (!options->is_per_iteration || !base->count || !new->count)
		return;
	first = base->runs[0];
	other = find_other_kind(base, first);
	if (!other)
		other = find_other_kind(new, first);
	if (other && run_profile_has_iterations(first) != run_profile_has_iterations(other))
		problems_add(problems,
			     "cannot compare iterations: none were found in %s; compare whole runs "
			     "(leave out --iteration and --warmup)",
			     run_profile_has_iterations(first) ? other->origin : first->origin);
	else if (options->allow_different_iterations)
		return;
	else if (other)
		problems_add(problems,
			     "cannot compare iterations: they are instances of '%s' in %s and of "
			     "'%s' in %s; compare whole runs (leave out --iteration and --warmup), "
			     "or see --allow-different-iterations",
			     kind_of(first), first->origin, kind_of(other), other->origin);
	else if (check_counts_differ(b, n))
		problems_add(problems,
			     "cannot compare iterations: a run has %llu in BASE and %llu in NEW; "
			     "compare whole runs (leave out --iteration and --warmup), or see "
			     "--allow-different-iterations",
			     (unsigned long long)b, (unsigned long long)n);
}

/* Compares range names. A '#' in a name matches any number. */
static bool range_matches(const char *name, const char *wanted)
{
	while (*name && *wanted) {
		bool number = isdigit((unsigned char)*wanted) || *wanted == '#';

		if (number ? *name != '#' : *name != *wanted)
			return false;
		name++;
		for (wanted++; number && (isdigit((unsigned char)*wanted) || *wanted == '#');)
			wanted++;
	}
	return !*name && !*wanted;
}

/* A missing range is reported by check_runs(). */
static bool lacks_wanted_range(const struct run_profile *run, const char *wanted)
{
	return strcmp(run->iterations, "missing") != 0 &&
	       (strcmp(run->iterations, "nvtx") != 0 ||
		!range_matches(run->iteration_name, wanted));
}

static bool lacks_wanted_warmup(const struct run_profile *run, const char *wanted)
{
	uint64_t count = strtoull(wanted, NULL, 10);

	return run_profile_has_iterations(run) &&
	       run->warmup_count != (count < run->found_count ? count : run->found_count - 1);
}

/*
 * Options for logs do not apply to existing profiles. Report a profile that was made with other
 * options.
 */
static void check_request(const struct run_set *set, const char *wanted, const char *option,
			  bool (*is_other)(const struct run_profile *run, const char *wanted),
			  struct problems *problems)
{
	for (size_t i = 0; wanted && i < set->count; i++) {
		if (set->runs[i]->history || !is_other(set->runs[i], wanted))
			continue;
		problems_add(
			problems,
			"%s: this profile was made without %s %s; make it again with that option",
			set->runs[i]->origin, option, wanted);
		return;
	}
}

void check_iterations(const struct run_set *base, const struct run_set *new,
		      const struct check_options *options, struct problems *problems)
{
	const struct run_set *sets[] = {base, new};

	for (int s = 0; s < 2; s++) {
		check_request(sets[s], options->iteration, "--iteration", lacks_wanted_range,
			      problems);
		check_request(sets[s], options->warmup, "--warmup", lacks_wanted_warmup, problems);
	}
	check_alike_iterations(base, new, options, problems);
}
