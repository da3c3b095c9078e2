/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and checks runs. Each log is profiled by a forked process, which runs xtrace merge and
 * writes the profile into a memfd. Several processes run at a time.
 *
 * Checks properties that runs must have in common, faults that no run may have, and iterations that
 * are the same unit of work on both sides.
 */
#include "diff/load/load_runs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "diff/load/baseline.h"
#include "log/base/script_name.h"

#define FILE_BYTES_MAX (64 << 20)

cJSON *bench_runs_read_json(const char *folder, const char *name, const char *format)
{
	char *path = xt_asprintf("%s/%s", folder, name), *text = NULL;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	cJSON *root = NULL;
	const char *found;
	struct stat about;
	size_t bytes;

	if (file >= 0 && !fstat(file, &about) && S_ISREG(about.st_mode) &&
	    about.st_size <= FILE_BYTES_MAX)
		text = file_read(file, &bytes);
	if (text)
		root = json_parse(text, bytes);
	free_all(text, path);
	if (file >= 0)
		close(file);
	found = json_member_text(root, "format");
	if (found && !strcmp(found, format))
		return root;
	cJSON_Delete(root);
	return NULL;
}

/* Mean SM clock of all GPUs from gpu.json of a trace directory, in MHz. NAN if unknown. */
static double read_clock_mhz(const char *path)
{
	cJSON *gpu = bench_runs_read_json(path, "gpu.json", "xtrace.gpu");
	const cJSON *device;
	double sum = 0.0, count = 0.0;

	cJSON_ArrayForEach(device, json_member(gpu, "devices"))
	{
		const cJSON *mean = json_member(json_member(device, "sm_mhz"), "mean");

		if (!cJSON_IsNumber(mean))
			continue;
		sum += mean->valuedouble;
		count += 1.0;
	}
	cJSON_Delete(gpu);
	return count > 0.0 ? sum / count : NAN;
}

#define ARGUMENTS_MAX 16
#define MERGE_FAILED  2 /* lowest exit status without output */

struct job {
	char *path;
	struct run_set *set;
	size_t place; /* index in the set */
	pid_t pid;
	int output;
};

struct jobs {
	LIST(struct job);
};

static void read_profile(struct run_set *set, const char *document, size_t document_bytes,
			 const char *origin, struct problems *problems)
{
	struct run_profile *run = run_profile_read(document, document_bytes, origin, problems);

	if (run)
		run_set_add(set, run);
}

/* Documents with runs, by their "format" member. */
static const struct {
	const char *format;
	void (*read)(struct run_set *set, const char *document, size_t document_bytes,
		     const char *origin, struct problems *problems);
} run_formats[] = {{RUN_PROFILE_FORMAT, read_profile}, {BASELINE_FORMAT, baseline_read_side}};

#define RUN_FORMATS (sizeof(run_formats) / sizeof(run_formats[0]))

/* Reads a document of any known format. */
static void read_document(struct run_set *set, const char *path, struct problems *problems)
{
	size_t bytes = 0, f = 0;
	char *text = file_read_path(path, &bytes);
	cJSON *json = text ? json_parse(text, bytes) : NULL;
	const char *format = json_member_text(json, "format");

	while (f < RUN_FORMATS && (!format || strcmp(run_formats[f].format, format) != 0))
		f++;
	if (!text)
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
	else if (f == RUN_FORMATS)
		problems_add(problems, "%s is not a log, a run profile or a baseline", path);
	else
		run_formats[f].read(set, text, bytes, path, problems);
	cJSON_Delete(json);
	free(text);
}

static bool is_document(const char *path)
{
	char first[2];

	return file_start(path, 0, first, sizeof(first)) && *first && strchr("{ \n", *first);
}

bool load_is_recording(const struct run_profile *run)
{
	return !access(run->origin, R_OK) && !is_document(run->origin);
}

/* Adds a job for a log, whose path it takes over, and reserves the place of its run in the set. */
static void add_log(struct jobs *jobs, struct run_set *set, char *path)
{
	list_reserve(*jobs, jobs->count + 1);
	run_set_add(set, NULL);
	jobs->list[jobs->count++] =
		(struct job){.path = path, .set = set, .place = set->count - 1, .output = -1};
}

/*
 * A bench directory contains several runs, of which those of the warm-up do not count. Any other
 * directory is one run.
 */
static void add_directory(struct jobs *jobs, struct run_set *set, const char *path,
			  struct problems *problems)
{
	cJSON *bench = bench_runs_read_json(path, "bench.json", "xtrace.bench"), *run;

	if (!bench) {
		add_log(jobs, set, xt_strdup(path));
	} else if (json_member(bench, "sides")) {
		problems_add(problems, "%s contains two sides: name %s/base or %s/new", path, path,
			     path);
	} else if (!cJSON_IsTrue(json_member(bench, "finished"))) {
		problems_add(problems, "%s: the benchmark was not completed; run it again", path);
	} else {
		cJSON_ArrayForEach(run, json_member(bench, "runs"))
		{
			const char *name = json_member_text(run, "path");

			if (name && !cJSON_IsTrue(json_member(run, "warmup")))
				add_log(jobs, set, xt_asprintf("%s/%s", path, name));
		}
	}
	cJSON_Delete(bench);
}

