/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace bench --bisect: finds the first commit that made a program slower on the GPU.
 *
 * git bisect chooses the commits. Each is recorded alternately with GOOD until a sequential test
 * decides whether it is nearer to GOOD or to BAD. The result is compared with its parent before it
 * is reported.
 */
#include "bisect.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff/base/format.h"
#include "diff/compare/row_text.h"
#include "diff/diff_command.h"

#define ENDS_SHARE  0.5	 /* of the error rate: for the comparison of GOOD with BAD */
#define TIME_NOISE  1e-4 /* times vary at least that much between runs, as in xtrace diff */
#define NOISE_PARTS 50.0 /* the noise is at least this part of the difference of the ends */

static volatile sig_atomic_t interrupted;

static const int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};

static void note_interruption(int signal)
{
	interrupted = signal;
}

/* Leaves ignored signals ignored, for nohup. */
static void handle_signals(void (*handler)(int))
{
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++) {
		struct sigaction action;

		sigaction(ending_signals[i], NULL, &action);
		if (action.sa_handler == SIG_IGN)
			continue;
		action = (struct sigaction){.sa_handler = handler};
		sigaction(ending_signals[i], &action, NULL);
	}
}

/* Reads the rules and options of xtrace diff. Returns 0 or -EINVAL after an error message. */
static int read_diff_options(struct bisect *b)
{
	const struct bench *bench = b->bench;
	char **words = calloc(bench->diff_passed_count + 4, sizeof(*words));
	int argc = 0, status;

	if (!words)
		return -ENOMEM;
	words[argc++] = "diff";
	for (size_t i = 0; i < bench->diff_passed_count; i++)
		words[argc++] = bench->diff_passed[i];
	words[argc++] = "GOOD";
	words[argc++] = "BAD";
	status = diff_options_parse(&b->diff, &command_diff, argc, words, &b->problems);
	b->diff.check.advice = "";
	b->diff.compare.alpha = bench->bisect.error_rate * 2.0 * ENDS_SHARE;
	free(words);
	return status == COMMAND_GO_ON ? 0 : -EINVAL;
}

static char *absolute_path(const char *path)
{
	char *folder = path[0] == '/' ? NULL : getcwd(NULL, 0), *whole;

	if (!folder)
		return path[0] == '/' ? strdup(path) : NULL;
	if (asprintf(&whole, "%s/%s", folder, path) < 0)
		whole = NULL;
	free(folder);
	return whole;
}

/* Chooses the deciding quantity, and takes its values at the ends. */
static int set_references(struct bisect *b, const struct comparison *c,
			  const struct verdict *verdict)
{
	struct references *r = &b->references;
	struct run_pair ends;
	int error =
		verdict->outcome == OUTCOME_FAIL ? deciding_choose(&b->deciding, verdict) : -ENOENT;

	if (error)
		return error;
	b->basis = comparison_basis(c, b->deciding.rule->level, b->deciding.rule->name);
	/* Counts may be 0, and so may anything that GOOD lacks. */
	b->is_log = b->deciding.unit != UNIT_COUNT;
	error = bisect_take_values(b, c, &ends);
	if (error == -EDOM) {
		b->is_log = false;
		error = bisect_take_values(b, c, &ends);
	}
	if (error)
		return error == -EDOM ? -ENOENT : error;
	r->low = ends.base;
	r->high = ends.candidate;
	pooled_noise_add(&r->noise, &r->low);
	pooled_noise_add(&r->noise, &r->high);
	r->noise.least =
		fmax((r->high.mean - r->low.mean) / NOISE_PARTS, b->is_log ? TIME_NOISE : 0);
	return r->high.mean > r->low.mean ? 0 : -ENOENT;
}

