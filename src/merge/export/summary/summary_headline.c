/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_headline.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "base/text.h"
#include "merge/export/summary/summary_text.h"
#include "merge/findings/finding.h"
#include "merge/ranks/collectives_words.h"
#include "merge/steps/steps.h"
#include "merge/sums/trust.h"
#include "merge/sums/kernels.h"
#include "merge/sums/run.h"
#include "merge/sums/settings.h"

#define S_NS	      1000000000ull
#define LABEL_COLUMNS 13
#define LINE_COLUMNS  100 /* without a terminal */
#define TEXT_LINES    4	  /* of each text above the costs, unless all is shown */
#define CLASS_SHARE   100 /* idle classes below 1/100 of the idle time are left out */
#define UNKNOWN_SHARE 500 /* same for time that is neither known to be busy nor idle */

static void add_text(struct headline_texts *texts, const char *label, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add_text(struct headline_texts *texts, const char *label, const char *format, ...)
{
	struct headline_text *text = &texts->list[texts->count];
	va_list arguments;
	char *raw;

	va_start(arguments, format);
	raw = xt_vasprintf(format, arguments);
	va_end(arguments);
	/* The command line and the host are any bytes. */
	text->text = text_clean_copy(raw);
	free(raw);
	text->label = label;
	texts->count++;
}

static void add_program(struct headline_texts *texts, const struct run *run)
{
	const struct input *first = &run->inputs->logs[0];
	size_t count = run->inputs->count + run->cpu->only_count;
	char more[64] = "";

	if (count > 1)
		snprintf(more, sizeof(more), " and %zu more process%s", count - 1,
			 count > 2 ? "es" : "");
	add_text(texts, "program", "%s%s", first->command[0] ? first->command : first->program,
		 more);
}

static void add_time(struct headline_texts *texts, const struct run *run)
{
	const struct headline *headline = &run->found->headline;
	const struct input *first = &run->inputs->logs[0];
	char wall[TIME_BYTES], gpus[256] = "";
	size_t length = 0;

	bool is_idle = !headline->programs.wall_ns && run->sums->recording.recorded_ns;

	format_time_short(wall,
			  is_idle ? run->sums->recording.recorded_ns : headline->programs.wall_ns);
	for (size_t g = 0; g < headline->gpu_count && length < sizeof(gpus); g++)
		length += (size_t)snprintf(gpus + length, sizeof(gpus) - length, "%s%s",
					   g ? ", " : "", headline->gpus[g]);
	add_text(texts, "ran", "%s%s%s on %s%s%s%s; trust: %s",
		 is_idle ? "without CUDA activity for " : "", wall,
		 run_is_part(run) ? " (selected part)" : "",
		 first->host[0] ? first->host : "an unknown host", gpus[0] ? " (" : "", gpus,
		 gpus[0] ? ")" : "", trust_level_name(run->trust->level));
}

/* That logs are missing, or of several programs; else "". The caller frees it. */
static char *headline_note_text(const struct run *run)
{
	size_t programs = run->found->headline.programs.count;
	char *missing = missing_ranks_text(run), *text;

	if (programs > 1)
		text = xt_asprintf("the logs are of %zu separate programs or jobs: figures are "
				   "sums over them, and their processes are not compared",
				   programs);
	else
		text = xt_asprintf(missing[0] ? "no log of rank %s of %u" : "%s", missing,
				   run->inputs->logs[0].world_size);
	free(missing);
	return text;
}

/* The note: ranks or loops of older graphs are missing, or there are several programs. */
static void add_note(struct headline_texts *texts, const struct run *run)
{
	char *text = headline_note_text(run);

	if (*text)
		add_text(texts, "note", "%s", text);
	if (run->sums->recording.early_graph_count)
		add_text(texts, "note",
			 "%" PRIu64 " launch%s of CUDA graphs that are older "
			 "than the recording: loops in them show only one iteration",
			 run->sums->recording.early_graph_count,
			 run->sums->recording.early_graph_count == 1 ? "" : "es");
	free(text);
}

static char *span_text(const struct recorded_part *part)
{
	const char *limit = part->is_flight_recorder ? "flight recorder" : "--max-size";
	char length[TIME_BYTES], from[TIME_BYTES];

	if (part->full_ns && !part->from_ns) {
		format_time_short(length, part->full_ns);
		return xt_asprintf("only until %s, when the log reached --max-size", length);
	}
	if (!part->from_ns)
		return xt_strdup("");
	format_time_short(length,
			  part->until_ns > part->from_ns ? part->until_ns - part->from_ns : 0);
	format_time_short(from, part->from_ns);
	return xt_asprintf("the newest %s, from %s on (%s)", length, from, limit);
}

/* Which part of the run the log has. "" if it has all. The caller frees it. */
static char *headline_part_text(const struct run *run)
{
	const struct recorded_part *part = &run->sums->recording.part;
	char at[TIME_BYTES], others[96] = "", *span, *text;
	bool is_asked = !strcmp(part->trigger, "request");

	if (!run->sums->recording.part_count)
		return xt_strdup("");
	if (run->inputs->count > 1)
		snprintf(others, sizeof(others), "; only a part of %" PRIu64 " of %zu processes",
			 run->sums->recording.part_count, run->inputs->count);
	span = span_text(part);
	format_time_short(at, part->until_ns);
	if (part->trigger[0])
		text = xt_asprintf("%s%ssnapshot at %s, %s%s%s", span, *span ? "; " : "", at,
				   is_asked ? "on request" : "triggered by ",
				   is_asked ? "" : part->trigger, others);
	else
		text = xt_asprintf("%s%s", span, others);
	free(span);
	return text;
}

/* Does nothing if the run has no iterations. The warm-up is apart: it has causes of its own. */
static void add_steps(struct headline_texts *texts, const struct run *run)
{
	const struct steps *steps = steps_of(run);
	const struct headline *headline = &run->found->headline;
	char *text = steps ? steps_text(steps, headline->uuids.count, headline->span_ns) : NULL;
	char *warmup = steps ? steps_warmup_text(steps) : NULL;

	if (text)
		add_text(texts, "steps", "%s", text);
	if (warmup)
		add_text(texts, "warm-up", "%s", warmup);
	free_all(text, warmup);
}

/* Does nothing if the log has all of the run. */
static void add_part(struct headline_texts *texts, const struct run *run)
{
	char *text = headline_part_text(run);

	if (*text)
		add_text(texts, "recorded", "%s", text);
	free(text);
}

/* Joins the classes with the most idle time, with their shares of the active time. */
static char *idle_text(const struct headline *headline, uint64_t idle_ns)
{
	enum idle_class order[IDLE_CLASSES];
	size_t count = headline_idle_order(headline, order);
	char *text = xt_strdup("");

	for (size_t i = 0; i < count; i++) {
		uint64_t ns = headline->idle_ns[order[i]];
		char *longer;

		if (ns <= idle_ns / CLASS_SHARE)
			break;
		longer = xt_asprintf("%s%s %s %s", text, i ? "," : "", idle_causes[order[i]],
				     format_percent_of(ns, headline->span_ns));
		free(text);
		text = longer;
	}
	return text;
}

static void add_activity(struct headline_texts *texts, const struct run *run)
{
	const struct headline *headline = &run->found->headline;
	const struct rank_row *slowest = ranks_slowest_of(run);
	uint64_t idle_ns = headline_idle_ns(headline), alone_ns = run->sums->collectives.alone_ns;
	uint64_t known_ns = headline->busy_ns + idle_ns;
	char *span, alone[64] = "", unknown[64] = "", *classes;

	if (!headline->span_ns) {
		add_text(texts, "GPU busy", "never: no GPU work was recorded");
		return;
	}
	/* A device that runs only collectives mostly waits for other ranks. */
	if (alone_ns > headline->busy_ns)
		alone_ns = headline->busy_ns;
	if (alone_ns)
		snprintf(alone, sizeof(alone), ", and %s with collectives only",
			 format_percent_of(alone_ns, headline->span_ns));
	span = headline_span_text(headline);
	add_text(texts, "GPU busy", "%s of %s, from %s first to %s last work%s%s%s%s",
		 format_percent_of(headline->busy_ns - alone_ns, headline->span_ns), span,
		 headline->device_count > 1 ? "the" : "its",
		 headline->device_count > 1 ? "the" : "its", alone,
		 run->sums->recording.cut_count	    ? ", as far as the log goes back"
		 : run->sums->recording.pause_count ? ", without pauses of recording"
						    : "",
		 slowest ? "; slowest: " : "", slowest ? slowest->label : "");
	free(span);
	classes = idle_text(headline, idle_ns);
	/* A part of a run has gaps that belong to work of other parts. */
	if (!run_is_part(run) && headline->span_ns > known_ns + known_ns / UNKNOWN_SHARE)
		snprintf(unknown, sizeof(unknown), "; busy or idle is unknown for %s",
			 format_percent_of(headline->span_ns - known_ns, headline->span_ns));
	add_text(texts, "GPU idle", "%s%s%s%s", format_percent_of(idle_ns, headline->span_ns),
		 classes[0] ? ":" : "", classes, unknown);
	free(classes);
}

static void add_gap(struct headline_texts *texts, const struct run *run, const char *label,
		    const struct headline_gap *gap)
{
	const bool is_start = gap == &run->found->headline.start_up;
	uint64_t early_ns = gap->from_ns < 0 ? 0 - (uint64_t)gap->from_ns : 0;
	char time[TIME_BYTES], at[TIME_BYTES + 64] = "", *where, *cpu;
	bool has_early = early_ns > gap->ns / 100;

	if (!gap->ns)
		return;
	where = finding_place_where(run, &gap->place);
	cpu = finding_place_location(&run->paths, &gap->cpu_place);
	if (!is_start && gap->from_ns >= 0) {
		format_time_short(time, (uint64_t)gap->from_ns);
		snprintf(at, sizeof(at), " at %s", time);
	} else if (is_start) {
		format_time_short(time, early_ns);
		snprintf(at, sizeof(at), " before the first GPU work%s%s%s", has_early ? " (" : "",
			 has_early ? time : "", has_early ? " of it before the recording)" : "");
	}
	format_time_short(time, gap->ns);
	if (gap->cpu_ns)
		add_text(texts, label, "%s%s, %s of it in %s", time, at,
			 format_percent_of(gap->cpu_ns, gap->ns), cpu);
	else
		add_text(texts, label, "%s%s, ended by %s", time, at, where);
	free_all(where, cpu);
}

static void add_longest(struct headline_texts *texts, const struct run *run)
{
	char time[TIME_BYTES];
	uint64_t ns;
	const char *name = kernels_longest(run, &ns);

	if (name)
		add_text(texts, "longest work", "kernel of %s%s: %s", format_time_short(time, ns),
			 run->sums->collectives.count ? ", collectives left out" : "", name);
}

static void add_launches(struct headline_texts *texts, const struct run *run)
{
	const struct headline *headline = &run->found->headline;
	uint64_t launches = run->sums->events.calls.launch_count;
	char count[COUNT_BYTES], rate[COUNT_BYTES];
	double active_s = (double)headline->span_ns / (double)S_NS;

	format_count(count, launches);
	format_count(rate, active_s > 0 ? (uint64_t)((double)launches / active_s) : 0);
	if (!run->sums->events.work.gpu_ns || active_s <= 0)
		add_text(texts, "launches", "%s", count);
	else
		add_text(texts, "launches",
			 "%s (%s per second%s); %s of GPU time under your own code", count, rate,
			 headline->device_count < 2	  ? ""
			 : headline_shares_gpus(headline) ? " of each process"
							  : " of each GPU",
			 format_percent_of(run->sums->code.user_code_gpu_ns,
					   run->sums->events.work.gpu_ns));
}

void headline_texts(struct headline_texts *texts, const struct run *run)
{
	const struct headline *headline = &run->found->headline;

	*texts = (struct headline_texts){0};
	add_program(texts, run);
	add_note(texts, run);
	add_time(texts, run);
	add_part(texts, run);
	add_steps(texts, run);
	add_activity(texts, run);
	add_gap(texts, run, "start-up", &headline->start_up);
	add_gap(texts, run, "longest gap", &headline->longest);
	add_longest(texts, run);
	add_launches(texts, run);
}

void headline_texts_free(struct headline_texts *texts)
{
	for (size_t t = 0; t < texts->count; t++)
		free(texts->list[t].text);
	*texts = (struct headline_texts){0};
}

static void put_label(struct output *out, const char *label)
{
	put_style(out, STYLE_HEAD);
	output_format(out, "%-*s", LABEL_COLUMNS, label);
	put_style(out, STYLE_PLAIN);
}

/* Joins a cost and its place. */
static const char *cost_join(const struct headline_cost *cost)
{
	return cost->finding->place_all_count > 1 ? ", most in " : ", in ";
}

char *headline_cost_text(const struct run *run, const struct headline_cost *cost)
{
	char *where = finding_where(run, cost->finding), *what = headline_cost_what(run, cost);
	char *text = xt_asprintf("%s%s%s", what, cost_join(cost), where);

	free_all(where, what);
	return text;
}

/*
 * Writes "1. 4.80 ms per step (49.7 %): kernels too short, in step (train.py:12)". Keeps the
 * place in one line if it fits.
 */
static void put_cost(struct output *out, const struct run *run, size_t c, size_t columns)
{
	const struct headline_cost *cost = &run->found->headline.costs[c];
	char *where = finding_where(run, cost->finding);
	size_t indent = LABEL_COLUMNS + strlen("1. "), width;
	char *what = headline_cost_what(run, cost);
	char *text = xt_asprintf("%s%s", what, cost_join(cost));

	put_label(out, c ? "" : HEADLINE_COST_LABEL);
	output_format(out, "%zu. ", c + 1);
	put_words(out, text, 0, indent, columns);
	free_all(text, what);
	width = text_columns(where, strlen(where));
	if (column_of(out) + 1 + width > columns)
		output_format(out, "\n%*s", (int)indent, "");
	else
		output_text(out, " ", 1);
	put_words(out, where, 0, indent, columns);
	free(where);
	output_text(out, "\n", 1);
}

void put_headline(struct output *out, const struct run *run)
{
	struct headline_texts texts;
	size_t columns = out->columns ? out->columns : LINE_COLUMNS;

	headline_texts(&texts, run);
	for (size_t t = 0; t < texts.count; t++) {
		const char *text = texts.list[t].text;

		put_label(out, texts.list[t].label);
		if (run->settings->tables.has_all)
			put_words(out, text, 0, LABEL_COLUMNS, columns);
		else
			put_words_cut(out, text, 0, LABEL_COLUMNS, TEXT_LINES);
		output_text(out, "\n", 1);
	}
	for (size_t c = 0; c < run->found->headline.cost_count; c++)
		put_cost(out, run, c, columns);
	headline_texts_free(&texts);
}

static void put_file(struct json *json, const struct run *run, uint32_t file, uint32_t line)
{
	if (file == NAME_EMPTY || !line)
		return;
	json_string(json, "file", names_text(&run->paths.names, file, NULL));
	json_u64(json, "line", line);
}

/* Writes what the CPU did in most of the gap. */
static void put_cpu_json(struct json *json, const struct run *run, const struct headline_gap *gap)
{
	char *where = finding_place_location(&run->paths, &gap->cpu_place);

	json_begin_object(json, "cpu");
	json_u64(json, "ns", gap->cpu_ns);
	json_string(json, "where", where);
	put_file(json, run, gap->cpu_place.at.file, gap->cpu_place.at.line);
	json_begin_array(json, "frames");
	for (size_t f = 0; f < gap->cpu_place.frame_count; f++)
		json_string(json, NULL,
			    names_text(&run->paths.names, gap->cpu_place.frames[f].name, NULL));
	json_end_array(json);
	json_end_object(json);
	free(where);
}

static void put_gap_json(struct json *json, const char *key, const struct run *run,
			 const struct headline_gap *gap, bool has_class)
{
	char *where;

	if (!gap->ns)
		return;
	where = finding_place_where(run, &gap->place);
	json_begin_object(json, key);
	json_u64(json, "idle_ns", gap->ns);
	json_i64(json, "start_ns", gap->from_ns);
	if (has_class)
		json_string(json, "class", idle_labels[gap->class]);
	json_string(json, "where", where);
	put_file(json, run, gap->place.at.file, gap->place.at.line);
	if (gap->cpu_ns)
		put_cpu_json(json, run, gap);
	json_end_object(json);
	free(where);
}

static void put_costs_json(struct json *json, const struct run *run)
{
	json_begin_array(json, "costs");
	for (size_t c = 0; c < run->found->headline.cost_count; c++) {
		const struct headline_cost *cost = &run->found->headline.costs[c];
		const struct finding *finding = cost->finding;
		char *where = finding_where(run, finding), *what = headline_cost_what(run, cost);

		json_begin_object(json, NULL);
		json_string(json, "kind", "finding");
		json_string(json, "rule", rule_specs[finding->rule].name);
		json_string(json, "text", what);
		json_string(json, "where", where);
		free_all(where, what);
		json_u64(json, "place_count", finding->place_all_count);
		put_file(json, run, finding->places[0].at.file, finding->places[0].at.line);
		json_u64(json, "cost_ns", finding->cost_ns);
		json_u64(json, "whole_ns", cost->whole_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

void put_headline_json(struct json *json, const struct run *run)
{
	const struct headline *headline = &run->found->headline;
	const struct input *first = &run->inputs->logs[0];
	char *part = headline_part_text(run), *note = headline_note_text(run);

	json_begin_object(json, "headline");
	json_string(json, "command", first->command[0] ? first->command : first->program);
	json_string(json, "host", first->host);
	json_strings(json, "gpus", (const char *const *)headline->gpus, headline->gpu_count);
	if (*part)
		json_string(json, "recorded", part);
	if (*note)
		json_string(json, "note", note);
	free_all(part, note);
	json_u64(json, "program_count", headline->programs.count);
	json_u64(json, "wall_ns", headline->programs.wall_ns);
	json_u64(json, "span_ns", headline->span_ns);
	json_u64(json, "gpu_busy_ns", headline->busy_ns);
	json_u64(json, "gpu_idle_ns", headline_idle_ns(headline));
	json_u64(json, "launch_count", run->sums->events.calls.launch_count);
	json_u64(json, "gpu_time_ns", run->sums->events.work.gpu_ns);
	json_u64(json, "own_code_gpu_time_ns", run->sums->code.user_code_gpu_ns);
	json_string(json, "trust", trust_level_name(run->trust->level));
	if (steps_of(run))
		steps_put_json(json, steps_of(run), headline->uuids.count, headline->span_ns);
	put_gap_json(json, "start_up", run, &headline->start_up, false);
	put_gap_json(json, "longest_gap", run, &headline->longest, true);
	put_costs_json(json, run);
	json_end_object(json);
}
