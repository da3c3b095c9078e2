/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes speedscope's file format: one sampled profile per weight, with a sample per call path.
 *
 * Frames are written once by name. Samples refer to them by index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "merge/export/formats.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/run.h"
#include "merge/sums/path_tables.h"

#define LINES_DEPTH 3

static const char *unit_of(enum weight weight)
{
	if (weight_specs[weight].is_time)
		return "nanoseconds";
	return weight == WEIGHT_COUNT ? "none" : "bytes";
}

/* Writes the names of all nodes, and stores the index of each name in places. */
static void put_frames(struct json *json, const struct paths *paths, uint32_t *places)
{
	uint32_t count = 0;

	json_begin_object(json, "shared");
	json_begin_array(json, "frames");
	json->lines_depth = json->depth;
	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint32_t name = paths->nodes[n].name;

		if (places[name])
			continue;
		places[name] = ++count;
		json_begin_object(json, NULL);
		json_name(json, "name", &paths->names, name);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	json->lines_depth = LINES_DEPTH;
}

static void put_sample(struct json *json, const struct paths *paths, uint32_t leaf,
		       const uint32_t *places, uint32_t **chain, size_t *capacity)
{
	int depth = paths_chain(paths, leaf, chain, capacity);

	json_begin_array(json, NULL);
	for (int d = 0; d < depth; d++)
		json_u64(json, NULL, places[paths->nodes[(*chain)[d]].name] - 1);
	json_end_array(json);
}

static void put_profile(struct json *json, const struct paths *paths, enum weight weight,
			const uint32_t *places)
{
	uint32_t *chain = NULL, leaf_count, *leaves = paths_leaves(paths, weight, &leaf_count);
	size_t capacity = 0;

	json_begin_object(json, NULL);
	json_string(json, "type", "sampled");
	json_string(json, "name", weight_specs[weight].name);
	json_string(json, "unit", unit_of(weight));
	json_u64(json, "startValue", 0);
	json_u64(json, "endValue", table_sum(paths, weight));
	json_begin_array(json, "samples");
	json->lines_depth = json->depth;
	for (uint32_t i = 0; i < leaf_count; i++)
		put_sample(json, paths, leaves[i], places, &chain, &capacity);
	json_end_array(json);
	json->lines_depth = LINES_DEPTH;
	json_begin_array(json, "weights");
	for (uint32_t i = 0; i < leaf_count; i++)
		json_u64(json, NULL, paths->nodes[leaves[i]].weights[weight]);
	json_end_array(json);
	json_end_object(json);
	free(chain);
	free(leaves);
}

static void speedscope_end(struct sink *sink, const struct run *run)
{
	struct json json = {.out = &sink->out, .lines_depth = LINES_DEPTH};
	char name[WANTED_BYTES + 64];
	uint32_t *places = xt_calloc(run->paths.names.count, sizeof(*places));

	json_begin_object(&json, NULL);
	json_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(&json, "exporter", "xtrace " XTRACE_VERSION);
	snprintf(name, sizeof(name), "GPU time by call path%s",
		 run->sums->recording.has_simulated_gpu ? " [simulated]" : "");
	if (run->selection) {
		strcat(name, ", only ");
		wanted_describe(&run->settings->wanted, name + strlen(name),
				sizeof(name) - strlen(name));
	}
	json_string(&json, "name", name);
	json_u64(&json, "activeProfileIndex", 0);
	put_frames(&json, &run->paths, places);
	json_begin_array(&json, "profiles");
	for (int w = 0; w < WEIGHTS; w++)
		if (w == WEIGHT_GPU_TIME || table_sum(&run->paths, (enum weight)w))
			put_profile(&json, &run->paths, (enum weight)w, places);
	json_end_array(&json);
	json_end_object(&json);
	free(places);
}

const struct exporter exporter_speedscope = {
	.name = "speedscope",
	.what = "Write call paths with all weights, for speedscope (JSON)",
	.uses = USES_PATHS | USES_ALL_WEIGHTS,
	.end = speedscope_end,
};
