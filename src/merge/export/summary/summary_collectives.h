/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what ranks wait for in collectives of NCCL and of MPI, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_COLLECTIVES_H
#define XT_MERGE_SUMMARY_COLLECTIVES_H

#include "base/json.h"

struct run;
struct sink;

void summary_put_collectives(struct sink *sink, const struct run *run);
void summary_put_mpi(struct sink *sink, const struct run *run);

/* Write the members "collectives" if several logs share some, and "mpi" if ranks were sampled. */
void put_collectives_json(struct json *json, const struct run *run);
void put_mpi_json(struct json *json, const struct run *run);

#endif
