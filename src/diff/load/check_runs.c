/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that runs can be compared: properties that runs must have in common, faults that no run
 * may have, and iterations that are the same unit of work on both sides.
 */
#include "diff/load/check_runs.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/script_name.h"

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

/* Adds to problems if iterations are not the requested ones, or may differ between the sides. */
static void check_iterations(const struct run_set *base, const struct run_set *new,
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

#define TEXT_BYTES     256
#define LAUNCHES_ALIKE 1.25 /* largest ratio of equal launch counts */
#define COUNTS_APART   1.6

/* The length of a program's name. That of Python may end with its version, which may differ. */
static size_t name_length(const char *program)
{
	static const char python[] = "python";
	size_t length = strlen(program);

	return strncmp(program, python, strlen(python)) ||
			       strspn(program + strlen(python), "0123456789.") !=
				       length - strlen(python)
		       ? length
		       : strlen(python);
}

/* Writes the program, followed by the script that it ran, or else only the program. */
static const char *program_of(const struct run_profile *run, char *out)
{
	size_t length = name_length(run->program) + 1;

	if (length >= TEXT_BYTES ||
	    !xt_script_find(out + length, TEXT_BYTES - length, run->program, run->command))
		return run->program;
	memcpy(out, run->program, length - 1);
	out[length - 1] = ' ';
	return out;
}

/* What runs must have in common. */
enum identity { PROGRAMS, GPUS, GPU_KINDS, DRIVERS, CUPTI_VERSIONS, FILTERS, IDENTITIES };

static const struct {
	const char *what;
	/* NULL: --allow-different permits a difference. Else values are not comparable at all. */
	const char *advice;
} identities[IDENTITIES] = {
	[PROGRAMS] = {"programs", NULL},
	[GPUS] = {"GPUs", NULL},
	[GPU_KINDS] = {"kinds of GPU", NULL},
	[DRIVERS] = {"CUDA drivers", NULL},
	[CUPTI_VERSIONS] = {"CUPTI versions", NULL},
	[FILTERS] = {"filters", "; profile both sides with the same options"},
};

static const char *identity_of(const struct run_profile *run, enum identity identity,
			       char out[TEXT_BYTES])
{
	switch (identity) {
	case PROGRAMS:
		return program_of(run, out);
	case GPUS:
		return run_profile_devices(run, out, TEXT_BYTES);
	case GPU_KINDS:
		return run->is_simulated ? "simulated GPU" : "real GPU";
	case DRIVERS:
		return run->driver;
	case CUPTI_VERSIONS:
		return run->cupti;
	default:
		return run->selection[0] ? run->selection : "none";
	}
}

/* All runs of both sides. */
struct all_runs {
	const struct run_set *sets[2];
	size_t count;
};

static const struct run_profile *run_at(const struct all_runs *all, size_t i)
{
	return i < all->sets[0]->count ? all->sets[0]->runs[i]
				       : all->sets[1]->runs[i - all->sets[0]->count];
}

/* " and 4 more", or "". */
static const char *others(size_t count)
{
	return count > 1 ? text_print(" and %zu more", count - 1) : "";
}

/* Reports a property that differs from that of the first run. */
static void check_identity(const struct all_runs *all, enum identity identity,
			   const struct check_options *options, struct problems *problems)
{
	const char *advice = identities[identity].advice;
	char room[2][TEXT_BYTES];
	const char *wanted = identity_of(run_at(all, 0), identity, room[0]), *text;
	const struct run_profile *first = NULL;
	size_t count = 0;

	if (options->allow_different && !advice)
		return;
	for (size_t i = 1; i < all->count; i++) {
		text = identity_of(run_at(all, i), identity, room[1]);
		if (!strcmp(text, wanted))
			continue;
		first = first ? first : run_at(all, i);
		count++;
	}
	if (!first)
		return;
	text = identity_of(first, identity, room[1]);
	problems_add(problems, "different %s: %s in %s, %s in %s%s%s", identities[identity].what,
		     wanted[0] ? wanted : "none", run_at(all, 0)->origin, text[0] ? text : "none",
		     first->origin, others(count),
		     advice	       ? advice
		     : options->advice ? options->advice
				       : "; see --allow-different");
}

/* The number of items of a total in the whole run; 0 if it is missing. */
static double count_of(const struct run_profile *run, const char *total)
{
	const struct profile_entry *entry = run_profile_find(run, LEVEL_TOTAL, total);

	return entry ? entry->whole_count : 0.0;
}

/* Faults that no run may have. */
enum fault { EMPTY, LACKS_RANGE, DAMAGED, DEGRADED, FAULTS };

static const struct {
	const char *what;
	bool is_warned;	 /* add the first warning of the log */
	bool is_allowed; /* --allow-degraded permits it */
} faults[FAULTS] = {
	[EMPTY] = {"no GPU work was recorded", false, false},
	[LACKS_RANGE] = {"the NVTX range of --iteration is missing or too rare", false, false},
	[DAMAGED] = {"the log is damaged", true, false},
	[DEGRADED] = {"the log is degraded", true, true},
};

static bool has_fault(const struct run_profile *run, enum fault fault)
{
	switch (fault) {
	case EMPTY:
		return !(count_of(run, "gpu-time") > 0.0);
	case LACKS_RANGE:
		return !strcmp(run->iterations, "missing");
	default:
		return run->trust == (fault == DAMAGED ? TRUST_DAMAGED : TRUST_DEGRADED);
	}
}

static void check_fault(const struct all_runs *all, enum fault fault,
			const struct check_options *options, struct problems *problems)
{
	const struct run_profile *first = NULL;
	const char *warning;
	size_t count = 0;

	if (faults[fault].is_allowed && options->allow_degraded)
		return;
	for (size_t i = 0; i < all->count; i++) {
		if (!has_fault(run_at(all, i), fault))
			continue;
		first = first ? first : run_at(all, i);
		count++;
	}
	if (!first)
		return;
	warning = faults[fault].is_warned && first->warning_count ? first->warnings[0] : "";
	problems_add(problems, "%s%s: %s%s%s%s", first->origin, others(count), faults[fault].what,
		     warning[0] ? ": " : "", warning,
		     faults[fault].is_allowed ? "; see --allow-degraded" : "");
}

/*
 * Periods are detected in each run separately. If two runs launch about as much in very different
 * numbers of iterations, their iterations are different units, such as steps and layers.
 */
static void check_periods(const struct all_runs *all, struct problems *problems)
{
	const struct run_profile *first = run_at(all, 0);

	for (size_t i = 1; i < all->count; i++) {
		const struct run_profile *run = run_at(all, i);
		double counts = (double)run->found_count / (double)first->found_count;
		double launches = count_of(run, "launches") / count_of(first, "launches");

		if (strcmp(run->iterations, "period") != 0 ||
		    strcmp(first->iterations, "period") != 0 || !(first->found_count > 0) ||
		    fabs(log(launches)) > log(LAUNCHES_ALIKE) ||
		    fabs(log(counts)) < log(COUNTS_APART))
			continue;
		problems_add(problems,
			     "different iterations: %s and %s launch about as much, but in %llu "
			     "and %llu iterations; name an NVTX range with --iteration",
			     run->origin, first->origin, (unsigned long long)run->found_count,
			     (unsigned long long)first->found_count);
		return;
	}
}

static double gpu_time_of(const struct run_profile *run)
{
	const struct profile_entry *gpu = run_profile_find(run, LEVEL_TOTAL, "gpu-time");

	return gpu ? gpu->whole_value : 0.0;
}

bool check_same_run(const struct run_profile *a, const struct run_profile *b)
{
	/* Synthetic logs may all have the same start time, so compare more than that. */
	return a->start_realtime_ns && a->start_realtime_ns == b->start_realtime_ns &&
	       !strcmp(a->host, b->host) && !strcmp(a->command, b->command) &&
	       gpu_time_of(a) == gpu_time_of(b);
}

/* The same run twice would look like runs without noise. */
static void check_duplicates(const struct all_runs *all, struct problems *problems)
{
	for (size_t i = 0; i < all->count; i++) {
		for (size_t k = i + 1; k < all->count; k++) {
			const struct run_profile *a = run_at(all, i), *b = run_at(all, k);

			if (a->history || b->history || !check_same_run(a, b))
				continue;
			problems_add(problems, "%s and %s are the same run", a->origin, b->origin);
			return;
		}
	}
}

/* Noise cannot be measured from one run. */
static void check_counts(const struct run_set *base, const struct run_set *new,
			 struct problems *problems)
{
	const struct run_set *sets[] = {base, new};
	size_t counts[2] = {0};
	bool has_history = false;

	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < sets[s]->count; i++) {
			counts[s] += !sets[s]->runs[i]->history;
			has_history |= sets[s]->runs[i]->history > 0;
		}
	}
	if (has_history || !counts[0] || !counts[1] || (counts[0] > 1 && counts[1] > 1))
		return;
	problems_add(problems,
		     "only one run of %s: cannot measure noise; record several with xtrace bench",
		     counts[0] > 1   ? "NEW"
		     : counts[1] > 1 ? "BASE"
				     : "each side");
}

void check_alike(const struct run_set *base, const struct run_set *new,
		 const struct check_options *options, struct problems *problems)
{
	const struct all_runs all = {{base, new}, base->count + new->count};

	for (int i = 0; all.count && i < IDENTITIES; i++)
		check_identity(&all, (enum identity)i, options, problems);
	if (all.count && options->is_per_iteration && !options->allow_different_iterations)
		check_periods(&all, problems);
}

void check_runs(const struct run_set *base, const struct run_set *new,
		const struct check_options *options, struct problems *problems)
{
	const struct all_runs all = {{base, new}, base->count + new->count};

	if (!base->count)
		problems_add(problems, "BASE has no runs");
	if (!new->count)
		problems_add(problems, "NEW has no runs");
	for (int f = 0; f < FAULTS; f++)
		check_fault(&all, (enum fault)f, options, problems);
	check_alike(base, new, options, problems);
	check_iterations(base, new, options, problems);
	check_duplicates(&all, problems);
	check_counts(base, new, problems);
}
