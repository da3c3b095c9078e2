/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the run profile as JSON. docs/DIFF.md describes each member; src/diff/load/run_profile.c
 * reads it.
 *
 * Numbers are rounded to their useful precision, because profiles may be kept in a repository.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/profile/profile.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/trust.h"

#define MEAN_DIGITS  9
#define ERROR_DIGITS 3

static const char *const level_names[PROFILE_LEVELS] = {
	[PROFILE_TOTAL] = "totals", [PROFILE_IDLE] = "idle",	  [PROFILE_COPY] = "copies",
	[PROFILE_BYTES] = "bytes",  [PROFILE_MEMORY] = "memory",  [PROFILE_RANGE] = "ranges",
	[PROFILE_SPAN] = "spans",   [PROFILE_KERNEL] = "kernels", [PROFILE_API] = "apis",
	[PROFILE_PATH] = "paths",   [PROFILE_CALL] = "calls",
};

static const char *const total_names[PROFILE_TOTALS] = {
	[TOTAL_GPU_TIME] = "gpu-time",
	[TOTAL_GPU_BUSY] = "gpu-busy",
	[TOTAL_GPU_IDLE] = "gpu-idle",
	[TOTAL_WALL] = "wall",
	[TOTAL_LAUNCHES] = "launches",
	[TOTAL_COPIES] = "copies",
	[TOTAL_BYTES] = "bytes",
	[TOTAL_WAITS] = "waits",
	[TOTAL_LATENCY] = "launch-latency",
	[TOTAL_PEAK_MEMORY] = "peak-memory",
};

static const char *const source_names[] = {[WINDOWS_SLICES] = "none",
					   [WINDOWS_RANGE] = "nvtx",
					   [WINDOWS_PERIOD] = "period",
					   [WINDOWS_MISSING] = "missing"};

static void put_processes(struct json *json, const struct profile *p)
{
	json_begin_array(json, "processes");
	for (size_t i = 0; i < p->process_count; i++) {
		const struct profile_process *process = &p->processes[i];

		json_begin_object(json, NULL);
		json_string(json, "name", process->name);
		json_string(json, "command", process->command);
		json_string(json, "host", process->host);
		json_string(json, "driver", process->driver);
		json_string(json, "cupti", process->cupti);
		json_u64(json, "start_realtime_ns", process->start_realtime_ns);
		json_string(json, "iterations", source_names[process->source]);
		json_string(json, "iteration_name", process->iteration);
		json_u64(json, "found_count", process->found_count);
		json_u64(json, "warmup_count", process->warmup_count);
		json_u64(json, "used_count", process->used_count);
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_array(json, "devices");
	for (size_t d = 0; d < p->device_count; d++) {
		json_begin_object(json, NULL);
		json_u64(json, "device", p->devices[d].number);
		json_string(json, "name", p->devices[d].name);
		json_string(json, "uuid", p->devices[d].uuid);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_trust(struct json *json, const struct run *run)
{
	struct trust trust = {0};

	trust_judge(&trust, run);
	json_begin_object(json, "trust");
	json_string(json, "word", trust_level_name(trust.level));
	json_u64(json, "gpu_time_ns", run->sums->events.work.gpu_ns);
	json_u64(json, "attributed_gpu_time_ns", run->sums->events.work.attributed_gpu_ns);
	json_u64(json, "paused_ns", run->sums->recording.paused_ns);
	json_begin_array(json, "warnings");
	/* The warnings follow the reasons, so none has to refer to them. */
	for (size_t r = 0; r < trust.reason_count; r++)
		if (trust.reasons[r] != trust.anomaly_reason)
			json_string(json, NULL, trust.reasons[r]);
	for (size_t w = 0; w < run->report->warning_count; w++)
		json_string(json, NULL, run->report->warnings[w]);
	json_end_array(json);
	json_end_object(json);
	trust_free(&trust);
}

/*
 * Writes the names, and the nodes as pairs of parent and name. Node 0 is the root and has neither.
 */
static void put_tree(struct json *json, const struct paths *tree)
{
	json_begin_array(json, "names");
	for (uint32_t n = 0; n < tree->names.count; n++) {
		size_t length;
		const char *text = names_text(&tree->names, n, &length);

		json_text(json, NULL, text, length);
	}
	json_end_array(json);
	json_begin_array(json, "nodes");
	for (uint32_t n = 1; n < tree->node_count; n++) {
		json_u64(json, NULL, tree->nodes[n].parent);
		json_u64(json, NULL, tree->nodes[n].name);
	}
	json_end_array(json);
}

static void put_error(struct json *json, double error, double mean)
{
	json_rounded(json, NULL, mean != 0.0 ? error / fabs(mean) : error, ERROR_DIGITS);
}

static void put_row(struct json *json, const struct subject *s, uint32_t batch_count,
		    const double *factors)
{
	struct profile_stats stats = profile_stats(s, batch_count, factors);

	json_begin_array(json, NULL);
	if (s->level == PROFILE_TOTAL)
		json_string(json, NULL, total_names[s->id]);
	else
		json_u64(json, NULL, s->id);
	json_rounded(json, NULL, s->whole_value, 17);
	json_rounded(json, NULL, s->whole_count, 17);
	json_rounded(json, NULL, batch_count ? stats.value.mean : NAN, MEAN_DIGITS);
	json_rounded(json, NULL, batch_count ? stats.count.mean : NAN, MEAN_DIGITS);
	put_error(json, stats.value.error, stats.value.mean);
	put_error(json, stats.value.residual, stats.value.mean);
	put_error(json, stats.count.error, stats.count.mean);
	put_error(json, stats.each.error, stats.each.mean);
	put_error(json, stats.each.residual, stats.each.mean);
	json_rounded(json, NULL,
		     stats.value.mean > 0.0 ? stats.value.typical / stats.value.mean : 1.0,
		     MEAN_DIGITS);
	json_end_array(json);
}

static void put_columns(struct json *json)
{
	static const char *const columns[] = {
		"id",	      "whole_value",   "whole_count",	 "value",
		"count",      "value_error",   "value_residual", "count_error",
		"each_error", "each_residual", "typical"};

	json_begin_array(json, "columns");
	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
		json_string(json, NULL, columns[c]);
	json_end_array(json);
}

static void put_levels(struct json *json, const struct profile *p, const double *factors)
{
	uint32_t batch_count = p->is_mixed ? 0 : p->batch_count;

	put_columns(json);
	for (int level = 0; level < PROFILE_LEVELS; level++) {
		json_begin_array(json, level_names[level]);
		for (size_t i = 0; i < p->subjects.count; i++)
			if ((int)p->subjects.list[i].level == level)
				put_row(json, &p->subjects.list[i], batch_count, factors);
		json_end_array(json);
	}
}

void profile_put(struct json *json, struct profile *p, const struct run *run)
{
	char part[WANTED_BYTES];
	double factors[PROFILE_BATCHES];

	profile_factors(&p->subjects, p->batch_count, factors);
	json_begin_object(json, NULL);
	json_string(json, "format", "xtrace-profile");
	json_u64(json, "version", PROFILE_VERSION);
	json_string(json, "generator", "xtrace " XTRACE_VERSION);
	json_bool(json, "simulated_gpu", run->sums->recording.has_simulated_gpu);
	if (run->selection) {
		wanted_describe(&run->settings->wanted, part, sizeof(part));
		json_string(json, "selection", part);
	}
	json_u64(json, "batch_count", p->is_mixed ? 0 : p->batch_count);
	put_processes(json, p);
	put_trust(json, run);
	put_levels(json, p, factors);
	put_tree(json, &p->tree);
	json_end_object(json);
}
