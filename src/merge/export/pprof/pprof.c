/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pprof's profile format, compressed: call paths with all weights.
 *
 * Repeated fields of a protobuf message may be scattered, so the profile is written in pieces as
 * data arrives. Only ids of written entries are kept in memory.
 */
#include "merge/export/pprof/pprof_state.h"

#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"

#include "merge/export/pprof/pprof_locations.h"
#include "merge/export/pprof/pprof_messages.h"
#include "merge/export/pprof/pprof_samples.h"

static int begin(struct sink *sink)
{
	struct pprof *pprof = xt_calloc(1, sizeof(*pprof));

	sink->state = pprof;
	pprof->gzip = gzip_new(&sink->out);
	names_init(&pprof->strings);
	names_init(&pprof->functions);
	names_init(&pprof->locations);
	return 0;
}

static void begin_process(struct sink *sink, const struct process *process)
{
	struct pprof *pprof = sink->state;
	uint64_t start_ns = process->log->header.start_realtime_ns;

	if (!pprof->time_ns || start_ns < pprof->time_ns)
		pprof->time_ns = start_ns;
	pprof_begin_process(pprof, process);
}

static const char *unit_of(enum weight weight)
{
	const char *unit = weight_unit(weight);

	return !strcmp(unit, "ns") ? "nanoseconds" : unit;
}

/* Declares the types of the sample values. */
static void put_types(struct pprof *pprof, const struct run *run)
{
	Perftools__Profiles__ValueType types[WEIGHTS], *list[WEIGHTS];
	Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t comments[3];
	char part[WANTED_BYTES + 32] = "part of the run: ";
	size_t mark = strlen(part);
	const char *comment = "xtrace " XTRACE_VERSION, *simulated = "simulated GPU";

	for (int w = 0; w < WEIGHTS; w++) {
		/* Samples are written before it is known whether these have a sum. */
		if (!((run_listed_weights(run) & ~GRAPH_WEIGHTS) >> w & 1))
			continue;
		const char *name = weight_specs[w].name, *unit = unit_of((enum weight)w);

		perftools__profiles__value_type__init(&types[w]);
		types[w].type = pprof_string(pprof, name, strlen(name));
		types[w].unit = pprof_string(pprof, unit, strlen(unit));
		list[piece.n_sample_type++] = &types[w];
	}
	comments[piece.n_comment++] = pprof_string(pprof, comment, strlen(comment));
	if (run->sums->recording.has_simulated_gpu)
		comments[piece.n_comment++] = pprof_string(pprof, simulated, strlen(simulated));
	if (run->selection) {
		wanted_describe(&run->settings->wanted, part + mark, sizeof(part) - mark);
		comments[piece.n_comment++] = pprof_string(pprof, part, strlen(part));
	}
	piece.sample_type = list;
	piece.default_sample_type = types[WEIGHT_GPU_TIME].type;
	piece.time_nanos = (int64_t)(pprof->time_ns & INT64_MAX);
	piece.comment = comments;
	pprof_put(pprof, &piece);
}

static void put_strings(struct pprof *pprof)
{
	for (uint32_t s = 0; s < pprof->strings.count; s++) {
		Perftools__Profiles__Profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
		char *text = (char *)names_text(&pprof->strings, s, NULL);

		piece.string_table = &text;
		piece.n_string_table = 1;
		pprof_put(pprof, &piece);
	}
}

static void end(struct sink *sink, const struct run *run)
{
	struct pprof *pprof = sink->state;

	pprof_put_rank_weights(pprof, run);
	put_types(pprof, run);
	put_strings(pprof);
	gzip_finish(pprof->gzip);
}

static void free_state(struct sink *sink)
{
	struct pprof *pprof = sink->state;

	if (!pprof)
		return;
	gzip_free(pprof->gzip);
	names_free(&pprof->strings);
	names_free(&pprof->functions);
	names_free(&pprof->locations);
	free(pprof->packed);
	free(pprof->mappings);
	free(pprof->address_locations);
	free(pprof->path);
	free(pprof);
	sink->state = NULL;
}

const struct exporter exporter_pprof = {
	.name = "pprof",
	.what = "Write call paths with all weights, binaries and labels, for pprof, Pyroscope and "
		"Parca (gzip)",
	.uses = USES_GRAPH_STACKS | USES_ALL_WEIGHTS | USES_ORIGINS | USES_CPU_LOGS,
	.begin = begin,
	.process = begin_process,
	.total = pprof_put_sample,
	.end = end,
	.free = free_state,
};
