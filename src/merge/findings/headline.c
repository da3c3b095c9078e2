/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the headline. Its costs are the most expensive findings, summed over the processes.
 */
#include "merge/findings/headline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/findings/rules_cpu.h"
#include "merge/read/inputs.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define GAP_NS 1000000000 /* between processes that one script starts one after the other */

/* A program while its processes are collected. */
struct group {
	int64_t last_ns;
	/* Numbers, from 1, of the last span that cannot be of it, and that is of the same job. */
	size_t unfit, same;
};

COMPARE_BY(compare_spans, struct program_span, UP(start_ns) UP(log))

static bool are_ids(const char *a, const char *b, bool are_same)
{
	return a[0] && b[0] && !strcmp(a, b) == are_same;
}

/* Whether a process that began after all of a job cannot be of it, because of one of the job. */
static bool is_separate(const struct input *a, const struct input *b)
{
	bool is_same_process = a->header.pid == b->header.pid && !strcmp(a->host, b->host);

	return !is_same_process && (a->rank != RANK_UNKNOWN || strcmp(a->command, b->command) != 0);
}

/* Whether two processes cannot be of one job. later: the second began after the whole first job. */
static bool is_conflict(const struct input *a, const struct input *b, bool later)
{
	bool is_same_rank = a->rank != RANK_UNKNOWN && a->rank == b->rank;
	bool is_other_size = a->world_size != b->world_size && a->world_size != RANK_UNKNOWN &&
			     b->world_size != RANK_UNKNOWN;

	return are_ids(a->run, b->run, false) || are_ids(a->batch_job, b->batch_job, false) ||
	       (is_same_rank && (is_other_size || strcmp(a->host, b->host) != 0)) ||
	       (later && is_separate(a, b));
}

/* Whether ids say that two processes are of one job, or one command recorded both. */
static bool is_same_job(const struct input *a, const struct input *b)
{
	return (a->recording && a->recording == b->recording &&
		a->recording_device == b->recording_device) ||
	       are_ids(a->run, b->run, true) || are_ids(a->batch_job, b->batch_job, true);
}

/* 0 if the second is earlier. Times of hostile logs may be any number. */
static uint64_t time_between(int64_t from_ns, int64_t until_ns)
{
	return until_ns > from_ns ? (uint64_t)until_ns - (uint64_t)from_ns : 0;
}

/* Puts a span into the first program that it fits. */
static void place_span(struct programs *programs, struct group *groups, size_t index)
{
	struct program_span *span = &programs->spans[index];
	size_t g;

	for (size_t s = 0; s < index; s++) {
		const struct program_span *other = &programs->spans[s];
		struct group *group = &groups[other->program];
		bool is_same = is_same_job(other->log, span->log);
		bool is_later = span->start_ns > group->last_ns;

		/* A job can start its ranks again. */
		if (is_conflict(other->log, span->log, is_later && !is_same))
			group->unfit = index + 1;
		if (is_same)
			group->same = index + 1;
	}
	for (g = 0; g < programs->count; g++)
		if (groups[g].unfit <= index &&
		    (groups[g].same > index ||
		     time_between(groups[g].last_ns, span->start_ns) <= GAP_NS))
			break;
	span->program = g;
	if (g == programs->count)
		groups[programs->count++] = (struct group){.last_ns = span->last_ns};
	else if (span->last_ns > groups[g].last_ns)
		groups[g].last_ns = span->last_ns;
}

/* Sets count and wall_ns. */
static void programs_finish(struct programs *programs)
{
	struct group *groups = xt_calloc(programs->span_count + 1, sizeof(*groups));
	int64_t end_ns = 0;
	uint64_t gaps_ns = 0;

	SORT(programs->spans, programs->span_count, compare_spans);
	for (size_t s = 0; s < programs->span_count; s++) {
		const struct program_span *span = &programs->spans[s];

		place_span(programs, groups, s);
		gaps_ns += s ? time_between(end_ns, span->start_ns) : 0;
		if (!s || span->end_ns > end_ns)
			end_ns = span->end_ns;
	}
	free(groups);
	if (programs->span_count)
		programs->wall_ns = time_between(programs->spans[0].start_ns, end_ns) -
				    (programs->count > 1 ? gaps_ns : 0);
}

