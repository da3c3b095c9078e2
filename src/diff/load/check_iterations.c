/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that an iteration is the same unit of work on both sides, and the one the user asked for.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diff/load/check_iterations.h"

#define COUNTS_ALIKE 1.05 /* largest ratio of equal iteration counts */

/* Range of the iteration counts of a side. */
struct counts {
	uint64_t least, most;
};

static struct counts count_iterations(const struct run_set *set)
{
	struct counts counts = {UINT64_MAX, 0};

	for (size_t i = 0; i < set->count; i++) {
		uint64_t found = set->runs[i]->found_count;

		if (set->runs[i]->history)
			continue;
		counts.least = found < counts.least ? found : counts.least;
		counts.most = found > counts.most ? found : counts.most;
	}
	return counts;
}

static bool are_disjoint(const struct counts *less, const struct counts *more)
{
	return less->most && (double)more->least > COUNTS_ALIKE * (double)less->most;
}

bool check_counts_differ(const struct run_set *base, const struct run_set *new)
{
	const struct counts b = count_iterations(base), n = count_iterations(new);

	return base->count && new->count && (are_disjoint(&b, &n) || are_disjoint(&n, &b));
}

/*
 * Were the iterations of all runs detected as a period, and are all command lines *command? Sets
 * *command if it is NULL.
 */
static bool has_detected_period(const struct run_set *set, const char **command)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct run_profile *run = set->runs[i];

		if (run->history)
			continue;
		*command = *command ? *command : run->command;
		if (strcmp(run->iterations, "period") != 0 || strcmp(run->command, *command) != 0)
			return false;
	}
	return true;
}

/*
 * After a change, the detected period can be another unit. For example, a step split into two equal
 * halves has half the period. The same command line should do the same number of iterations.
 */
static void check_detected_periods(const struct run_set *base, const struct run_set *new,
				   const struct check_options *options, struct problems *problems)
{
	const struct counts b = count_iterations(base), n = count_iterations(new);
	const char *command = NULL;

	if (options->allow_different || !check_counts_differ(base, new) ||
	    !has_detected_period(base, &command) || !has_detected_period(new, &command))
		return;
	problems_add(problems,
		     "different iterations: the detected period occurs %llu times in a run of BASE "
		     "and %llu "
		     "times in a run of NEW, with the same arguments; name an NVTX range with "
		     "--iteration, or "
		     "see --allow-different",
		     (unsigned long long)b.most, (unsigned long long)n.most);
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
	check_detected_periods(base, new, options, problems);
}
