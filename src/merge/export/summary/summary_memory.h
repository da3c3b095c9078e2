/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SUMMARY_MEMORY_H
#define XT_MERGE_SUMMARY_MEMORY_H

struct run;
struct sink;

/* The memory that each call path holds. Returns 0 or -ENOMEM. */
int summary_put_held_memory(struct sink *sink, const struct run *run);

#endif
