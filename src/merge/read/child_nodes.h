/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of child graphs and of the bodies of conditional nodes, which run under ids that CUPTI
 * never announces.
 *
 * When a graph with child graphs is instantiated, the driver announces a clone of each of its
 * nodes, and before the clone of a child graph node the clones of the child's nodes, under ids of
 * a graph of their own. What then runs bears ids of the executable graph: its own nodes have the
 * first, then, for each child graph node in order, the child's nodes have the next, each child
 * followed by the children in it. The body of a conditional node is such a child. How the bodies of
 * a node that has several are numbered is not known: there, and from there on, nothing is said. (Seen on an H200 with driver 580 and CUPTI 13.0; a check of the
 * conformance suite holds it.)
 */
#ifndef XT_MERGE_CHILD_NODES_H
#define XT_MERGE_CHILD_NODES_H

#include "merge/read/node_table.h"

/* Adds a row for each such id, with the child's clone as its origin. The rows must still be in
 * the order of the log. 0 or -ENOMEM. */
int child_nodes_add(struct nodes *nodes);

#endif
