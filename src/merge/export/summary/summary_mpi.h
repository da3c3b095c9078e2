/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes how long ranks are in collectives of MPI, as text and as JSON.
 */
#ifndef XT_MERGE_SUMMARY_MPI_H
#define XT_MERGE_SUMMARY_MPI_H

#include "merge/base/json.h"

struct run;
struct sink;

/* Returns 0 or -ENOMEM. */
int summary_put_mpi(struct sink *sink, const struct run *run);

/* Writes the member "mpi" if ranks were sampled in MPI. Returns 0 or -ENOMEM. */
int put_mpi_json(struct json *json, const struct run *run);

#endif
