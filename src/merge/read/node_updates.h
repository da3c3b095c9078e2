/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that were changed in an executable graph. The log names such a node by the graph that the
 * executable one was made from; the work that runs bears the id of its clone. Or it names another
 * graph that the whole was made like.
 */
#ifndef XT_MERGE_NODE_UPDATES_H
#define XT_MERGE_NODE_UPDATES_H

#include "merge/read/node_table.h"

/*
 * Gives each row with a graph_exec the id of the clone that it changed, so that the clone has a new
 * maker from that time on; rows of clones that are not known become void (id 0). Adds rows for the
 * nodes of executable graphs that were made like others. To be called when
 * the nodes of child graphs have been added. 0 or -ENOMEM.
 */
int node_updates_resolve(struct nodes *nodes);

#endif
