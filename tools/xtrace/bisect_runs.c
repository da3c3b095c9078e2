/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds, records and measures commits.
 */
#include "bisect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "cli/subprocess.h"

int bisect_fail(struct bisect *b, const char *what, const struct git_commit *commit)
{
	const char *end = commit == &b->git.good ? "GOOD, " : commit == &b->git.bad ? "BAD, " : "";

	if (asprintf(&b->failure, "%s at %s%.12s (%s)", what, end, commit->hash, commit->subject) <
	    0) {
		b->failure = NULL;
		return -ENOMEM;
	}
	return -EIO;
}

int bisect_build(const struct bisect *b, enum git_tree tree)
{
	char *words[] = {"/bin/sh", "-c", (char *)b->bench->bisect.build, NULL};
	struct child_care care = {.output = -1,
				  .directory = b->git.directories[tree],
				  .interrupted = b->bench->interrupted};
	int status = 0, error;

	if (*b->bench->interrupted)
		return -EINTR;
	if (!words[2])
		return 0;
	if (!b->bench->shows_output)
		care.output = memfd_create("output", MFD_CLOEXEC);
	error = child_run(words, NULL, &care, &status);
	if (error)
		print_error("cannot run the build: %s", strerror(-error));
	else if (*b->bench->interrupted)
		error = -EINTR;
	else if (status)
		error = -ECHILD;
	if (error == -ECHILD && care.output >= 0)
		bench_show_tail(b->bench, care.output);
	if (care.output >= 0)
		close(care.output);
	return error;
}

#define BASE_TRIES 3

/* One run of a side. Loads it unless it is a warm-up run. */
static int record(struct bisect *b, struct recording *recording, enum side s, bool is_warmup)
{
	struct bench_side *side = &b->bench->sides[s];
	char *path = NULL;
	int error = -EINTR;

	/*
	 * A signal can also arrive between two runs. GOOD has run before, so that a failure may be
	 * an accident.
	 */
	for (int tries = s == SIDE_BASE ? BASE_TRIES : 1; tries-- > 0;) {
		if (!*b->bench->interrupted)
			error = bench_sides_run(b->bench, side, is_warmup);
		if (error != -ECHILD && error != -ENODATA)
			break;
	}
	if (*b->bench->interrupted)
		return -EINTR;
	/* A failure of GOOD says nothing about the candidate. */
	if (error == -ECHILD || error == -ENODATA)
		return s == SIDE_NEW ? -ECHILD
				     : bisect_fail(b, "CMD failed three times in a row", b->base);
	if (error || is_warmup)
		return error;
	if (asprintf(&path, "%s/%s", side->path, side->runs[side->run_count - 1].name) < 0)
		return -ENOMEM;
	b->run_count++;
	error = load_runs(&recording->sets[s], &path, 1, &b->diff.load, &b->problems);
	free(path);
	return error == -EINVAL ? 0 : error;
}

int recording_open(struct bisect *b, struct recording *recording, const char *name)
{
	struct bench *bench = b->bench;
	unsigned runs_max =
		bench->runs > bench->bisect.max_runs ? bench->runs : bench->bisect.max_runs;
	char *path = NULL;
	int error;

	*recording = (struct recording){0};
	if (asprintf(&path, "%s/%s", b->output, name) < 0)
		return -ENOMEM;
	bench->output = path;
	error = bench_sides_init(bench, runs_max + bench->warmups, b->command, b->command);
	for (int s = 0; s < SIDES; s++)
		bench->sides[s].directory = b->git.directories[s];
	if (!error)
		error = bench_dir_create(bench);
	for (unsigned w = 0; !error && w < SIDES * bench->warmups; w++)
		error = record(b, recording, (enum side)bench_turn(bench, w), true);
	return error;
}

int recording_extend(struct bisect *b, struct recording *recording, unsigned runs)
{
	int error = 0;

	for (unsigned n = SIDES * recording->runs; !error && n < SIDES * runs; n++)
		error = record(b, recording, (enum side)bench_turn(b->bench, n), false);
	if (!error)
		recording->runs = runs;
	return error;
}

void recording_close(struct bisect *b, struct recording *recording)
{
	for (size_t s = 0; s < b->bench->side_count && recording->runs; s++)
		bench_dir_write(&b->bench->sides[s], true);
	for (int s = 0; s < SIDES; s++)
		run_set_free(&recording->sets[s]);
	bench_sides_free(b->bench);
	free((char *)b->bench->output);
	b->bench->output = b->output;
}

int bisect_take_values(const struct bisect *b, const struct comparison *c, struct run_pair *pair)
{
	double *values = calloc(c->run_count + 1, sizeof(*values));
	int error = values ? deciding_values(&b->deciding, &b->diff.rules, c, values) : -ENOMEM;

	*pair = (struct run_pair){0};
	for (size_t r = 0; !error && r < c->run_count; r++) {
		double value = b->is_log ? log(values[r]) : values[r];

		if (isfinite(value))
			run_group_add(c->runs[r].side == SIDE_BASE ? &pair->base : &pair->candidate,
				      value);
		else
			error = -EDOM;
	}
	free(values);
	return error;
}

/* Moves the problems of a commit to its step, and prints them. */
static void skip_for(struct bisect *b, struct bisect_step *step, const char *why)
{
	for (size_t p = 0; p < b->problems.count; p++)
		print_error("%s", b->problems.lines[p]);
	problems_free(&b->problems);
	step->why = why;
}

int recording_measure(struct bisect *b, struct recording *recording, struct bisect_step *step)
{
	struct comparison comparison = {0};
	int error;

	check_runs(&recording->sets[SIDE_BASE], &recording->sets[SIDE_NEW], &b->diff.check,
		   &b->problems);
	if (b->problems.count) {
		skip_for(b, step, "its runs cannot be compared with those of GOOD");
		return 0;
	}
	error = comparison_make(&comparison, recording->sets, &b->diff.compare);
	if (!error)
		error = bisect_take_values(b, &comparison, &step->pair);
	comparison_free(&comparison);
	if (error == -EDOM) {
		skip_for(b, step, "it does not have the quantity that decides");
		return 0;
	}
	step->runs = recording->runs;
	return error;
}
