/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/whole_graphs.h"

#include <stdlib.h>

#include "base/tables.h"
#include "merge/sums/owner.h"

struct key {
	struct owner owner;
	uint32_t graph_exec;
};

void whole_graphs_add(struct whole_graphs *graphs, const struct work *work,
		      const struct owner *owner, uint64_t launched_ns)
{
	const struct key key = {*owner, (uint32_t)(work->graph_node >> 32)};
	bool is_new;
	uint32_t id = xt_intern(&graphs->keys, &key, sizeof(key), &is_new);

	xt_grow(&graphs->list, &graphs->capacity, id, sizeof(*graphs->list));
	if (is_new)
		graphs->list[id - 1] = (struct whole_launches){.first_ns = launched_ns};
	graphs->list[id - 1].count++;
}

static void add_kernel(struct reading *reading, const struct owner *of_graph, uint64_t node_id,
		       const struct whole_launches *launches)
{
	struct owner owner = *of_graph;
	uint32_t place;
	bool is_unmade;

	owner.leaf = LEAF_NODE;
	owner.what = nodes_name(&reading->model->nodes, node_id, launches->first_ns);
	owner_add_node(reading, node_id, launches->first_ns, &owner, &is_unmade);
	place = aggregate_search(&reading->aggregate, owner);
	reading->aggregate.entries[place].weights[WEIGHT_UNTIMED] += launches->count;
	reading->sums.counts.work.untimed_count += launches->count;
}

void whole_graphs_finish(struct reading *reading)
{
	struct whole_graphs *graphs = &reading->join.whole_graphs;
	uint32_t left = WHOLE_GRAPHS_KERNELS_MAX;

	for (uint32_t id = 1; id <= graphs->keys.count; id++) {
		const struct whole_launches *launches = &graphs->list[id - 1];
		size_t key_bytes;
		const struct key *key = interner_at(&graphs->keys, id, &key_bytes);
		uint64_t first_id = (uint64_t)key->graph_exec << 32, node;

		for (node = nodes_kernel_from(&reading->model->nodes, first_id, launches->first_ns);
		     node && left; node = nodes_kernel_from(&reading->model->nodes, node + 1,
							    launches->first_ns)) {
			add_kernel(reading, &key->owner, node, launches);
			left--;
		}
	}
}

void whole_graphs_free(struct whole_graphs *graphs)
{
	interner_free(&graphs->keys);
	free(graphs->list);
	*graphs = (struct whole_graphs){0};
}
