/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/run.h"

#include "merge/read/inputs.h"
#include "merge/sums/exporter.h"
#include "merge/sums/sums.h"

uint32_t run_listed_weights(const struct run *run)
{
	uint32_t weights = (1u << WEIGHTS) - 1;

	if (run->inputs->all_count == run->inputs->count)
		weights &= ~CPU_WEIGHTS;
	if (!run->sums->events.work.untimed_count)
		weights &= ~GRAPH_WEIGHTS;
	return run->needs.ranks ? weights : weights & ~RANK_WEIGHTS;
}

const void *run_analysis(const struct run *run, const struct exporter *analysis)
{
	for (size_t a = 0; a < run->analyses.count; a++)
		if (run->analyses.list[a].exporter == analysis)
			return run->analyses.list[a].state;
	return NULL;
}