/* Reads a document now; add a job for a log. */
static void add_name(struct jobs *jobs, struct run_set *set, const char *path,
		     struct problems *problems)
{
	struct stat status;

	if (stat(path, &status) < 0)
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
	else if (S_ISDIR(status.st_mode))
		add_directory(jobs, set, path, problems);
	else if (is_document(path))
		read_document(set, path, problems);
	else
		add_log(jobs, set, xt_strdup(path));
}

/* Returns whether the job runs. */
static bool start(struct job *job, const struct load_options *options, struct problems *problems)
{
	const char *arguments[ARGUMENTS_MAX] = {"merge", "-q",	 "--profile", "-",
						"--by",	 "none", "--lines",   "on"};
	int count = 8;

	if (options->iteration) {
		arguments[count++] = "--iteration";
		arguments[count++] = options->iteration;
	}
	if (options->warmup) {
		arguments[count++] = "--warmup";
		arguments[count++] = options->warmup;
	}
	arguments[count++] = "--";
	arguments[count] = job->path;
	job->output = memfd_create("xtrace profile", MFD_CLOEXEC);
	job->pid = job->output < 0 ? -errno : subprocess_start("merge", arguments, job->output);
	if (job->pid > 0)
		return true;
	problems_add(problems, "cannot start a process for %s: %s", job->path, strerror(-job->pid));
	job->pid = 0;
	return false;
}

/* Insert the GPU clock into the profile document, so that a baseline keeps it. Replaces *text. */
static void add_clock(char **text, size_t *length, const char *path)
{
	double mhz = read_clock_mhz(path);
	char *longer;

	if (isnan(mhz) || !*length || (*text)[0] != '{')
		return;
	longer = xt_asprintf("{\"clock_mhz\":%.9g,%.*s", mhz, (int)*length - 1, *text + 1);
	free(*text);
	*text = longer;
	*length = strlen(longer);
}

static void finish(struct job *job, int status, struct problems *problems)
{
	size_t bytes = 0;
	char *text = NULL;

	job->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) < MERGE_FAILED)
		text = file_read(job->output, &bytes);
	if (text) {
		add_clock(&text, &bytes, job->path);
		job->set->runs[job->place] = run_profile_read(text, bytes, job->path, problems);
	} else {
		problems_add(problems, "cannot read %s", job->path);
	}
	free(text);
	close(job->output);
	job->output = -1;
}

/* Wait for any running job. */
static void wait_for_one(struct jobs *jobs, struct problems *problems)
{
	int status;
	pid_t pid;

	do
		pid = waitpid(-1, &status, 0);
	while (pid < 0 && errno == EINTR);
	for (size_t i = 0; i < jobs->count && pid > 0; i++)
		if (jobs->list[i].pid == pid)
			finish(&jobs->list[i], status, problems);
}

static void run_jobs(struct jobs *jobs, const struct load_options *options,
		     struct problems *problems)
{
	size_t next = 0, running = 0;

	while (next < jobs->count || running) {
		if (next < jobs->count && running < options->workers_count) {
			running += start(&jobs->list[next++], options, problems);
		} else {
			wait_for_one(jobs, problems);
			running--;
		}
	}
}

static void drop_missing(struct run_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (set->runs[i])
			set->runs[kept++] = set->runs[i];
	set->count = kept;
}

/* Adds all names of an argument. */
static void add_names(struct jobs *jobs, struct run_set *set, const char *argument,
		      struct problems *problems)
{
	char *names = xt_strdup(argument), *rest = names, *name;

	while ((name = strsep(&rest, ",")))
		if (name[0])
			add_name(jobs, set, name, problems);
	free(names);
}

static void jobs_free(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		free(jobs->list[i].path);
	free(jobs->list);
}

int load_apply_iteration(void *context, const struct option_row *row, const char *value)
{
	struct load_options *load = (void *)((char *)context + row->offset);

	load->is_per_iteration = true;
	load->iteration = strcmp(value, LOAD_DETECTED) ? value : NULL;
	return *value ? 0 : -EINVAL;
}

int load_apply_warmup(void *context, const struct option_row *row, const char *value)
{
	struct load_options *load = (void *)((char *)context + row->offset);
	const struct option_row number = {.max = row->max};
	unsigned count;

	load->is_per_iteration = true;
	load->warmup = value;
	return option_number(&count, &number, value);
}

void load_runs(struct run_set *sets, char *const *arguments, size_t set_count,
	       const struct load_options *options, struct problems *problems)
{
	struct jobs jobs = {0};

	for (size_t s = 0; s < set_count; s++)
		add_names(&jobs, &sets[s], arguments[s], problems);
	run_jobs(&jobs, options, problems);
	for (size_t s = 0; s < set_count; s++) {
		drop_missing(&sets[s]);
		for (size_t r = 0; r < sets[s].count && !options->is_per_iteration; r++)
			run_profile_use_whole(sets[s].runs[r]);
	}
	jobs_free(&jobs);
}

