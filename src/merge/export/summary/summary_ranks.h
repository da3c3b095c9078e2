/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of processes, if there are several, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_RANKS_H
#define XT_MERGE_SUMMARY_RANKS_H

#include "merge/base/json.h"

struct input;
struct rank_row;
struct run;
struct sink;

/*
 * Returns the process with the most own time. NULL: all are equal, or collectives were compared,
 * which know better who makes others wait.
 */
const struct rank_row *summary_slowest(const struct run *run);

/* Returns 0 or -ENOMEM. */
int summary_put_ranks(struct sink *sink, const struct run *run);

void put_ranks_json(struct json *json, const struct run *run);

/* Writes the members "rank", "local_rank", "world_size" and those of the job that the log has. */
void put_rank_numbers_json(struct json *json, const struct input *log);

#endif
