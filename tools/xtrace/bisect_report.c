/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the result of a bisection, and writes its JSON document.
 */
#include "bisect.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/base/format.h"
#include "json_file.h"
#include "page/utf8.h"

#define BISECT_FORMAT  "xtrace.bisect"
#define SHORT_HASH     12
#define CHANGE_BYTES   192
#define CANDIDATES_MAX 20 /* printed; --json has all */
#define PATH_COLUMNS   90 /* printed; --json has all */

/* The value of a group in the unit of the quantity. */
static double value_of(const struct bisect *b, double mean)
{
	return b->is_log ? exp(mean) : mean;
}

/* A difference of means as the ratio of the change; NAN if the base is 0. */
static double ratio_of(const struct bisect *b, const struct run_pair *pair, double difference)
{
	if (b->is_log)
		return expm1(difference);
	return pair->base.mean > 0.0 ? difference / pair->base.mean : NAN;
}

/* Writes "122 us -> 177 us, +44.7 % (interval +44.3 % to +45.0 %)". */
static const char *format_change(char *out, const struct bisect *b, const struct run_pair *pair)
{
	double difference = pair->candidate.mean - pair->base.mean;
	double margin = sequential_margin(&b->references, pair, b->bench->bisect.error_rate);
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES], low[AMOUNT_BYTES];
	char high[AMOUNT_BYTES];
	bool is_exact = !b->is_log && pair->base.squares == 0.0 && pair->candidate.squares == 0.0;
	int length;

	length = snprintf(out, CHANGE_BYTES, "%s -> %s",
			  format_amount(base, b->deciding.unit, value_of(b, pair->base.mean)),
			  format_amount(new, b->deciding.unit, value_of(b, pair->candidate.mean)));
	if (is_exact)
		snprintf(out + length, CHANGE_BYTES - (size_t)length,
			 ", equal in all runs of each side");
	else if (!isnan(ratio_of(b, pair, difference)))
		snprintf(out + length, CHANGE_BYTES - (size_t)length, ", %s (interval %s to %s)",
			 format_ratio(ratio, ratio_of(b, pair, difference)),
			 format_ratio(low, ratio_of(b, pair, difference - margin)),
			 format_ratio(high, ratio_of(b, pair, difference + margin)));
	return out;
}

/* The length of the innermost frames of a call path that fit a line; at least one. */
static size_t path_bytes(const char *name)
{
	static const char between[] = " < ";
	const char *end = strstr(name, between), *next;

	if (!end || strlen(name) <= PATH_COLUMNS)
		return strlen(name);
	while ((next = strstr(end + strlen(between), between)) && next <= name + PATH_COLUMNS)
		end = next;
	return (size_t)(end - name);
}

static void put_quantity(const struct bisect *b, const char *before)
{
	size_t bytes = path_bytes(b->deciding.what);

	fprintf(b->out, "%s%.*s%s of one %s", before, (int)bytes, b->deciding.what,
		b->deciding.what[bytes] ? " ...)" : "", b->basis);
}

void bisect_report_begin(const struct bisect *b)
{
	fprintf(b->out, "good  %.*s  %s\nbad   %.*s  %s\n", SHORT_HASH, b->git.good.hash,
		b->git.good.subject, SHORT_HASH, b->git.bad.hash, b->git.bad.subject);
	fprintf(b->out, "recording %u runs of each%s\n", b->bench->runs,
		b->bench->is_simulated ? " (simulated GPU)" : "");
	fflush(b->out);
}

void bisect_report_ends(const struct bisect *b)
{
	const struct run_pair ends = {b->references.low, b->references.high};
	char change[CHANGE_BYTES];

	put_quantity(b, "\ndeciding: ");
	fprintf(b->out, ", by the rule '%s'\n      %s\n\n", b->deciding.rule->text,
		format_change(change, b, &ends));
	fflush(b->out);
}

void bisect_report_not_worse(const struct bisect *b, const struct verdict *verdict)
{
	static const char *const marks[] = {"pass", "FAIL", "?"};

	print_error("cannot bisect '%s': %s", b->bench->bisect.range,
		    verdict->outcome == OUTCOME_UNKNOWN
			    ? "the runs do not show whether BAD is worse than GOOD"
			    : "BAD is not worse than GOOD by any rule");
	for (size_t p = 0; p < verdict->problems.count; p++)
		fprintf(b->out, "  %s\n", verdict->problems.lines[p]);
	for (size_t r = 0; r < verdict->result_count; r++)
		fprintf(b->out, "  %-4s  %s\n        %s\n", marks[verdict->results[r].outcome],
			verdict->results[r].rule->text, verdict->results[r].text);
	fflush(b->out);
}

