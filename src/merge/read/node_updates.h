/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to nodes of executable graphs.
 *
 * The log names a changed node by the graph that the executable graph was made from, but its work
 * has the id of its clone. An update of the whole graph names the other graph.
 */
#ifndef XT_MERGE_NODE_UPDATES_H
#define XT_MERGE_NODE_UPDATES_H

#include "merge/read/node_table.h"

/*
 * Gives each row with a graph_exec the id of the changed clone, so that the clone has a new creator
 * from that time on. Rows of unknown clones get id 0, which voids them. Adds rows for the nodes of
 * executable graphs that were updated as a whole. Call it after child_nodes_add().
 */
void node_updates_resolve(struct nodes *nodes);

#endif
