/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace-mpi: xtrace merge in the processes of an MPI job. The only program of xtrace that uses
 * MPI.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "merge/merge_command.h"
#include "transport.h"

static const struct command *const commands[] = {&command_merge};

int main(int argc, char **argv)
{
	struct cluster *cluster;
	int status;

	message_set_name("xtrace-mpi");
	commands_register(commands, 1);
	cluster = transport_open(argc - 1, argv + 1);
	if (argc < 2 || strcmp(argv[1], command_merge.name) != 0) {
		if (!cluster->process)
			print_error("the only command is merge: mpirun -n N xtrace-mpi merge "
				    "[OPTION]... [DIR|FILE]...");
		status = STATUS_FAILED;
	} else {
		status = merge_in_cluster(cluster);
	}
	transport_close(cluster);
	return status;
}