void bisect_report_step_begin(const struct bisect *b, const struct bisect_step *step)
{
	fprintf(b->out, "step %zu  %.*s  %s\n", b->step_count, SHORT_HASH, step->commit.hash,
		step->commit.subject);
	fflush(b->out);
}

void bisect_report_step(const struct bisect *b, const struct bisect_step *step)
{
	char change[CHANGE_BYTES];

	if (step->why)
		fprintf(b->out, "        skipped: %s\n", step->why);
	else
		fprintf(b->out, "        %s after %u runs: %s\n",
			step->verdict ? step->verdict : "undecided", step->runs,
			format_change(change, b, &step->pair));
	fflush(b->out);
}

static void report_found(const struct bisect *b)
{
	const struct git_commit *commit = &b->last.commit;
	char change[CHANGE_BYTES];

	fprintf(b->out, "\nfirst bad commit: %s\n  %s\n  author date: %s\n", commit->hash,
		commit->subject, commit->author_date);
	put_quantity(b, "  change from its parent: ");
	fprintf(b->out, ":\n      %s\n", format_change(change, b, &b->last.pair));
	if (!b->path_name)
		return;
	fprintf(b->out, "  %s: %.*s\n      %s\n",
		b->is_path_sure ? "slower call path"
				: "largest increase of a call path, not significant",
		(int)path_bytes(b->path_name), b->path_name, b->path_change);
}

/* A candidate that was not tested, or was skipped, may be the first bad commit. */
static void report_candidates(const struct bisect *b)
{
	fprintf(b->out, "\nthe first bad commit is one of these %zu:\n", b->candidate_count);
	for (size_t i = 0; i < b->candidate_count && i < CANDIDATES_MAX; i++) {
		struct git_commit commit = {0};

		if (!git_commit_read(&b->git, b->candidates[i], &commit))
			fprintf(b->out, "  %.*s  %s\n", SHORT_HASH, commit.hash, commit.subject);
		git_commit_free(&commit);
	}
	if (b->candidate_count > CANDIDATES_MAX)
		fprintf(b->out, "  and %zu more\n", b->candidate_count - CANDIDATES_MAX);
	fflush(b->out);
}

/* The only candidate, before or without a comparison with its parent. */
static void put_nearest(const struct bisect *b)
{
	fprintf(b->out, "\n%.*s is the first commit nearer to BAD  %s\n", SHORT_HASH,
		b->last.commit.hash, b->last.commit.subject);
}

static void report_failure(const struct bisect *b)
{
	if (b->candidate_count > 1)
		report_candidates(b);
	else if (b->candidate_count)
		put_nearest(b);
	fflush(b->out);
	print_error("cannot bisect: %s; repair it, or choose other ends", b->failure);
}

static void report_undecided(const struct bisect *b)
{
	char change[CHANGE_BYTES];

	if (b->outcome == BISECT_SKIPPED) {
		report_candidates(b);
		print_error("cannot name the first bad commit: the others were skipped");
	} else if (b->candidate_count > 1) {
		report_candidates(b);
		print_error("cannot decide step %zu: the noise is too large for %u runs; increase "
			    "--max-runs and --runs",
			    b->step_count, b->bench->bisect.max_runs);
	} else {
		put_nearest(b);
		fprintf(b->out, "  change from its parent: %s\n",
			format_change(change, b, &b->last.pair));
		fflush(b->out);
		print_error("cannot name one commit: %.*s is not significantly worse than its "
			    "parent; the change may be spread over several commits",
			    SHORT_HASH, b->last.commit.hash);
	}
}

void bisect_report_end(const struct bisect *b)
{
	if (b->failure) {
		report_failure(b);
		return;
	}
	if (b->outcome == BISECT_FOUND)
		report_found(b);
	else
		report_undecided(b);
	fprintf(b->out, "\n%zu commits, %zu steps, %u runs. ", b->range_count, b->step_count,
		b->run_count);
	fprintf(b->out, "At most %g %% of such bisections name a wrong commit.\n",
		100.0 * b->bench->bisect.error_rate);
	fflush(b->out);
}

static void put_number(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, value);
	else
		cJSON_AddNullToObject(object, name);
}

static cJSON *make_commit(const struct git_commit *commit)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "hash", commit->hash);
	cJSON_AddStringToObject(object, "subject", commit->subject);
	cJSON_AddStringToObject(object, "author_date", commit->author_date);
	return object;
}

