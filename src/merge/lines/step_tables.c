/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of steps: each step with its parts, and the budget of a typical step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/lines/lines.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/inputs.h"
#include "merge/steps/steps.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

/* Time of one line of code in one part of the steps. */
struct part_line {
	uint32_t part;
	uint32_t key;	/* of the line that analysis_lines charges, or 0 */
	uint32_t frame; /* if it is 0: the name of the call, or of the CPU code */
	uint64_t ns;
};

COMPARE_BY(compare_lines, struct part_line, UP(part) UP(key) UP(frame))

#define NEARLY_ALL 10 /* all but 1/10 */

struct part_lines {
	LIST(struct part_line);
};

/* Adds the time of a path. Lines that share the path share it as in the whole run. */
static void add_line(struct part_lines *list, const struct run *run, uint32_t node, uint32_t part,
		     uint64_t ns)
{
	const struct lines *lines = run_analysis(run, &analysis_lines);
	const struct line_sum *sum;
	uint64_t whole = 0;

	if (!ns || node == PATH_ROOT || node >= lines->sums_of_capacity)
		return;
	for (uint32_t s = lines->sums_of[node]; s; s = sum->next) {
		sum = &lines->sums[s - 1];
		saturating_add(&whole, line_sum_ns(sum));
	}
	for (uint32_t s = lines->sums_of[node]; s && whole; s = sum->next) {
		struct part_line line = {.part = part};

		sum = &lines->sums[s - 1];
		line.key = sum->key;
		line.ns = (uint64_t)((unsigned __int128)ns * line_sum_ns(sum) / whole);
		if (!line.key)
			line.frame = run->paths.nodes[run->paths.nodes[node].parent].name;
		if (line.ns)
			list_append(*list, line);
	}
}

/* The caller frees it. */
static char *line_text(const struct run *run, const struct part_line *line)
{
	if (line->key)
		return lines_key_text(run_analysis(run, &analysis_lines), line->key);
	return line->frame == NAME_EMPTY ? xt_strdup("")
					 : paths_frame_where(&run->paths, line->frame);
}

/* Adds up the times of each line in each part. */
static void join_lines(struct part_lines *lines)
{
	size_t kept = 0;

	SORT(lines->list, lines->count, compare_lines);
	for (size_t l = 1; l < lines->count; l++) {
		if (compare_lines(&lines->list[kept], &lines->list[l]))
			lines->list[++kept] = lines->list[l];
		else
			saturating_add(&lines->list[kept].ns, lines->list[l].ns);
	}
	lines->count = lines->count ? kept + 1 : 0;
}

/* The lines of the notes. The caller frees the list. */
static struct part_lines lines_of_notes(const struct run *run, const struct step_notes *notes)
{
	struct part_lines lines = {0};

	for (size_t n = 0; n < notes->count; n++)
		add_line(&lines, run, notes->list[n].place, notes->list[n].part, notes->list[n].ns);
	join_lines(&lines);
	return lines;
}

struct budget_row {
	uint32_t part;
	struct part_line line; /* with most of it */
	uint64_t total_ns, step_ns, median_ns, slowest_ns;
};

static const struct column_def budget_columns[] = {
	COLUMN("part", TEXT, OTHER, "what the GPU did, or why it was idle", WIDE("part", 32, 80)),
	COLUMN("step_ns", NS, FROM(budget_row, step_ns), "mean of all steps after the warm-up",
	       HEAD("per step", 10)),
	COLUMN("share", SHARE, OTHER, "part of the time of the steps", HEAD("share", 7), TEXT_ONLY),
	COLUMN("median_ns", NS, FROM(budget_row, median_ns), "in the median step",
	       WIDE("median", 10, 60)),
	COLUMN("slowest_ns", NS, FROM(budget_row, slowest_ns), "in the slowest step",
	       WIDE("slowest", 10, 100)),
	COLUMN("total_ns", NS, FROM(budget_row, total_ns), "in all steps after the warm-up"),
	COLUMN("line", TEXT, OTHER, "line of code with most of it", OPTIONAL),
	COLUMN("line_ns", NS, FROM(budget_row, line.ns),
	       "GPU time or idle time of that line in these steps"),
	COLUMN("place", TEXT, OTHER, "the line, with its place first", LAST("most of it in"),
	       TEXT_ONLY),
};

/* Sets the line with most time in each part. */
static void set_lines(struct budget_row *list, const struct part_lines *lines)
{
	for (size_t l = 0; l < lines->count; l++) {
		struct budget_row *row = &list[lines->list[l].part];

		if (lines->list[l].ns <= row->line.ns)
			continue;
		row->line = lines->list[l];
	}
}

