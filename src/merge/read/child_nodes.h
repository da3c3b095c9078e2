/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the nodes of child graphs and of the bodies of conditional nodes. CUPTI never reports the
 * ids under which they run.
 *
 * When a graph with child graphs is instantiated, the driver reports a clone of each node. The
 * clones of a child's nodes come before the clone of the node that contains the child. They have
 * ids of a graph of their own, but their work has ids of the executable graph.
 *
 * The ids of an executable graph begin with its own nodes. The nodes of each child follow in order,
 * and after each child its own children. The body of a conditional node is such a child. The
 * numbering of a node with several bodies is unknown, so it and all later nodes get no rows.
 * Observed on an H200 with driver 580 and CUPTI 13.0; the conformance suite checks it.
 */
#ifndef XT_MERGE_CHILD_NODES_H
#define XT_MERGE_CHILD_NODES_H

#include "merge/read/node_table.h"

/*
 * Adds a row for each of these ids, with the child's clone as its origin. Call it before the rows
 * are sorted.
 */
void child_nodes_add(struct nodes *nodes);

#endif
