/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace-mpi: xtrace merge in the processes of an MPI job. The only program of xtrace that uses
 * MPI.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "merge/base/output.h"
#include "merge/merge_command.h"
#include "transport.h"

#define MEMORY_KEPT_BYTES  (256 << 20)
#define MEMORY_BLOCK_BYTES (32 << 20) /* glibc's limit */

static const struct command *const commands[] = {&command_merge};

static const char usage[] = "Usage: mpirun -n N xtrace-mpi merge [OPTION]... [DIR|FILE]...\n"
			    "Merge logs in several processes, like xtrace merge.\n\n"
			    "xtrace-mpi merge --help lists the options.\n";

static bool is_merge(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], command_merge.name);
}

int main(int argc, char **argv)
{
	struct cluster *cluster;
	int status;

	/* Each log needs as much memory as the one before. Do not give it back meanwhile. */
	mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT_BYTES);
	mallopt(M_MMAP_THRESHOLD, MEMORY_BLOCK_BYTES);
	message_set_name("xtrace-mpi merge");
	commands_register(commands, 1);
	output_ignore_terminal();
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(usage, stdout) < 0 ? STATUS_FAILED : 0;
	cluster = transport_open(argc - 1, argv + 1);
	if (!is_merge(argc, argv)) {
		if (!cluster->process)
			fputs(usage, stderr);
		status = STATUS_FAILED;
	} else {
		status = merge_in_cluster(cluster);
	}
	transport_close(cluster);
	return status;
}