/* Are GOOD and BAD different? Returns 0, or another value after a message. */
static int judge_ends(struct bisect *b, struct recording *ends)
{
	struct comparison comparison = {0};
	struct verdict verdict = {0};
	int error;

	check_runs(&ends->sets[SIDE_BASE], &ends->sets[SIDE_NEW], &b->diff.check, &b->problems);
	error = comparison_make(&comparison, ends->sets, &b->diff.compare);
	if (!error)
		error = verdict_make(&verdict, &comparison, &b->diff.rules, &b->problems);
	if (!error)
		error = set_references(b, &comparison, &verdict);
	if (error == -ENOENT) {
		b->outcome = BISECT_NOT_WORSE;
		bisect_report_not_worse(b, &verdict);
	} else if (error) {
		print_error("cannot compare GOOD with BAD: %s", strerror(-error));
	} else {
		bisect_report_ends(b);
	}
	verdict_free(&verdict);
	comparison_free(&comparison);
	return error;
}

/* Builds, records and compares GOOD and BAD. */
static int test_ends(struct bisect *b)
{
	const struct git_commit *const commits[] = {&b->git.good, &b->git.bad};
	struct recording ends = {0};
	int error = 0;

	for (int t = 0; t < TREES && !error; t++) {
		error = bisect_build(b, (enum git_tree)t);
		if (error == -ECHILD)
			error = bisect_fail(b, "the build failed", commits[t]);
	}
	if (error)
		return error;
	error = recording_open(b, &ends, BENCH_ENDS);
	if (!error)
		error = recording_extend(b, &ends, b->bench->runs);
	if (error == -ECHILD)
		error = bisect_fail(b, "CMD failed", &b->git.bad);
	if (!error)
		error = judge_ends(b, &ends);
	recording_close(b, &ends);
	return error;
}

/*
 * Adds runs until the test decides, or max_runs. Sets *answer_out, or step->why if the commit must
 * be skipped. Returns 0 or -errno.
 */
static int run_test(struct bisect *b, struct recording *recording, struct bisect_step *step,
		    unsigned first, sequential_test *test, double alpha, enum nearer *answer_out)
{
	unsigned max = b->bench->bisect.max_runs > first ? b->bench->bisect.max_runs : first;
	double alpha_look = alpha / sequential_looks(first, max);

	*answer_out = NEARER_UNKNOWN;
	for (unsigned runs = first;; runs = sequential_next(runs, max)) {
		int error = recording_extend(b, recording, runs);

		if (error == -ECHILD)
			step->why = "CMD failed";
		else if (!error)
			error = recording_measure(b, recording, step);
		if (step->why)
			return 0;
		if (error)
			return error;
		*answer_out = test(&b->references, &step->pair, alpha_look);
		if (*answer_out != NEARER_UNKNOWN || runs >= max)
			return 0;
	}
}

/*
 * The error of the next step: an equal share of what is left, for each step that the candidates can
 * need, and one in reserve.
 */
static double next_alpha(const struct bisect *b)
{
	double left = b->bench->bisect.error_rate * (1.0 - ENDS_SHARE) - b->spent;

	return left / (ceil(log2((double)b->candidate_count)) + 1.0);
}

static int test_commit(struct bisect *b, struct bisect_step *step)
{
	struct recording recording = {0};
	enum nearer answer = NEARER_UNKNOWN;
	double alpha = next_alpha(b);
	char name[32];
	int error = bisect_git_checkout(&b->git, TREE_CANDIDATE, step->commit.hash);

	if (!error && access(b->git.directories[TREE_CANDIDATE], X_OK)) {
		step->why = "it lacks the working directory";
		return 0;
	}
	if (!error)
		error = bisect_build(b, TREE_CANDIDATE);
	if (error == -ECHILD) {
		step->why = "the build failed";
		return 0;
	}
	if (error)
		return error;
	snprintf(name, sizeof(name), BENCH_STEP "%03zu", b->step_count);
	error = recording_open(b, &recording, name);
	if (error == -ECHILD) {
		step->why = "CMD failed";
		error = 0;
	} else if (!error) {
		error = run_test(b, &recording, step, BISECT_RUNS_MIN, sequential_nearer, alpha,
				 &answer);
	}
	recording_close(b, &recording);
	if (error || answer == NEARER_UNKNOWN)
		return error;
	step->verdict = answer == NEARER_HIGH ? "bad" : "good";
	b->spent += alpha;
	pooled_noise_add(&b->references.noise, &step->pair.base);
	pooled_noise_add(&b->references.noise, &step->pair.candidate);
	return 0;
}

