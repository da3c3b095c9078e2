/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries the messages of a cluster by MPI.
 */
#ifndef XTRACE_MPI_TRANSPORT_H
#define XTRACE_MPI_TRANSPORT_H

#include "merge/cluster.h"

/*
 * Joins the processes that mpirun started. Alone, without a launcher of MPI, there is one process,
 * and MPI is not used. Ends the program with a message if that fails.
 */
struct cluster *transport_open(int argc, char **argv);

/* Waits until everything is sent; process 0, until all others are done. */
void transport_close(struct cluster *cluster);

#endif