static void free_place(struct finding_place *place)
{
	free(place->frames);
	*place = (struct finding_place){0};
}

/* Finds what the launching thread did. Before it existed, the main thread was responsible. */
static void set_cpu_place(struct reading *reading, struct headline_gap *gap, uint64_t from_ns,
			  uint64_t until_ns, uint32_t callsite)
{
	const struct model *model = reading->model;
	uint32_t thread = reading->sums.callsites.list[callsite].thread;
	uint32_t tid = thread < model->threads.count ? model->threads.rows[thread].tid : 0;

	free_place(&gap->cpu_place);
	cpu_place_of_span(reading, tid, from_ns, until_ns, &gap->cpu_place, &gap->cpu_ns);
	if (gap->cpu_ns >= (until_ns - from_ns) / 4 || tid == model->pid)
		return;
	free_place(&gap->cpu_place);
	cpu_place_of_span(reading, model->pid, from_ns, until_ns, &gap->cpu_place, &gap->cpu_ns);
}

/* Replaces the gap. */
static void set_gap(struct reading *reading, struct headline_gap *gap, uint64_t ns,
		    uint64_t from_ns, uint32_t callsite)
{
	set_cpu_place(reading, gap, from_ns, from_ns + ns, callsite);
	free_place(&gap->place);
	gap->ns = ns;
	gap->from_ns = process_time_ns(&reading->process, from_ns);
	if (callsite)
		finding_place(reading, &reading->sums.callsites.list[callsite], &gap->place);
}

static void add_gpu(struct headline *headline, const struct model *model, uint32_t device)
{
	const char *name = model_gpu(model, device, "name");

	for (size_t g = 0; g < headline->gpu_count; g++)
		if (!strcmp(headline->gpus[g], name))
			return;
	if (!name[0] || headline->gpu_count == HEADLINE_GPUS)
		return;
	headline->gpus[headline->gpu_count++] = xt_strdup(name);
}

/* A device without a UUID counts as another one. */
static void add_uuid(struct headline *headline, const char *uuid)
{
	for (size_t u = 0; *uuid && u < headline->uuids.count; u++)
		if (!strcmp(headline->uuids.list[u], uuid))
			return;
	list_append(headline->uuids, xt_strdup(uuid));
}

static void add_device(struct reading *reading, const struct device_stats *device)
{
	struct headline *headline = &reading->run->found->headline;
	const struct longest_gap *gap = &device->longest_gap;
	uint64_t span_ns = device_span_ns(device);

	add_uuid(headline, model_gpu(reading->model, device->device, "uuid"));
	if (!headline->device_count++ || span_ns < headline->span_min_ns)
		headline->span_min_ns = span_ns;
	headline->span_max_ns = larger(headline->span_max_ns, span_ns);
	saturating_add(&headline->span_ns, span_ns);
	saturating_add(&headline->busy_ns, device->work_union.ns);
	for (int class = 0; class < IDLE_CLASSES; class ++)
		saturating_add(&headline->idle_ns[class], device->idle[class].ns);
	if (gap->ns <= headline->longest.ns)
		return;
	headline->longest.class = gap->class;
	set_gap(reading, &headline->longest, gap->ns, gap->from_ns, gap->callsite);
}

/* The time before the first work of any device. A part of a run has none. */
static void add_start_up(struct reading *reading, uint64_t start_ns)
{
	struct headline *headline = &reading->run->found->headline;
	const struct callsites *callsites = &reading->sums.callsites;
	const struct device_stats *first = NULL;
	uint64_t ns;

	for (size_t d = 0; d < callsites->device_count; d++)
		if (!first || callsites->devices[d].first_ns < first->first_ns)
			first = &callsites->devices[d];
	/* While recording is paused, the work is not known. */
	if (!first || run_is_part(reading->run) || first->first_ns <= start_ns ||
	    pauses_within(&reading->model->pauses, start_ns, first->first_ns))
		return;
	ns = first->first_ns - start_ns;
	if (ns <= headline->start_up.ns)
		return;
	set_gap(reading, &headline->start_up, ns, start_ns, first->first_callsite);
}