static bool was_skipped(const struct bisect *b, const char *hash)
{
	for (size_t s = 0; s < b->step_count; s++)
		if (b->steps[s].why && !strcmp(b->steps[s].commit.hash, hash))
			return true;
	return false;
}

/* Reads the candidates. Sets the outcome if git bisect has nothing left to test. */
static int read_candidates(struct bisect *b)
{
	int error;

	free(b->candidates);
	error = bisect_git_candidates(&b->git, &b->candidates, &b->candidate_count);
	if (error)
		return error;
	if (!b->range_count)
		b->range_count = b->candidate_count;
	if (b->candidate_count == 1) {
		b->outcome = BISECT_FOUND;
		return 0;
	}
	for (size_t i = 1; i < b->candidate_count; i++)
		if (!was_skipped(b, b->candidates[i]))
			return 0;
	b->outcome = BISECT_SKIPPED;
	return 0;
}

static int take_step(struct bisect *b)
{
	struct bisect_step *steps = reallocarray(b->steps, b->step_count + 1, sizeof(*steps));
	struct bisect_step *step;
	char hash[GIT_HASH_BYTES];
	int error;

	if (!steps)
		return -ENOMEM;
	b->steps = steps;
	step = &steps[b->step_count++];
	*step = (struct bisect_step){0};
	error = bisect_git_next(&b->git, hash);
	if (!error)
		error = git_commit_read(&b->git, hash, &step->commit);
	if (error)
		return error;
	bisect_report_step_begin(b, step);
	error = test_commit(b, step);
	if (error && b->failure)
		step->why = "the bisection ended";
	if (error)
		return error;
	if (step->why)
		step->verdict = "skip";
	bisect_report_step(b, step);
	if (step->verdict)
		return bisect_git_mark(&b->git, step->verdict, step->commit.hash);
	b->outcome = BISECT_UNDECIDED;
	return 0;
}

static int find_commit(struct bisect *b)
{
	int error = bisect_git_start(&b->git);

	if (!error)
		error = read_candidates(b);
	while (!error && b->outcome == BISECT_FAILED) {
		error = interrupted ? -EINTR : take_step(b);
		if (!error && b->outcome == BISECT_FAILED)
			error = read_candidates(b);
	}
	return error;
}

/* Describes the call path that got slower. */
static int explain(struct bisect *b, const struct recording *recording)
{
	struct comparison comparison = {0};
	const struct comparison_row *row;
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES], words[128];
	int error = comparison_make(&comparison, recording->sets, &b->diff.compare);

	row = error ? NULL : deciding_explain(&b->deciding, &comparison, &b->is_path_sure);
	if (row) {
		const struct effect *effect = &row->effects[METRIC_VALUE];

		b->path_name = row_name(row, SIZE_MAX);
		row_change_text(words, sizeof(words), row);
		if (asprintf(&b->path_change, "%s -> %s, %s%s%s",
			     format_amount(base, row->unit, effect->base),
			     format_amount(new, row->unit, effect->new),
			     format_ratio(ratio, effect->ratio), words[0] ? "; " : "", words) < 0)
			b->path_change = NULL;
		error = b->path_name && b->path_change ? 0 : -ENOMEM;
	}
	comparison_free(&comparison);
	return error;
}

