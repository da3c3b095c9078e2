/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the kernels that graph launches should have with those recorded.
 */
#include "merge/sums/missing.h"

#include <stdlib.h>

#include "base/tables.h"
#include "merge/sums/losses.h"

#define KERNELS_UNKNOWN UINT64_MAX

struct graph_launches {
	uint32_t graph_exec;
	uint64_t kernels_each; /* number of kernel nodes; KERNELS_UNKNOWN if it may vary */
	uint64_t launch_count;
	uint64_t kernel_count; /* kernels recorded */
	bool has_no_kernel, is_seen;
};

/* True if nodes may have no rows: they were lost, or created while the log was not written. */
static bool may_lack_nodes(const struct model *model)
{
	return model->cupti_handoffs.count || model_account(model, "nodes.lost") ||
	       model->damage.chunks_damaged || model->damage.chunks_missing;
}

static struct graph_launches begin(const struct model *model, uint32_t graph_exec)
{
	struct graph_nodes nodes = nodes_of_graph(&model->nodes, graph_exec);
	bool is_known = model->nodes.count && !may_lack_nodes(model);

	return (struct graph_launches){
		.graph_exec = graph_exec,
		.kernels_each =
			is_known && !nodes.is_conditional ? nodes.kernel_count : KERNELS_UNKNOWN,
		.has_no_kernel = is_known && !nodes.kernel_count,
		.is_seen = nodes.has_nodes || may_lack_nodes(model),
	};
}

static struct graph_launches *find(struct missing *missing, const struct model *model,
				   uint32_t graph_exec)
{
	bool is_new;
	uint32_t place;

	if (missing->last && missing->graphs[missing->last].graph_exec == graph_exec)
		return &missing->graphs[missing->last];
	place = xt_intern(&missing->execs, &graph_exec, sizeof(graph_exec), &is_new);
	xt_grow(&missing->graphs, &missing->graph_capacity, place + 1, sizeof(*missing->graphs));
	missing->graph_count = place + 1 > missing->graph_count ? place + 1 : missing->graph_count;
	if (is_new)
		missing->graphs[place] = begin(model, graph_exec);
	missing->last = place;
	return &missing->graphs[place];
}

void missing_note_graph_launch(struct missing *missing, const struct model *model,
			       uint32_t graph_exec, bool *has_no_kernel_out)
{
	struct graph_launches *graph;

	*has_no_kernel_out = false;
	missing->has_graph_launch = true;
	if (!graph_exec) {
		missing->unseen_launch_count += !may_lack_nodes(model);
		return;
	}
	graph = find(missing, model, graph_exec);
	graph->launch_count++;
	missing->unseen_launch_count += !graph->is_seen;
	*has_no_kernel_out = graph->has_no_kernel;
}

void missing_note_graph_kernel(struct missing *missing, const struct model *model,
			       uint64_t graph_node_id)
{
	struct graph_launches *graph = find(missing, model, (uint32_t)(graph_node_id >> 32));

	graph->kernel_count++;
}

/*
 * Only a killed process leaves replays half recorded. At a normal exit CUPTI delivers all records,
 * so a replay with fewer kernels than nodes has disabled nodes.
 */
static uint64_t missing_of_graphs(const struct missing *missing)
{
	uint64_t sum = 0;

	for (size_t g = 1; g < missing->graph_count; g++) {
		const struct graph_launches *graph = &missing->graphs[g];
		uint64_t expected;

		if (graph->kernels_each == KERNELS_UNKNOWN ||
		    __builtin_mul_overflow(graph->kernels_each, graph->launch_count, &expected))
			continue;
		if (expected > graph->kernel_count)
			sum += expected - graph->kernel_count;
	}
	return sum;
}

uint64_t missing_count(const struct missing *missing, const struct model *model,
		       const struct xt_damage *damage, const struct correlate_counts *counts,
		       uint64_t *unclear_count)
{
	uint64_t of_graphs = counts->graph_launches_unmatched, in_parts;

	if (missing->has_graph_launch && !model->nodes.count) {
		uint64_t unclear = counts->launches_unmatched + of_graphs;
		uint64_t explained = losses_explained_kernels(model);

		*unclear_count += unclear > explained ? unclear - explained : 0;
		return 0;
	}
	in_parts = missing_of_graphs(missing);
	if ((!damage->closed || model_has_account(model, "recovered.calls")) &&
	    in_parts > of_graphs)
		of_graphs = in_parts;
	return counts->launches_unmatched + of_graphs;
}

void missing_free(struct missing *missing)
{
	interner_free(&missing->execs);
	free(missing->graphs);
	*missing = (struct missing){0};
}