static void add_run_time(struct reading *reading, uint64_t from_ns, uint64_t until_ns)
{
	struct programs *programs = &reading->run->found->headline.programs;
	const struct process *process = &reading->process;
	int64_t end_ns = process_time_ns(process, until_ns);
	int64_t last_ns = process_time_ns(process, process->model->times.last_clock_ns);

	xt_append(programs->spans, programs->span_count, programs->span_capacity,
		  (struct program_span){.log = process->log,
					.start_ns = process_time_ns(process, from_ns),
					.end_ns = end_ns,
					.last_ns = last_ns > end_ns ? last_ns : end_ns});
}

void headline_add_samples(struct reading *reading)
{
	const struct process *process = &reading->process;
	const struct cpu_samples *samples = &reading->model->cpu_samples;
	uint64_t from_ns = run_is_part(reading->run)
				   ? UINT64_MAX
				   : model_process_start_ns(process->model, &process->log->header);
	uint64_t until_ns = 0;

	for (size_t s = 0; s < samples->count; s++) {
		const struct cpu_sample *sample = &samples->list[s];

		if (!cpu_sums_wants(reading, sample))
			continue;
		from_ns = smaller(sample->first_ns, from_ns);
		until_ns = larger(sample->last_ns, until_ns);
	}
	if (from_ns < until_ns)
		add_run_time(reading, from_ns, until_ns);
}

static uint64_t since_start_ns(const struct model *model, uint64_t time_ns)
{
	return time_ns > model->times.start_ns ? time_ns - model->times.start_ns : 0;
}

static void add_part(struct reading *reading)
{
	struct run *run = reading->run;
	const struct model *model = reading->model;
	const struct callsites *callsites = &reading->sums.callsites;
	const char *trigger = model_meta(model, "snapshot.trigger");
	uint64_t from_ns = model->times.from_ns, until_ns = model->times.last_clock_ns;

	if ((!model_is_cut(model) && !*trigger && !model->times.full_ns) ||
	    run->sums->recording.part_count++)
		return;
	/* A killed process wrote no clock at its end. Work may be older than the first call. */
	if (callsites->first_ns < callsites->last_ns) {
		from_ns = smaller(callsites->first_ns, from_ns);
		until_ns = larger(callsites->last_ns, until_ns);
	}
	run->sums->recording.part.from_ns = since_start_ns(model, from_ns);
	run->sums->recording.part.until_ns = since_start_ns(model, until_ns);
	run->sums->recording.part.full_ns = since_start_ns(model, model->times.full_ns);
	run->sums->recording.part.is_flight_recorder = model_is_flight_recording(model);
	snprintf(run->sums->recording.part.trigger, sizeof(run->sums->recording.part.trigger), "%s",
		 trigger);
}

void headline_add(struct reading *reading)
{
	struct headline *headline = &reading->run->found->headline;
	const struct callsites *callsites = &reading->sums.callsites;
	const struct process *process = &reading->process;
	uint64_t start_ns = model_process_start_ns(process->model, &process->log->header);

	add_part(reading);
	if (!callsites->by_stack || callsites->first_ns >= callsites->last_ns)
		return;
	add_run_time(reading, run_is_part(reading->run) ? callsites->first_ns : start_ns,
		     callsites->last_ns);
	headline->process_count += callsites->device_count != 0;
	for (size_t d = 0; d < callsites->device_count; d++) {
		add_gpu(headline, reading->model, callsites->devices[d].device);
		add_device(reading, &callsites->devices[d]);
	}
	add_start_up(reading, start_ns);
}