static void open_budget(struct table_rows *rows)
{
	const struct steps *steps = steps_of(rows->run);
	struct part_lines lines;
	struct budget_row *list;

	if (!steps)
		return;
	list = rows->memory = xt_calloc(STEP_PARTS, sizeof(*list));
	rows->whole = steps->steady.wall_ns;
	lines = lines_of_notes(rows->run, &steps->sums);
	set_lines(list, &lines);
	free(lines.list);
	table_records(rows, list, 0);
	for (uint32_t part = 0; part < STEP_PARTS; part++) {
		list[part].part = part;
		list[part].total_ns = steps->steady.parts_ns[part];
		list[part].step_ns = list[part].total_ns / steps->steady.count;
		list[part].median_ns = steps->median->parts_ns[part];
		list[part].slowest_ns = steps->slowest->parts_ns[part];
		if (list[part].total_ns)
			table_add(rows, part);
	}
}

static void put_budget(struct table_rows *rows, struct cells *cells)
{
	const struct budget_row *row = rows->record;
	struct cell place;
	char *line;

	cells_put(cells, cell_text(step_part_names[row->part]));
	cells_put(cells, cell_share(row->total_ns, rows->whole));
	line = line_text(rows->run, &row->line);
	place = cell_owned(rows, paths_place_first(line));
	place.short_length = strcspn(place.text, " ");
	cells_put(cells, cell_owned(rows, line));
	cells_put(cells, place);
}

const struct table_def table_budget = {
	.name = "budget",
	.title = "Where the time of a step goes",
	.what = "The parts of a step after the warm-up, which add up to its time on a GPU.",
	HAS_COLUMNS(budget_columns),
	.shows = "part step_ns share median_ns slowest_ns place",
	.is_whole = true,
	.open = open_budget,
	.row = put_budget,
};

/*
 * The cause of a slow step. It is the part that grew most, compared with the median step of the
 * device. A late rank counts instead if it cost the others more.
 */
struct slow_cause {
	uint32_t part;
	struct part_line line;
	uint64_t more_ns;
	const struct step_cause *late; /* or NULL */
};

