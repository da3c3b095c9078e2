/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how much runs of the same program differ.
 *
 * Two sets of runs are recorded by xtrace bench and compared by xtrace diff, each in a process of
 * its own. The comparison tells the smallest change that such runs can show, in each row.
 */
#include "ci.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "cli/message.h"
#include "cli/subprocess.h"
#include "diff/load/bench_runs.h"
#include "json_file.h"
#include "log/base/compare.h"

#define FIRST_SET  "base"
#define SECOND_SET "again"
/* Compares without judging: only problems of the runs make it fail. */
#define LENIENT_RULE "gpu-time > 1000000%"
/*
 * The share of the GPU time that may be in rows with more noise than the limit. If it is twice as
 * much, xtrace diff calls the rule inconclusive.
 */
#define NOISY_SHARE 0.05
#define MORE_NOISE  1.5 /* the factor for a limit that turns out to be too small */

/* Runs xtrace bench for one set. Returns 0, or another value after an error message. */
static int record(const struct ci_setup *setup, const char *folder, const char *set)
{
	char runs[16], *output = NULL;
	const char *arguments[16] = {"bench", "--no-diff", "-n", runs, "-o"};
	size_t count = 5;
	int status;

	snprintf(runs, sizeof(runs), "%u", setup->runs);
	if (asprintf(&output, "%s/%s", folder, set) < 0)
		return -ENOMEM;
	arguments[count++] = output;
	if (setup->is_simulated)
		arguments[count++] = "--simulate";
	/* Use the command as gate.sh does, so that the baseline has the same program. */
	arguments[count++] = "--";
	arguments[count++] = "/bin/sh";
	arguments[count++] = "-c";
	arguments[count] = setup->line;
	status = subprocess_run("bench", arguments, -1);
	free(output);
	return status;
}

