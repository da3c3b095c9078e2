/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/cpu_place.h"

#include <stdlib.h>

#include "base/tables.h"
#include "log/base/hash_table.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/reading.h"

static void add_part(struct run *run, const struct idle_path_part *part,
		     struct finding_place *place)
{
	const struct cpu_log *log = &run->cpu->logs->list[part->log];
	/* Resolving lines only reads a log. */
	struct reading reading = {
		.run = run,
		.model = log->model,
		.frames = log->frames,
		.process = {.log = log->input,
			    .model = log->model,
			    .frames = &log->frames,
			    .addresses = &log->addresses,
			    .paths = &run->paths,
			    .names = (struct demangle_cache *)&log->names},
	};

	if (!part->stack || !frames_has_stack(&log->frames, part->stack))
		return;
	finding_add_stack(&reading, part->stack, place);
}

void cpu_place(struct run *run, const struct idle_path *path, struct finding_place *place)
{
	struct finding_place own = {.function = NAME_EMPTY};

	add_part(run, &path->own, &own);
	*place = own;
	if (!path->has_other)
		return;
	/* The line to look at is that of the other thread, if it has one. */
	place->line = 0;
	place->is_own = false;
	add_part(run, &path->other, place);
	if (!place->line) {
		place->function = own.function;
		place->file = own.file;
		place->line = own.line;
		place->says_line = own.says_line;
		place->is_own = own.is_own;
	}
}

/* Time by path. */
struct span_sum {
	struct idle_path path;
	uint32_t function, line; /* of its place */
	uint64_t ns;
};

struct span_sums {
	struct span_sum *list;
	size_t count, capacity;
	struct xt_hash_table table; /* by function and line */
};

static void add_span(struct run *run, struct span_sums *sums, const struct idle_path *path,
		     uint64_t ns)
{
	struct finding_place place = {0};
	struct xt_hash_slot *slot;
	uint32_t hash;

	cpu_place(run, path, &place);
	hash = xt_hash_u64((uint64_t)place.function << 32 | place.line);
	free(place.frames);
	if (!place.function)
		return;
	xt_hash_require(&sums->table, sums->count + 1);
	xt_grow(&sums->list, &sums->capacity, sums->count + 1, sizeof(*sums->list));
	for (slot = xt_hash_first(&sums->table, hash); slot->item;
	     slot = xt_hash_next(&sums->table, slot)) {
		struct span_sum *sum = &sums->list[slot->item - 1];

		if (sum->function == place.function && sum->line == place.line) {
			saturating_add(&sum->ns, ns);
			return;
		}
	}
	sums->list[sums->count++] = (struct span_sum){*path, place.function, place.line, ns};
	*slot = (struct xt_hash_slot){hash, (uint32_t)sums->count};
}

static void add_samples(struct reading *reading, const struct cpu_log *log,
			const struct cpu_thread *thread, uint64_t from_ns, uint64_t until_ns,
			struct span_sums *sums)
{
	const struct cpu_samples *samples = &log->model->cpu_samples;

	for (size_t r = cpu_samples_covering(samples, thread, from_ns);
	     r < thread->end && samples->rows[r].cover.from_ns < until_ns; r++) {
		struct cpu_cover cover = samples->rows[r].cover;
		uint64_t begin_ns = cover.from_ns > from_ns ? cover.from_ns : from_ns;
		uint64_t end_ns = cover.until_ns < until_ns ? cover.until_ns : until_ns;
		struct idle_path path;

		if (begin_ns >= end_ns)
			continue;
		path = idle_paths_follow(reading->run->cpu->logs, log, &samples->rows[r],
					 begin_ns + (end_ns - begin_ns) / 2);
		add_span(reading->run, sums, &path, end_ns - begin_ns);
	}
}

void cpu_place_of_span(struct reading *reading, uint32_t tid, uint64_t from_ns, uint64_t until_ns,
		       struct finding_place *place, uint64_t *share_ns_out)
{
	const struct cpu_logs *logs = reading->run->cpu->logs;
	const struct span_sum *most = NULL;
	struct span_sums sums = {0};

	*share_ns_out = 0;
	for (size_t l = 0; l < logs->count; l++) {
		const struct cpu_log *log = &logs->list[l];
		const struct cpu_thread *thread =
			log->input->first == reading->process.log->first
				? cpu_samples_of(&log->model->cpu_samples, tid)
				: NULL;

		if (thread)
			add_samples(reading, log, thread, from_ns, until_ns, &sums);
	}
	for (size_t s = 0; s < sums.count; s++)
		if (!most || sums.list[s].ns > most->ns)
			most = &sums.list[s];
	if (most) {
		*share_ns_out = most->ns;
		cpu_place(reading->run, &most->path, place);
	}
	free(sums.list);
	xt_hash_free(&sums.table);
}
