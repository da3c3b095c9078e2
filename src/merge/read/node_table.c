/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/node_table.h"

#include "base/memory.h"

void nodes_add(struct nodes *nodes, const struct node *node)
{
	if (nodes->count >= UINT32_MAX - 1)
		xt_out_of_memory(0);
	xt_grow(&nodes->rows, &nodes->capacity, nodes->count + 1, sizeof(*node));
	nodes->rows[nodes->count] = *node;
	nodes->rows[nodes->count].creation = CREATION_PENDING;
	nodes->rows[nodes->count].order = (uint32_t)nodes->count;
	nodes->count++;
}

void nodes_add_name(struct nodes *nodes, const struct node_name *name)
{
	xt_grow(&nodes->names, &nodes->name_capacity, nodes->name_count + 1, sizeof(*name));
	nodes->names[nodes->name_count++] = *name;
}