/* A job that hangs precedes all, and costs of each step precede those of the start. */
static bool precedes(const struct finding *a, const struct finding *b)
{
	bool a_hangs = a->rule == RULE_HANG, b_hangs = b->rule == RULE_HANG;

	if (a_hangs != b_hangs)
		return a_hangs;
	return a->is_outside != b->is_outside ? b->is_outside : a->cost_ns > b->cost_ns;
}

/* Keeps the most expensive findings. */
static void choose_costs(struct headline *headline, const struct findings *findings)
{
	struct headline_cost *costs = headline->costs;

	for (size_t f = 0; f < findings->count; f++) {
		size_t at = headline->cost_count;

		while (at && precedes(&findings->list[f], costs[at - 1].finding))
			at--;
		if (at == HEADLINE_COSTS)
			continue;
		headline->cost_count = smaller(headline->cost_count + 1, (size_t)HEADLINE_COSTS);
		memmove(&costs[at + 1], &costs[at],
			(headline->cost_count - at - 1) * sizeof(*costs));
		costs[at] = (struct headline_cost){.finding = &findings->list[f],
						   .whole_ns = findings->list[f].whole_ns};
	}
}

size_t headline_idle_order(const struct headline *headline, enum idle_class order[IDLE_CLASSES])
{
	size_t count = 0;

	for (int class = 0; class < IDLE_CLASSES; class ++) {
		size_t at = count;

		if (!headline->idle_ns[class])
			continue;
		while (at && headline->idle_ns[order[at - 1]] < headline->idle_ns[class])
			at--;
		memmove(&order[at + 1], &order[at], (count++ - at) * sizeof(*order));
		order[at] = (enum idle_class) class;
	}
	return count;
}

static const struct column_def idle_columns[] = {
	COLUMN("gpu_idle_ns", NS, OTHER, "idle time of all GPUs", HEAD("time", 12)),
	COLUMN("share", SHARE, OTHER, "part of the time from the first to the last work",
	       HEAD("share", 7)),
	COLUMN("class", TEXT, OTHER, "class of the cause", LAST("cause")),
};

static void open_idle(struct table_rows *rows)
{
	enum idle_class *order = rows->memory = xt_calloc(IDLE_CLASSES, sizeof(*order));

	rows->count = headline_idle_order(&rows->run->found->headline, order);
}

static void put_idle(struct table_rows *rows, struct cells *cells)
{
	const struct headline *headline = &rows->run->found->headline;
	enum idle_class class = ((const enum idle_class *)rows->memory)[rows->index];

	cells_put(cells, cell_number(headline->idle_ns[class]));
	cells_put(cells, cell_share(headline->idle_ns[class], headline->span_ns));
	cells_put(cells, cell_text(idle_labels[class]));
}

const struct table_def text_idle = {
	.name = "idle",
	.title = "Idle time by cause",
	HAS_COLUMNS(idle_columns),
	.shows = "gpu_idle_ns share class",
	.view = "idle_by_class",
	.open = open_idle,
	.row = put_idle,
};

/* Name of whole_ns of a finding. NULL: the time of the GPUs. */
static const char *whole_of(const struct finding *finding)
{
	if (finding->step_count)
		return "the steps";
	if (finding->rule >= RULE_CPU_FIRST)
		return NULL;
	return finding->rule == RULE_LATE_RANK || finding->rule == RULE_HANG ? "the job"
									     : "active time";
}

static bool has_cost(const struct finding *finding)
{
	return finding->cost_ns && !rule_specs[finding->rule].is_error;
}

/* Returns the time that all findings of the list are a part of. NULL if they differ. */
static const char *common_whole(const struct headline *headline)
{
	const struct finding *first = NULL;

	for (size_t c = 0; c < headline->cost_count; c++) {
		const struct finding *finding = headline->costs[c].finding;

		if (!has_cost(finding))
			continue;
		first = first ?: finding;
		if (!whole_of(finding) || whole_of(finding) != whole_of(first) ||
		    finding->whole_ns != first->whole_ns)
			return NULL;
	}
	return first ? whole_of(first) : NULL;
}

