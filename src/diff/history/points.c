/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means over the runs of a set, and the properties of its first run.
 */
#include "diff/history/points.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/shorten_text.h"
#include "diff/compare/row_text.h"

#define NAME_COLUMNS 110
#define TEXT_BYTES   512

void point_id(char out[ID_BYTES], const char *content, size_t content_bytes)
{
	snprintf(out, ID_BYTES, "%016" PRIx64, hash_text(content, content_bytes));
}

void point_id_of_runs(char out[ID_BYTES], struct run_profile *const *runs, size_t count)
{
	uint64_t sum = 0;

	/* The order of the files of a directory is not part of the content. */
	for (size_t r = 0; r < count; r++)
		sum += hash_text(runs[r]->document, runs[r]->document_bytes);
	snprintf(out, ID_BYTES, "%016" PRIx64, sum);
}

static const char *put_gpu(char out[TEXT_BYTES], const struct run_profile *run)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t d = 0; d < run->device_count && used < TEXT_BYTES; d++)
		used += (size_t)snprintf(out + used, TEXT_BYTES - used, "%s%s", d ? " + " : "",
					 run->devices[d].name);
	return out;
}

static const char *put_iterations(char out[TEXT_BYTES], const struct run_profile *run)
{
	snprintf(out, TEXT_BYTES, "%s%s%s", run->iterations, run->iteration_name[0] ? " " : "",
		 run->iteration_name);
	return out;
}

static const char *put_iteration_count(char out[TEXT_BYTES], const struct run_profile *run)
{
	snprintf(out, TEXT_BYTES, "%" PRIu64, run->found_count);
	return out;
}

static const char *put_clock(char out[TEXT_BYTES], const struct run_profile *run)
{
	if (isnan(run->clock_mhz))
		return "";
	snprintf(out, TEXT_BYTES, "%.0f MHz", run->clock_mhz);
	return out;
}

static const char *put_program(char out[TEXT_BYTES], const struct run_profile *run)
{
	return run->title[0] ? run->title : run->program;
	(void)out;
}

#define PUT_MEMBER(member)                                                                         \
	static const char *put_##member(char out[TEXT_BYTES], const struct run_profile *run)       \
	{                                                                                          \
		(void)out;                                                                         \
		return run->member;                                                                \
	}
PUT_MEMBER(selection)
PUT_MEMBER(host)
PUT_MEMBER(driver)
PUT_MEMBER(cupti)
PUT_MEMBER(command)

static const char *(*const property_texts[PROPERTIES])(char *out, const struct run_profile *run) = {
	[PROPERTY_PROGRAM] = put_program,
	[PROPERTY_FILTERS] = put_selection,
	[PROPERTY_GPU] = put_gpu,
	[PROPERTY_HOST] = put_host,
	[PROPERTY_DRIVER] = put_driver,
	[PROPERTY_CLOCK] = put_clock,
	[PROPERTY_CUPTI] = put_cupti,
	[PROPERTY_COMMAND] = put_command,
	[PROPERTY_ITERATIONS] = put_iterations,
	[PROPERTY_ITERATION_COUNT] = put_iteration_count,
};

static void set_properties(struct history *h, struct history_point *point,
			   const struct run_profile *run)
{
	char room[TEXT_BYTES];

	for (int p = 0; p < PROPERTIES; p++)
		point->properties[p] = history_text(h, property_texts[p](room, run));
}

static int check_run(const struct run_profile *run, struct problems *problems)
{
	const struct profile_entry *gpu = run_profile_find(run, LEVEL_TOTAL, "gpu-time");

	if (run->trust != TRUST_COMPLETE)
		problems_add(problems, "cannot use %s: events are missing in it", run->origin);
	else if (!gpu || !(gpu->whole_count > 0.0))
		problems_add(problems, "cannot use %s: no GPU work was recorded", run->origin);
	else
		return 0;
	return -EINVAL;
}

/* Adds the share of one run to the sums of its rows. */
static void add_entry(struct history *h, const struct profile_entry *entry, double share,
		      struct history_value **values, size_t *room, size_t *count)
{
	const struct comparison_row shown = {
		.level = entry->level, .key = entry->key, .shown = {[SIDE_NEW] = entry}};
	char *name = row_name(&shown, NAME_COLUMNS);
	size_t row = history_row_at(h, entry->level, entry->key, name);
	struct history_value *value;

	free(name);
	xt_grow(values, room, row + 1, sizeof(**values));
	for (; *count <= row; ++*count)
		(*values)[*count] = (struct history_value){.value = NAN};
	value = &(*values)[row];
	if (isnan(value->value))
		value->value = 0.0;
	value->value += share * entry->quantities[METRIC_VALUE].typical;
	value->count += share * entry->quantities[METRIC_COUNT].mean;
}

/* Rounds as the index does, so that a run means the same whether it is new or known. */
static double round_value(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", value);
	return strtod(text, NULL);
}

int point_add(struct history *h, const char *id, struct run_profile *const *runs, size_t count,
	      struct problems *problems)
{
	struct history_value *values = NULL;
	struct history_point *point;
	uint64_t time_ns = UINT64_MAX;
	size_t room = 0, value_count = 0;
	int error = 0;

	for (size_t r = 0; !error && r < count; r++) {
		error = check_run(runs[r], problems);
		if (runs[r]->start_realtime_ns < time_ns)
			time_ns = runs[r]->start_realtime_ns;
		for (size_t e = 0; !error && e < runs[r]->entry_count; e++)
			add_entry(h, &runs[r]->entries[e], 1.0 / (double)count, &values, &room,
				  &value_count);
	}
	if (!error) {
		point = history_add_point(h, id);
		point->time_ns = time_ns;
		point->run_count = (uint32_t)count;
		point->values = arena_alloc(h->memory, value_count * sizeof(*values));
		point->value_count = value_count;
		for (size_t v = 0; v < value_count; v++)
			point->values[v] = (struct history_value){round_value(values[v].value),
								  round_value(values[v].count)};
		set_properties(h, point, runs[0]);
		h->read_count++;
	}
	free(values);
	return error;
}
