/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of child graphs and of the bodies of conditional nodes. They run under ids that CUPTI never
 * reports.
 *
 * When a graph with child graphs is instantiated, the driver reports a clone of each of its nodes.
 * Before the clone of a child graph node, it reports clones of the child's nodes, with ids of a
 * graph of their own. The work, however, has ids of the executable graph: its own nodes have the
 * first ones. Then follow, for each child graph node in order, the nodes of the child, each child
 * followed by its children. The body of a conditional node is such a child. The numbering of a node
 * with several bodies is unknown, so such a node and those after it get no rows. Observed on an
 * H200 with driver 580 and CUPTI 13.0; the conformance suite checks it.
 */
#ifndef XT_MERGE_CHILD_NODES_H
#define XT_MERGE_CHILD_NODES_H

#include "merge/read/node_table.h"

/*
 * Adds a row for each such id, with the child's clone as its origin. Call it before the rows are
 * sorted. Returns 0 or -ENOMEM.
 */
int child_nodes_add(struct nodes *nodes);

#endif