#define PART(name, part, text) COLUMN(name, NS, FROM(step, parts_ns[part]), text)
#define IDLE_COLUMN(name, column, text)                                                            \
	PART("idle_" #column, STEP_IDLE + IDLE_##name, "idle: " text),

static const struct column_def step_columns[] = {
	COLUMN("process", TEXT, OTHER, "label of the process"),
	COLUMN("device", CODE, FROM(step, device), "its number in the process"),
	COLUMN("step", COUNT, OTHER, "number of the step in the process, from 1", HEAD("step", 4)),
	COLUMN("kind", WORD, OTHER, "warm-up or steady"),
	COLUMN("start_ns", MOMENT, OTHER, "when it began on the device", WIDE("at", 10, 100)),
	COLUMN("wall_ns", NS, FROM(step, wall_ns), "its time on the device, the sum of its parts",
	       HEAD("time", 10)),
	PART("compute_ns", STEP_COMPUTE, "kernels, collectives left out"),
	PART("collective_ns", STEP_COLLECTIVE, "collectives, without compute"),
	PART("copy_ns", STEP_COPY, "copies and memsets alone"),
	IDLE_KNOWN_CAUSES(IDLE_COLUMN)
		PART("unexplained_ns", STEP_UNEXPLAINED, "idle time whose cause is unknown"),
	COLUMN("cause", TEXT, OTHER,
	       "of slow steps: the part that grew most, or the late rank that costs more",
	       OPTIONAL),
	COLUMN("cause_ns", NS, OTHER,
	       "of slow steps: by so much more than in the median step of the GPU, or what the "
	       "late rank costs each other rank",
	       OPTIONAL),
	COLUMN("cause_line", TEXT, OTHER, "of slow steps: the line of code with most of it",
	       OPTIONAL),
	COLUMN("text", TEXT, OTHER, "what made it slow", LAST("what took longer"), TEXT_ONLY),
};
#undef IDLE_COLUMN

static bool is_slow(const struct slow_step *slow, const struct step *step)
{
	return slow->step.process == step->process && slow->step.device == step->device &&
	       slow->step.number == step->number;
}

/* The line that grew most in a part, compared with the mean of all steps. */
static struct part_line line_of_cause(const struct run *run, const struct steps *steps,
				      const struct step_notes *notes, uint32_t part)
{
	struct part_lines usual = lines_of_notes(run, &steps->sums);
	struct part_lines here = lines_of_notes(run, notes);
	struct part_line line = {0};
	uint64_t most_ns = 0;

	for (size_t l = 0; l < here.count; l++) {
		const struct part_line *row = &here.list[l];
		const struct part_line *all = SEARCH(row, usual.list, usual.count, compare_lines);
		uint64_t mean_ns = all ? all->ns / steps->steady.count : 0;

		if (row->part == part && row->ns > mean_ns && row->ns - mean_ns > most_ns) {
			most_ns = row->ns - mean_ns;
			line = *row;
		}
	}
	free_all(here.list, usual.list);
	return line;
}

/* Time of a line in all parts of steps. */
static uint64_t line_ns(const struct run *run, const struct step_notes *notes, uint32_t key)
{
	struct part_lines list = lines_of_notes(run, notes);
	uint64_t sum_ns = 0;

	for (size_t l = 0; l < list.count; l++)
		if (list.list[l].key == key)
			saturating_add(&sum_ns, list.list[l].ns);
	free(list.list);
	return sum_ns;
}

uint32_t lines_only_step(const struct run *run, uint32_t node)
{
	const struct lines *lines = run_analysis(run, &analysis_lines);
	const struct steps *steps = steps_of(run);
	uint32_t key = 0;
	uint64_t all_ns;

	if (!lines || !steps || steps->devices.count > 1)
		return 0;
	for (uint32_t n = node; n != PATH_ROOT && !key; n = run->paths.nodes[n].parent)
		if (n < lines->sums_of_capacity && lines->sums_of[n])
			key = lines->sums[lines->sums_of[n] - 1].key;
	if (!key)
		return 0;
	all_ns = line_ns(run, &steps->sums, key);
	for (size_t i = 0; i < steps->slow.count; i++)
		if (line_ns(run, &steps->slow.list[i].notes, key) > all_ns - all_ns / NEARLY_ALL)
			return steps->slow.list[i].step.number + 1;
	return 0;
}

static struct slow_cause cause_of(const struct run *run, const struct steps *steps,
				  const struct step *step)
{
	const struct slow_step *slow = NULL;
	const struct step_cause *late;
	const struct step *median;
	struct slow_cause cause = {0};
	uint64_t late_ns;

	for (size_t i = 0; i < steps->slow.count; i++)
		if (is_slow(&steps->slow.list[i], step))
			slow = &steps->slow.list[i];
	if (!slow)
		return cause;
	median = steps_median(steps, step);
	for (uint32_t part = 0; part < STEP_PARTS; part++) {
		uint64_t usual_ns = median->parts_ns[part];

		if (step->parts_ns[part] > usual_ns &&
		    step->parts_ns[part] - usual_ns > cause.more_ns)
			cause = (struct slow_cause){.part = part,
						    .more_ns = step->parts_ns[part] - usual_ns};
	}
	late = steps_are_alike(run)
		       ? step_cause_of(&run->compared->report, step->number + 1, &late_ns)
		       : NULL;
	if (late && late_ns > cause.more_ns)
		return (struct slow_cause){.late = late, .more_ns = late_ns};
	if (cause.more_ns)
		cause.line = line_of_cause(run, steps, &slow->notes, cause.part);
	return cause;
}

static void open_steps(struct table_rows *rows)
{
	const struct steps *steps = steps_of(rows->run);

	if (steps)
		table_records(rows, steps->all.list, steps->all.count);
}

COMPARE_BY(compare_slow, struct slow_step,
	   DOWN(step.wall_ns) UP(step.process) UP(step.device) UP(step.number))

/* The slowest steps, slowest first. */
static void open_slow_steps(struct table_rows *rows)
{
	const struct steps *steps = steps_of(rows->run);
	const bool are_ranks = rows->run->inputs->logs[0].rank != RANK_UNKNOWN;
	struct slow_step *list;
	size_t count = 0;

	if (!steps)
		return;
	list = rows->memory = xt_malloc((steps->slow.count + 1) * sizeof(*list));
	if (steps->slow.count)
		memcpy(list, steps->slow.list, steps->slow.count * sizeof(*list));
	SORT(list, steps->slow.count, compare_slow);
	/* Ranks take each step together: only the slowest of them says more. */
	for (size_t i = 0; i < steps->slow.count && count < STEPS_SLOW; i++) {
		bool is_known = false;

		for (size_t k = 0; are_ranks && k < count; k++)
			is_known |= list[k].step.number == list[i].step.number;
		if (!is_known)
			list[count++] = list[i];
	}
	table_records(rows, list, count);
}

static void put_cause(struct table_rows *rows, struct cells *cells, const struct steps *steps,
		      const struct step *step)
{
	struct slow_cause cause = cause_of(rows->run, steps, step);
	const struct step_process *process = &steps->processes.list[step->process];
	bool is_late = cause.late && process->log == &rows->run->inputs->logs[cause.late->log];
	const char *owner =
		steps->processes.count > 1 && (!cause.late || is_late) ? process->label : "";
	char more[TIME_BYTES], *line, *place, *text;

	if (!cause.more_ns) {
		for (int column = 0; column < 4; column++)
			cells_put(cells, CELL_ABSENT);
		return;
	}
	format_time_short(more, cause.more_ns);
	text = cause.late && !is_late
		       ? xt_asprintf("waiting for %s", rows->run->labels[cause.late->log])
		       : xt_strdup(is_late ? "late for the others" : step_part_names[cause.part]);
	line = cause.late ? wait_cause_where(&rows->run->paths, cause.late->node)
			  : line_text(rows->run, &cause.line);
	cells_put(cells, cell_owned(rows, text));
	cells_put(cells, cell_number(cause.more_ns));
	cells_put(cells, cell_owned(rows, line));
	place = paths_place_first(line);
	cells_put(cells,
		  cell_owned(rows, xt_asprintf("%s%s%s +%s%s%.*s", owner, owner[0] ? ": " : "",
					       text, more, line[0] ? ", in " : "",
					       (int)strcspn(place, " "), place)));
	free(place);
}

static void put_step(struct table_rows *rows, struct cells *cells)
{
	const struct steps *steps = steps_of(rows->run);
	const struct step *step = rows->record;
	const struct step_process *process = &steps->processes.list[step->process];

	cells_put(cells, cell_text(process->label));
	cells_put(cells, cell_number(step->number + 1));
	cells_put(cells, cell_text(step->is_warmup ? "warm-up" : "steady"));
	cells_put(cells, cell_moment((int64_t)(step->start_ns - (uint64_t)process->origin_ns)));
	put_cause(rows, cells, steps, step);
}

#define STEPS_IN_JSON 4000
#define FEW_STEPS     5 /* say so if they take less than 1/5 of the run */

#define STEP_TABLE(open_rows)                                                                      \
	{                                                                                          \
		.name = "steps", .title = "Slowest steps",                                         \
		.what = "Each step on each GPU with its parts. A program without iterations has "  \
			"none.",                                                                   \
		HAS_COLUMNS(step_columns), .shows = "step start_ns wall_ns text",                  \
		.json.rows_max = STEPS_IN_JSON, .open = open_rows, .row = put_step                 \
	}

const struct table_def table_steps = STEP_TABLE(open_steps);
const struct table_def text_slow_steps = STEP_TABLE(open_slow_steps);

static const char *const source_texts[] = {
	[ITERATIONS_RANGE] = "NVTX range ",
	[ITERATIONS_OPTIMIZER] = "steps of the optimizer",
	[ITERATIONS_PERIOD] = "launches that repeat",
};

/* The first process with steps after the warm-up. */
static const struct step_process *first_process(const struct steps *steps)
{
	const struct step_device_sums *device = steps->devices.list;

	while (!device->steady.count)
		device++;
	return &steps->processes.list[device->process];
}

/* Number of devices with steps after the warm-up, by process. */
static uint64_t count_devices(const struct steps *steps)
{
	uint64_t count = 0;

	for (size_t d = 0; d < steps->devices.count; d++)
		count += steps->devices.list[d].steady.count != 0;
	return count;
}

/* " on each of 4 GPUs", " on 1 of 2 GPUs", " in each of 3 processes on 1 GPU", or "". */
static char *gpus_text(const struct steps *steps, size_t gpu_count)
{
	uint64_t shares = count_devices(steps), gpus = steps->gpu_count;
	uint64_t all = larger(gpu_count, gpus);
	char in[48] = "", of[32] = "";

	if (shares < 2 && all < 2)
		return xt_strdup("");
	if (gpus < shares)
		snprintf(in, sizeof(in), " in each of %" PRIu64 " processes", shares);
	if (gpus < all)
		snprintf(of, sizeof(of), "%" PRIu64 " of ", gpus);
	return xt_asprintf("%s on %s%s%" PRIu64 " GPU%s", in,
			   gpus == shares && gpus > 1 ? "each of " : "", of, all,
			   all == 1 ? "" : "s");
}

/* "20 steps", or "18 to 20 steps" if GPUs have different numbers. */
static void format_counts(char text[64], const struct steps *steps)
{
	uint64_t least = UINT64_MAX, most = 0;
	char from[32] = "";

	for (size_t d = 0; d < steps->devices.count; d++) {
		uint64_t count = steps->devices.list[d].steady.count;

		least = count ? smaller(least, count) : least;
		most = larger(most, count);
	}
	if (least < most)
		snprintf(from, sizeof(from), "%" PRIu64 " to ", least);
	snprintf(text, 64, "%s%" PRIu64 " step%s", from, most, most == 1 ? "" : "s");
}

char *steps_text(const struct steps *steps, size_t gpu_count, uint64_t run_ns)
{
	const struct step_process *first = first_process(steps);
	uint64_t alone_ns = steps->steady.parts_ns[STEP_COLLECTIVE];
	uint64_t busy_ns = step_busy_ns(steps->steady.parts_ns) - alone_ns;
	char median[TIME_BYTES], slowest[TIME_BYTES], busy[SHARE_BYTES], alone[SHARE_BYTES];
	uint64_t all_ns = steps->warmup.wall_ns + steps->steady.wall_ns;
	char of[48] = "", few[64] = "", mean[TIME_BYTES], share[SHARE_BYTES];
	char counts[64], *gpus = gpus_text(steps, gpu_count), *text;

	for (size_t d = 0; d < steps->devices.count; d++)
		if (steps->devices.list[d].steady.count > STEPS_MAX)
			snprintf(of, sizeof(of), " of the first %u", STEPS_MAX);
	if (all_ns < run_ns / FEW_STEPS)
		snprintf(few, sizeof(few), "; only %s of the run is in steps",
			 format_share(share, all_ns, run_ns));
	format_counts(counts, steps);
	format_time_short(median, steps->median->wall_ns);
	format_time_short(slowest, steps->slowest->wall_ns);
	/* Costs are means of a step. */
	format_time_short(mean, steps->steady.wall_ns / steps->steady.count);
	text = xt_asprintf("%s of %s%s (median%s; mean %s; slowest %s, step %" PRIu32
			   "), GPU busy %s%s%s; by %s%s%s",
			   counts, median, gpus, of, mean, slowest, steps->slowest->number + 1,
			   format_share(busy, busy_ns, steps->steady.wall_ns),
			   alone_ns ? ", collectives alone " : "",
			   alone_ns ? format_share(alone, alone_ns, steps->steady.wall_ns) : "",
			   source_texts[first->source], first->name ? first->name : "", few);
	free(gpus);
	return text;
}

char *steps_warmup_text(const struct steps *steps)
{
	const struct step_sums *sums = &steps->warmup;
	uint64_t devices = count_devices(steps);
	uint32_t longest = 0;
	char wall[TIME_BYTES], share[SHARE_BYTES];

	if (!sums->count)
		return NULL;
	for (uint32_t p = 0; p < STEP_PARTS; p++)
		if (sums->parts_ns[p] > sums->parts_ns[longest])
			longest = p;
	format_time_short(wall, sums->wall_ns / devices);
	return xt_asprintf("%" PRIu64 " step%s before, %s%s; %s of it %s", sums->count / devices,
			   sums->count / devices == 1 ? "" : "s", wall, devices > 1 ? " each" : "",
			   format_share(share, sums->parts_ns[longest], sums->wall_ns),
			   step_part_names[longest]);
}

void steps_put_json(struct json *json, const struct steps *steps, size_t gpu_count, uint64_t run_ns)
{
	static const char *const sources[] = {[ITERATIONS_RANGE] = "nvtx",
					      [ITERATIONS_OPTIMIZER] = "optimizer",
					      [ITERATIONS_PERIOD] = "period"};
	const struct step_process *first = first_process(steps);
	char *text = steps_text(steps, gpu_count, run_ns), *warmup = steps_warmup_text(steps);

	json_begin_object(json, "steps");
	json_string(json, "text", text);
	if (warmup)
		json_string(json, "warm_up", warmup);
	json_string(json, "source", sources[first->source]);
	json_string(json, "name", first->name ? first->name : "");
	json_u64(json, "gpu_count", steps->gpu_count);
	json_u64(json, "step_count", steps->steady.count);
	json_u64(json, "wall_ns", steps->steady.wall_ns);
	json_u64(json, "median_ns", steps->median->wall_ns);
	json_u64(json, "slowest_ns", steps->slowest->wall_ns);
	json_u64(json, "slowest_step", steps->slowest->number + 1);
	json_end_object(json);
	free_all(text, warmup);
}
