/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sides of a bench, and their turns.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cuda_abi/nvml_abi.h"

void bench_sides_init(struct bench *bench, size_t runs_max, char **command, char **command_new)
{
	bench->run_count = 0;
	bench->side_count = command_new ? 2 : 1;
	for (size_t s = 0; s < bench->side_count; s++) {
		struct bench_side *side = &bench->sides[s];

		*side = (struct bench_side){.command = s ? command_new : command,
					    .runs = xt_calloc(runs_max, sizeof(*side->runs))};
		if (command_new)
			side->name = s ? BENCH_NEW : BENCH_BASE;
		side->path = xt_asprintf("%s%s%s", bench->output, side->name ? "/" : "",
					 side->name ? side->name : "");
	}
}

void bench_sides_free(struct bench *bench)
{
	for (size_t s = 0; s < bench->side_count; s++) {
		free(bench->sides[s].runs);
		free(bench->sides[s].path);
		bench->sides[s] = (struct bench_side){0};
	}
	bench->side_count = 0;
}

void bench_watch_open(struct bench *bench)
{
	char *library = NULL;

	if (bench->is_simulated)
		library = xt_asprintf("%s/" XT_NVML_LIBRARY, bench->paths.simulator);
	gpu_watch_open(&bench->watch, library ? library : XT_NVML_LIBRARY, &bench->no_watch);
	free(library);
}

size_t bench_turn(const struct bench *bench, unsigned n)
{
	return bench->side_count == 1 ? 0 : (n + 1) / 2 % 2;
}

int bench_sides_run(struct bench *bench, struct bench_side *side, bool is_warmup)
{
	struct bench_run *run = &side->runs[side->run_count++];
	unsigned number = (unsigned)side->run_count - (is_warmup ? 0 : bench->warmups);
	int error;

	run->order = ++bench->run_count;
	run->is_warmup = is_warmup;
	snprintf(run->name, sizeof(run->name), "%s-%03u", is_warmup ? "warmup" : "run", number);
	error = bench_run(bench, side, run);
	if (!error)
		return bench_dir_write(side, false);
	side->run_count--;
	return error;
}