void headline_finish(struct run *run)
{
	struct headline *headline = &run->found->headline;

	programs_finish(&headline->programs);
	choose_costs(headline, &run->found->findings);
	/* Shares of different times cannot be compared: then all are of the time of the GPUs. */
	for (size_t c = 0; c < headline->cost_count && !common_whole(headline); c++) {
		const struct finding *finding = headline->costs[c].finding;

		if (has_cost(finding) && finding->rule != RULE_HANG && !finding->step_count)
			headline->costs[c].whole_ns = headline->span_ns;
	}
}

char *headline_cost_what(const struct run *run, const struct headline_cost *cost)
{
	const struct headline *headline = &run->found->headline;
	const struct finding *finding = cost->finding;
	const char *what = finding->headline ?: rule_specs[finding->rule].headline, *percent;
	const char *whole = common_whole(headline);
	uint32_t only = finding_only_step(run, finding);
	char time[TIME_BYTES], *devices, *span, *text;

	if (only)
		return xt_asprintf("%s in step %u alone (%s): %s",
				   format_time_short(time, finding->cost_ns), only,
				   finding_share(finding), what);
	if (has_cost(finding) && finding->step_count)
		return xt_asprintf("%s per step (%s): %s",
				   format_time_short(time, finding_step_ns(finding)),
				   finding_share(finding), what);
	/* A job may hang for longer than its GPUs worked. */
	if (!has_cost(finding) || (!whole && finding->rule == RULE_HANG))
		return xt_strdup(what);
	devices = headline_devices_text(headline);
	span = *devices ? xt_asprintf("the time of %s", devices) : headline_span_text(headline);
	percent = format_percent_of(finding->cost_ns, cost->whole_ns);
	if (whole_of(finding))
		text = xt_asprintf("%s of %s: %s", percent, whole ?: span, what);
	else
		text = xt_asprintf("%s of %s: GPU idle%s (%s)", percent, whole ?: span,
				   finding->is_outside ? " outside the steps" : "", what);
	free_all(devices, span);
	return text;
}

char *headline_devices_text(const struct headline *headline)
{
	size_t gpu_count = headline->uuids.count;
	char shared[48] = "";

	if (headline->device_count < 2)
		return xt_strdup("");
	if (headline_shares_gpus(headline))
		snprintf(shared, sizeof(shared), "%zu processes on ", headline->process_count);
	return xt_asprintf("%s%zu GPU%s", shared, gpu_count, gpu_count == 1 ? "" : "s");
}

char *headline_span_text(const struct headline *headline)
{
	char least[TIME_BYTES], most[TIME_BYTES], *devices = headline_devices_text(headline), *text;

	format_time_short(least, headline->span_min_ns);
	format_time_short(most, headline->span_max_ns);
	text = xt_asprintf("%s%s%s%s%s%s", devices, *devices ? ", " : "", least,
			   strcmp(least, most) ? " to " : "", strcmp(least, most) ? most : "",
			   *devices ? " each" : "");
	free(devices);
	return text;
}

uint64_t headline_idle_ns(const struct headline *headline)
{
	uint64_t sum_ns = 0;

	for (int class = 0; class < IDLE_CLASSES; class ++)
		saturating_add(&sum_ns, headline->idle_ns[class]);
	return sum_ns;
}

static void headline_free(struct headline *headline)
{
	for (size_t g = 0; g < headline->gpu_count; g++)
		free(headline->gpus[g]);
	for (size_t u = 0; u < headline->uuids.count; u++)
		free(headline->uuids.list[u]);
	free_all(headline->uuids.list, headline->programs.spans);
	free_place(&headline->start_up.place);
	free_place(&headline->longest.place);
	free_place(&headline->start_up.cpu_place);
	free_place(&headline->longest.cpu_place);
	*headline = (struct headline){0};
}

void conclusions_free(struct conclusions *conclusions)
{
	findings_free(&conclusions->findings);
	headline_free(&conclusions->headline);
	ranks_free(&conclusions->ranks);
}