/* Compares the result with its parent. */
static int confirm(struct bisect *b)
{
	struct recording recording = {0};
	enum nearer answer = NEARER_UNKNOWN;
	char revision[GIT_HASH_BYTES + 1];
	int error;

	b->outcome = BISECT_FAILED;
	snprintf(revision, sizeof(revision), "%s^", b->candidates[0]);
	error = git_commit_read(&b->git, b->candidates[0], &b->last.commit);
	if (!error)
		error = git_commit_read(&b->git, revision, &b->parent);
	b->base = &b->parent;
	if (!error)
		error = bisect_git_checkout(&b->git, TREE_GOOD, b->parent.hash);
	if (!error)
		error = bisect_git_checkout(&b->git, TREE_CANDIDATE, b->last.commit.hash);
	for (int t = 0; t < TREES && !error; t++) {
		error = bisect_build(b, (enum git_tree)t);
		if (error == -ECHILD)
			error = bisect_fail(b, "the build failed", t ? &b->last.commit : b->base);
	}
	if (!error)
		error = recording_open(b, &recording, BENCH_STEP "last");
	if (!error)
		error = run_test(b, &recording, &b->last, b->bench->runs, sequential_above_zero,
				 b->bench->bisect.error_rate * (1.0 - ENDS_SHARE), &answer);
	if (!error && answer == NEARER_HIGH)
		error = explain(b, &recording);
	if (error == -ECHILD || (!error && b->last.why))
		error = bisect_fail(b, b->last.why ? b->last.why : "CMD failed", &b->last.commit);
	if (!error)
		b->outcome = answer == NEARER_HIGH ? BISECT_FOUND : BISECT_UNDECIDED;
	recording_close(b, &recording);
	return error;
}

static int bisect(struct bisect *b)
{
	int error = read_diff_options(b);

	if (!error)
		error = bisect_git_open(&b->git, b->bench->bisect.range);
	if (!error) {
		b->output = absolute_path(b->bench->output);
		error = b->output ? bench_dir_create_parent(b->output) : -ENOMEM;
	}
	if (!error)
		error = bisect_git_add_trees(&b->git);
	if (error)
		return error;
	bench_watch_open(b->bench);
	b->base = &b->git.good;
	bisect_report_begin(b);
	error = test_ends(b);
	if (!error)
		error = find_commit(b);
	if (!error && b->outcome == BISECT_FOUND)
		error = confirm(b);
	if (!error || b->failure)
		bisect_report_end(b);
	return error;
}

static void release(struct bisect *b)
{
	/* Another signal must not stop git from removing the worktrees. */
	handle_signals(SIG_IGN);
	bisect_git_close(&b->git);
	for (size_t s = 0; s < b->step_count; s++)
		git_commit_free(&b->steps[s].commit);
	git_commit_free(&b->last.commit);
	git_commit_free(&b->parent);
	free(b->failure);
	free(b->steps);
	free(b->candidates);
	free(b->output);
	free(b->path_name);
	free(b->path_change);
	deciding_free(&b->deciding);
	rules_free(&b->diff.rules);
	problems_free(&b->problems);
}

int bisect_run(struct bench *bench, char **command)
{
	const char *json = bench->bisect.json;
	struct bisect b = {.bench = bench,
			   .command = command,
			   .out = json && !strcmp(json, "-") ? stderr : stdout};
	int error;

	bench->interrupted = &interrupted;
	handle_signals(note_interruption);
	error = bisect(&b);
	if (interrupted)
		print_error("interrupted by signal %d (%s); your working tree is as it was",
			    interrupted, strsignal(interrupted));
	else if (error == -ENOMEM)
		print_error("cannot bisect: %s", strerror(-error));
	if (!interrupted && (b.outcome != BISECT_FAILED || b.failure) && json &&
	    bisect_write_json(&b))
		b.outcome = BISECT_FAILED;
	bench->output = NULL;
	release(&b);
	return b.outcome == BISECT_FOUND && !interrupted ? STATUS_OK : STATUS_FAILED;
}