/* Runs xtrace diff. *status_out is its exit status. Returns its document, or NULL. */
static cJSON *compare(const char *folder, const char *option, const char *rules, int *status_out)
{
	char *first = NULL, *second = NULL;
	int fd = memfd_create("diff", MFD_CLOEXEC);
	cJSON *root = NULL;
	struct stat about;
	char *text;

	*status_out = STATUS_FAILED;
	if (fd >= 0 && asprintf(&first, "%s/" FIRST_SET, folder) >= 0 &&
	    asprintf(&second, "%s/" SECOND_SET, folder) >= 0) {
		const char *const arguments[] = {"diff", "--json", "-",	   option,
						 rules,	 first,	   second, NULL};

		*status_out = subprocess_run("diff", arguments, fd);
	}
	if (fd >= 0 && !fstat(fd, &about) && about.st_size > 0) {
		text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (text != MAP_FAILED) {
			root = cJSON_ParseWithLength(text, (size_t)about.st_size);
			munmap(text, (size_t)about.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	free(first);
	free(second);
	return root;
}

/* Prints the problems of the runs, and the rules that did not pass. Returns how many. */
static size_t print_failures(const cJSON *document)
{
	const cJSON *problem, *rule;
	size_t count = 0;

	cJSON_ArrayForEach(problem, cJSON_GetObjectItem(document, "problems"))
	{
		print_error("cannot judge the runs: %s", cJSON_GetStringValue(problem));
		count++;
	}
	cJSON_ArrayForEach(rule, cJSON_GetObjectItem(document, "rules"))
	{
		const char *outcome = cJSON_GetStringValue(cJSON_GetObjectItem(rule, "outcome"));

		if (!outcome || !strcmp(outcome, "pass"))
			continue;
		print_error("runs of the same program differ: %s: %s",
			    cJSON_GetStringValue(cJSON_GetObjectItem(rule, "rule")),
			    cJSON_GetStringValue(cJSON_GetObjectItem(rule, "text")));
		count++;
	}
	return count;
}

/* One row of the comparison. */
struct row_noise {
	double detectable, share;
};

/* The largest first. */
static int compare_noise(const void *a, const void *b)
{
	double x = ((const struct row_noise *)a)->detectable;
	double y = ((const struct row_noise *)b)->detectable;

	return (x < y) - (x > y);
}

static double number(const cJSON *object, const char *name, double otherwise)
{
	const cJSON *item = cJSON_GetObjectItem(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

/* Takes the largest noise, leaving out rows with a small share of the GPU time. */
static double needed_limit(struct row_noise *rows, size_t count)
{
	double share = 0.0, seen = 0.0;

	qsort(rows, count, sizeof(*rows), compare_noise);
	for (size_t i = 0; i < count; i++)
		share += rows[i].share;
	for (size_t i = 0; i < count; i++) {
		seen += rows[i].share;
		if (seen > NOISY_SHARE * share)
			return rows[i].detectable;
	}
	return count ? rows[0].detectable : INFINITY;
}

static bool matches(const struct ci_rule *rule, const cJSON *row)
{
	const char *level = cJSON_GetStringValue(cJSON_GetObjectItem(row, "level"));
	const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(row, "key"));

	return level && key && !strcmp(level, rule->level) &&
	       (!rule->key || !strcmp(key, rule->key)) &&
	       cJSON_IsTrue(cJSON_GetObjectItem(row, "tested"));
}

/* True for a value that is the same in all runs of both sets. */
static bool is_equal(const cJSON *effect)
{
	return cJSON_IsTrue(cJSON_GetObjectItem(effect, "exact")) &&
	       number(effect, "change", NAN) == 0.0;
}

/* Collects the rows of a rule. Returns 0 or -ENOMEM. */
static int measure_rule(const struct ci_rule *rule, const cJSON *rows, struct ci_measured *measured)
{
	struct row_noise *noise = calloc((size_t)cJSON_GetArraySize(rows) + 1, sizeof(*noise));
	const cJSON *row;
	size_t count = 0;

	if (!noise)
		return -ENOMEM;
	*measured = (struct ci_measured){.low = INFINITY, .high = 0.0, .is_constant = true};
	cJSON_ArrayForEach(row, rows)
	{
		const cJSON *effect = cJSON_GetObjectItem(row, rule->metric);
		double base = number(effect, "base", NAN);

		if (!matches(rule, row) || isnan(base))
			continue;
		measured->is_constant &= is_equal(effect);
		/* A value of zero has no relative change. */
		if (rule->limit != CI_NO_MORE && !(base > 0.0))
			continue;
		/* diff calls noise unknown for values that are equal in few runs. */
		noise[count] =
			(struct row_noise){.detectable = number(effect, "detectable_ratio",
								is_equal(effect) ? 0.0 : INFINITY),
					   .share = number(row, "share", 0.0)};
		measured->low = fmin(measured->low, noise[count].detectable);
		measured->high = fmax(measured->high, noise[count].detectable);
		count++;
	}
	measured->row_count = count;
	measured->needed = needed_limit(noise, count);
	free(noise);
	return 0;
}

/* Reads a number of each measured run of a set from its bench.json. Returns how many. */
static size_t read_set(const char *folder, const char *set, const char *name, double *values)
{
	char *path = NULL;
	cJSON *root = NULL;
	const cJSON *run;
	size_t count = 0;

	if (asprintf(&path, "%s/%s", folder, set) >= 0)
		root = bench_runs_read_json(path, BENCH_FILE);
	cJSON_ArrayForEach(run, cJSON_GetObjectItem(root, "runs"))
	{
		if (!cJSON_IsTrue(cJSON_GetObjectItem(run, "warmup")) && count < BENCH_RUNS_MAX)
			values[count++] = number(run, name, NAN);
	}
	cJSON_Delete(root);
	free(path);
	return count;
}

static double spread_of(const char *folder, const char *name)
{
	double values[2 * BENCH_RUNS_MAX];
	size_t count = read_set(folder, FIRST_SET, name, values);

	count += read_set(folder, SECOND_SET, name, values + count);
	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), compare_doubles);
	return (values[count - 1] - values[0]) / values[count / 2];
}

/* Learns from the comparison. Returns 0, or another value after an error message. */
static int learn(const char *folder, struct ci_learned *learned)
{
	int status;
	cJSON *document = compare(folder, "--fail-on", LENIENT_RULE, &status);
	const cJSON *rows = cJSON_GetObjectItem(document, "rows");
	int error = 0;

	if (status != STATUS_OK || !rows) {
		if (!print_failures(document))
			print_error("cannot compare the runs: xtrace diff ended with status %d",
				    status);
		error = -EINVAL;
	}
	for (size_t i = 0; !error && i < CI_RULE_COUNT; i++)
		error = measure_rule(&ci_rules[i], rows, &learned->rules[i]);
	learned->gpu_spread = spread_of(folder, "gpu_time_ns");
	learned->wall_spread = spread_of(folder, "wall_ns");
	cJSON_Delete(document);
	return error;
}

/* A check of GPU time needs a limit for it. Returns 0, or -EINVAL after an error message. */
static int check_noise(const struct ci_measured *measured)
{
	if (isfinite(ci_limit(&ci_rules[0], measured)))
		return 0;
	if (!measured->row_count || isinf(measured->needed))
		print_error("cannot set a limit for gpu-time: the noise is unknown; record more "
			    "runs with -n");
	else
		print_error("cannot set a limit for gpu-time: the runs are too noisy to detect "
			    "less than %.0f %%; record longer runs, or more with -n",
			    measured->needed * 100.0);
	return -EINVAL;
}

int ci_measure(const struct ci_setup *setup, const char *folder, struct ci_learned *learned)
{
	int error;

	printf("Set 1 of 2: ");
	fflush(stdout);
	error = record(setup, folder, FIRST_SET);
	if (!error) {
		printf("\nSet 2 of 2, to measure the noise: ");
		fflush(stdout);
		error = record(setup, folder, SECOND_SET);
	}
	if (!error)
		error = learn(folder, learned);
	return error ? error : check_noise(&learned->rules[0]);
}

/* The place of the rule in ci_rules, or CI_RULE_COUNT. */
static size_t find_rule(const char *text)
{
	size_t i, length;

	for (i = 0; text && i < CI_RULE_COUNT; i++) {
		length = strlen(ci_rules[i].subject);
		if (!strncmp(text, ci_rules[i].subject, length) && text[length] == ' ')
			return i;
	}
	return CI_RULE_COUNT;
}

/*
 * Relaxes a rule that unchanged runs do not pass. A number that may not grow gets no rule. A limit
 * that is too small for the noise grows. Returns false if the runs really differ.
 */
static bool relax(const cJSON *rule, struct ci_learned *learned)
{
	const char *outcome = cJSON_GetStringValue(cJSON_GetObjectItem(rule, "outcome"));
	size_t place = find_rule(cJSON_GetStringValue(cJSON_GetObjectItem(rule, "rule")));

	if (!outcome || !strcmp(outcome, "pass"))
		return true;
	if (place == CI_RULE_COUNT)
		return false;
	if (ci_rules[place].limit == CI_NO_MORE) {
		learned->rules[place].is_constant = false;
		return true;
	}
	learned->rules[place].needed =
		fmax(learned->rules[place].needed * MORE_NOISE, ci_rules[place].least);
	return !strcmp(outcome, "unknown");
}

int ci_verify(const char *folder, const char *rules, struct ci_learned *learned)
{
	int status, error;
	cJSON *document = compare(folder, "--rules", rules, &status);
	bool can_relax = document && !cJSON_GetArraySize(cJSON_GetObjectItem(document, "problems"));
	const cJSON *rule;

	cJSON_ArrayForEach(rule, cJSON_GetObjectItem(document, "rules"))
	{
		can_relax &= relax(rule, learned);
	}
	error = status == STATUS_OK ? 0 : can_relax ? -EAGAIN : -EINVAL;
	if (error == -EINVAL && !print_failures(document))
		print_error("cannot check the rules: xtrace diff ended with status %d", status);
	if (error == -EAGAIN && check_noise(&learned->rules[0]))
		error = -EINVAL;
	cJSON_Delete(document);
	return error;
}

int ci_save_baseline(const char *folder, const char *path)
{
	const char *arguments[] = {"baseline", "save", "--quiet",	"--label",
				   "ci init",  path,   NULL /* runs */, NULL};
	char *runs = NULL;
	int status;

	if (asprintf(&runs, "%s/" FIRST_SET ",%s/" SECOND_SET, folder, folder) < 0)
		return -ENOMEM;
	arguments[6] = runs;
	status = subprocess_run("baseline", arguments, -1);
	free(runs);
	return status;
}
