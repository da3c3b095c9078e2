/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/node_table.h"

#include "log/base/grow.h"

int nodes_add(struct nodes *nodes, const struct node *node)
{
	if (nodes->count >= UINT32_MAX - 1 ||
	    grow(&nodes->rows, &nodes->capacity, nodes->count + 1, sizeof(*node)) < 0)
		return -ENOMEM;
	nodes->rows[nodes->count] = *node;
	nodes->rows[nodes->count].creation = CREATION_PENDING;
	nodes->rows[nodes->count].order = (uint32_t)nodes->count;
	nodes->count++;
	return 0;
}

int nodes_add_name(struct nodes *nodes, const struct node_name *name)
{
	if (grow(&nodes->names, &nodes->name_capacity, nodes->name_count + 1, sizeof(*name)) < 0)
		return -ENOMEM;
	nodes->names[nodes->name_count++] = *name;
	return 0;
}
