/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/host_calls.h"

#include <stdlib.h>
#include <string.h>

/* Names without MPI_ or PMPI_ of functions that no rank leaves before all have come. */
static const char *const needs_all[] = {
	"Allreduce", "Allgather", "Allgatherv", "Reduce_scatter", "Reduce_scatter_block",
	"Alltoall",  "Alltoallv", "Alltoallw",	"Barrier",
};

struct host_call host_call_of(const char *name, size_t length)
{
	size_t prefix = length > 5 && name[0] == 'P' ? sizeof("PMPI_") - 1 : sizeof("MPI_") - 1;
	struct host_call call = {0};

	if (length <= prefix || memcmp(name + prefix - 4, "MPI_", 4))
		return call;
	call.is_mpi = true;
	for (size_t f = 0; f < sizeof(needs_all) / sizeof(needs_all[0]); f++)
		call.needs_all |= length - prefix == strlen(needs_all[f]) &&
				  !memcmp(name + prefix, needs_all[f], length - prefix);
	return call;
}

void host_calls_free(struct host_calls *calls)
{
	free(calls->list);
	*calls = (struct host_calls){0};
}