void load_check(const char *argument, struct problems *problems)
{
	struct run_set set = {0};
	struct jobs jobs = {0};

	add_names(&jobs, &set, argument, problems);
	jobs_free(&jobs);
	run_set_free(&set);
}

#define COUNTS_ALIKE 1.05 /* largest ratio of equal iteration counts */

/* Is that run's count the median of its side? The larger of two in the middle counts. */
static bool is_median(const struct run_set *set, uint64_t found_count)
{
	size_t smaller = 0, equal = 0, count = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->runs[i]->history)
			continue;
		count++;
		smaller += set->runs[i]->iterations.found_count < found_count;
		equal += set->runs[i]->iterations.found_count == found_count;
	}
	return smaller <= count / 2 && count / 2 < smaller + equal;
}

struct iteration_counts check_count_iterations(const struct run_set *set)
{
	struct iteration_counts counts = {.least = UINT64_MAX};

	for (size_t i = 0; i < set->count; i++) {
		uint64_t found = set->runs[i]->iterations.found_count;

		/* Without a kind of iteration, the count is that of a failed search. */
		if (set->runs[i]->history || !strcmp(set->runs[i]->iterations.kind, "none"))
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
	return run->iterations.name[0] ? run->iterations.name : "the detected period";
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
static void check_alike_iterations(const struct run_set *const sets[2],
				   const struct check_options *options, struct problems *problems)
{
	uint64_t b = check_count_iterations(sets[0]).median;
	uint64_t n = check_count_iterations(sets[1]).median;
	const struct run_profile *first, *other;

	if (!options->load.is_per_iteration || !sets[0]->count || !sets[1]->count)
		return;
	first = sets[0]->runs[0];
	other = find_other_kind(sets[0], first) ?: find_other_kind(sets[1], first);
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
	return strcmp(run->iterations.kind, "missing") != 0 &&
	       (strcmp(run->iterations.kind, "nvtx") != 0 ||
		!range_matches(run->iterations.name, wanted));
}

static bool lacks_wanted_warmup(const struct run_profile *run, const char *wanted)
{
	uint64_t count = strtoull(wanted, NULL, 10);

	return run_profile_has_iterations(run) &&
	       run->iterations.warmup_count != (count < run->iterations.found_count
							? count
							: run->iterations.found_count - 1);
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

/* Properties that must be equal in all runs. */
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
		return run->machine.is_simulated ? "simulated GPU" : "real GPU";
	case DRIVERS:
		return run->machine.driver;
	case CUPTI_VERSIONS:
		return run->machine.cupti;
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
		return !strcmp(run->iterations.kind, "missing");
	default:
		return run->trust.word == (fault == DAMAGED ? TRUST_DAMAGED : TRUST_DEGRADED);
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
	warning = faults[fault].is_warned && first->trust.warning_count ? first->trust.warnings[0]
									: "";
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
		double counts =
			(double)run->iterations.found_count / (double)first->iterations.found_count;
		double launches = count_of(run, "launches") / count_of(first, "launches");

		if (strcmp(run->iterations.kind, "period") != 0 ||
		    strcmp(first->iterations.kind, "period") != 0 ||
		    !(first->iterations.found_count > 0) ||
		    fabs(log(launches)) > log(LAUNCHES_ALIKE) ||
		    fabs(log(counts)) < log(COUNTS_APART))
			continue;
		problems_add(problems,
			     "different iterations: %s and %s launch about as much, but in %llu "
			     "and %llu iterations; name an NVTX range with --iteration",
			     run->origin, first->origin,
			     (unsigned long long)run->iterations.found_count,
			     (unsigned long long)first->iterations.found_count);
		return;
	}
}

bool check_same_run(const struct run_profile *a, const struct run_profile *b)
{
	const struct profile_entry *x = run_profile_find(a, LEVEL_TOTAL, "gpu-time");
	const struct profile_entry *y = run_profile_find(b, LEVEL_TOTAL, "gpu-time");

	/* Synthetic logs may all have the same start time, so compare more than that. */
	return a->start_realtime_ns && a->start_realtime_ns == b->start_realtime_ns &&
	       !strcmp(a->machine.host, b->machine.host) && !strcmp(a->command, b->command) &&
	       (x ? x->whole_value : 0.0) == (y ? y->whole_value : 0.0);
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
static void check_counts(const struct all_runs *all, struct problems *problems)
{
	size_t counts[2] = {0};
	bool has_history = false;

	for (size_t i = 0; i < all->count; i++) {
		counts[i >= all->sets[0]->count] += !run_at(all, i)->history;
		has_history |= run_at(all, i)->history > 0;
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
	if (all.count && options->load.is_per_iteration && !options->allow_different_iterations)
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
	for (int s = 0; s < 2; s++) {
		check_request(all.sets[s], options->load.iteration, "--iteration",
			      lacks_wanted_range, problems);
		check_request(all.sets[s], options->load.warmup, "--warmup", lacks_wanted_warmup,
			      problems);
	}
	check_alike_iterations(all.sets, options, problems);
	check_duplicates(&all, problems);
	check_counts(&all, problems);
}
