/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_TREE_H
#define XT_MERGE_SUMMARY_TREE_H

struct run;
struct sink;

/* Writes the call tree of the weight that the user chose. Nothing if it has none. */
void put_call_tree(struct sink *sink, const struct run *run);

#endif
