/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs must have in common, as a table.
 */
#include "diff/check_runs.h"

#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 256

static const char *program(const struct run_profile *run, char *out)
{
	(void)out;
	return run->program;
}

static const char *driver(const struct run_profile *run, char *out)
{
	(void)out;
	return run->driver;
}

static const char *cupti(const struct run_profile *run, char *out)
{
	(void)out;
	return run->cupti;
}

static const char *simulated(const struct run_profile *run, char *out)
{
	(void)out;
	return run->is_simulated ? "a simulated GPU" : "a real GPU";
}

/* The names of the devices; which one of several alike it was does not matter. */
static const char *devices(const struct run_profile *run, char *out)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t d = 0; d < run->device_count && used < TEXT_BYTES; d++)
		used += (size_t)snprintf(out + used, TEXT_BYTES - used, "%s%s", d ? " + " : "",
					 run->devices[d].name);
	return out;
}

static const char *iterations(const struct run_profile *run, char *out)
{
	if (!strcmp(run->iterations, "nvtx"))
		snprintf(out, TEXT_BYTES, "the NVTX range \"%s\"", run->iteration_name);
	else
		snprintf(out, TEXT_BYTES, "%s",
			 strcmp(run->iterations, "period") ? "none" : "what repeats itself");
	return out;
}

static const struct {
	const char *what;
	const char *(*text)(const struct run_profile *run, char *out);
	bool is_needed; /* whatever is allowed: numbers mean something else */
} identities[] = {
	{"programs", program, false},	     {"GPUs", devices, false},
	{"kinds of GPU", simulated, false},  {"CUDA drivers", driver, false},
	{"versions of CUPTI", cupti, false}, {"iterations", iterations, true},
};

static void check_identity(const struct run_profile *a, const struct run_profile *b,
			   const struct check_options *options, struct problems *problems)
{
	for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
		char room[2][TEXT_BYTES];
		const char *x = identities[i].text(a, room[0]);
		const char *y = identities[i].text(b, room[1]);

		if (!strcmp(x, y) || (options->allow_different && !identities[i].is_needed))
			continue;
		problems_add(problems, "different %s: %s has %s, %s has %s%s", identities[i].what,
			     a->origin, x[0] ? x : "none", b->origin, y[0] ? y : "none",
			     identities[i].is_needed ? "; see --iteration"
						     : "; see --allow-different");
	}
}

static void check_run(const struct run_profile *run, const struct check_options *options,
		      struct problems *problems)
{
	static const char *const words[] = {
		[TRUST_DEGRADED] = "degraded", [TRUST_DAMAGED] = "damaged"};
	const struct profile_entry *gpu = run_profile_find(run, LEVEL_TOTAL, "gpu-time");

	if (!gpu || !(gpu->whole_count > 0.0))
		problems_add(problems, "%s: an empty run, without any work of a GPU", run->origin);
	if (run->trust != TRUST_COMPLETE && !options->allow_degraded)
		problems_add(problems, "%s: the log is %s%s%s; see --allow-degraded", run->origin,
			     words[run->trust], run->warning_count ? ": " : "",
			     run->warning_count ? run->warnings[0] : "");
}

void check_runs(const struct run_set *base, const struct run_set *new,
		const struct check_options *options, struct problems *problems)
{
	const struct run_set *sets[] = {base, new};
	const struct run_profile *first = base->count ? base->runs[0] : NULL;
	bool has_history = false;

	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < sets[s]->count; i++) {
			const struct run_profile *run = sets[s]->runs[i];

			has_history |= run->history > 0;
			check_run(run, options, problems);
			if (first && run != first)
				check_identity(first, run, options, problems);
		}
		if (!sets[s]->count)
			problems_add(problems, "there is no run of %s", s ? "NEW" : "BASE");
	}
	if (base->count + new->count == 2 && !has_history)
		problems_add(problems, "one run of each side: how much runs differ by themselves "
				       "cannot be told; record several, as xtrace bench does");
}
