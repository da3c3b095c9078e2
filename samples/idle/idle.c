/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared code of the idle programs; see idle.h.
 */
#include "idle.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void idle_launch(const struct pattern *p)
{
	pattern_spin(p, p->stream, FULL_BLOCKS, KERNEL_NS);
}

int idle_open_file(void)
{
	char path[] = "idle.XXXXXX";
	int file = mkstemp(path);

	if (file < 0) {
		perror("cannot create a file in the current folder");
		exit(1);
	}
	unlink(path);
	return file;
}