static cJSON *make_change(const struct bisect *b, const struct run_pair *pair)
{
	double difference = pair->candidate.mean - pair->base.mean;
	double margin = sequential_margin(&b->references, pair, b->bench->bisect.error_rate);
	cJSON *object = cJSON_CreateObject();

	put_number(object, "base", value_of(b, pair->base.mean));
	put_number(object, "new", value_of(b, pair->candidate.mean));
	put_number(object, "ratio", ratio_of(b, pair, difference));
	put_number(object, "low_ratio", ratio_of(b, pair, difference - margin));
	put_number(object, "high_ratio", ratio_of(b, pair, difference + margin));
	return object;
}

static cJSON *make_steps(const struct bisect *b)
{
	cJSON *list = cJSON_CreateArray();

	for (size_t s = 0; s < b->step_count; s++) {
		const struct bisect_step *step = &b->steps[s];
		cJSON *object = make_commit(&step->commit);

		cJSON_AddStringToObject(object, "verdict",
					step->verdict ? step->verdict : "undecided");
		if (step->why)
			cJSON_AddStringToObject(object, "reason", step->why);
		else
			cJSON_AddItemToObject(object, "change", make_change(b, &step->pair));
		cJSON_AddNumberToObject(object, "runs", step->runs);
		cJSON_AddItemToArray(list, object);
	}
	return list;
}

/* The command that failed, and the last lines of its output. */
static void put_failure(cJSON *root, const struct bisect *b)
{
	char text[BENCH_TAIL_BYTES + 1], *rest = text, *line;
	cJSON *lines;

	cJSON_AddStringToObject(root, "reason", b->failure);
	lines = cJSON_AddArrayToObject(root, "output");
	strcpy(text, b->bench->tail);
	while ((line = strsep(&rest, "\n"))) {
		utf8_make_plain(line, '?');
		if (rest || *line)
			cJSON_AddItemToArray(lines, cJSON_CreateString(line));
	}
}

static cJSON *make_document(const struct bisect *b)
{
	static const char *const outcomes[] = {"failed", "found", "not-worse", "undecided",
					       "skipped"};
	static const char *const units[] = {"ns", "bytes", "count"};
	const struct run_pair ends = {b->references.low, b->references.high};
	cJSON *root = cJSON_CreateObject(), *list, *path;

	cJSON_AddStringToObject(root, "format", BISECT_FORMAT);
	cJSON_AddNumberToObject(root, "format_version", 1);
	cJSON_AddStringToObject(root, "outcome", outcomes[b->outcome]);
	cJSON_AddItemToObject(root, "good", make_commit(&b->git.good));
	cJSON_AddItemToObject(root, "bad", make_commit(&b->git.bad));
	cJSON_AddNumberToObject(root, "error_rate", b->bench->bisect.error_rate);
	cJSON_AddNumberToObject(root, "runs", b->run_count);
	if (b->failure)
		put_failure(root, b);
	if (b->outcome == BISECT_NOT_WORSE || !b->deciding.rule)
		return root;
	cJSON_AddStringToObject(root, "rule", b->deciding.rule->text);
	cJSON_AddStringToObject(root, "quantity", b->deciding.what);
	cJSON_AddStringToObject(root, "unit", units[b->deciding.unit]);
	cJSON_AddStringToObject(root, "basis", b->basis);
	cJSON_AddItemToObject(root, "ends", make_change(b, &ends));
	cJSON_AddItemToObject(root, "steps", make_steps(b));
	list = cJSON_AddArrayToObject(root, "candidates");
	for (size_t i = 0; i < b->candidate_count; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(b->candidates[i]));
	if (b->outcome != BISECT_FOUND)
		return root;
	cJSON_AddItemToObject(root, "first_bad", make_commit(&b->last.commit));
	cJSON_AddItemToObject(root, "change", make_change(b, &b->last.pair));
	if (b->path_name) {
		path = cJSON_AddObjectToObject(root, "path");
		cJSON_AddStringToObject(path, "name", b->path_name);
		cJSON_AddStringToObject(path, "change", b->path_change);
		cJSON_AddBoolToObject(path, "significant", b->is_path_sure);
	}
	return root;
}

int bisect_write_json(const struct bisect *b)
{
	const char *file = b->bench->bisect.json;
	cJSON *root = make_document(b);
	char *text = json_file_text(root);
	int error = text ? 0 : -ENOMEM;

	cJSON_Delete(root);
	if (!error && !strcmp(file, "-"))
		error = fputs(text, stdout) < 0 || fflush(stdout) ? -EIO : 0;
	else if (!error)
		error = json_file_replace(AT_FDCWD, file, text);
	if (error)
		print_error("cannot write '%s': %s", file, strerror(-error));
	free(text);
	return error;
}
