/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the other parts of xtrace are: found beside the running program, so that a build tree, an
 * installed tree and an unpacked tarball all work as they stand.
 */
#ifndef XTRACE_INSTALL_PATHS_H
#define XTRACE_INSTALL_PATHS_H

#include <limits.h>

struct install_paths {
	char front[PATH_MAX];	  /* the running program itself */
	char merge[PATH_MAX];	  /* the program xtrace-merge; may not exist */
	char diff[PATH_MAX];	  /* the program xtrace-diff; likewise */
	char baseline[PATH_MAX];  /* the program xtrace-baseline; likewise */
	char injected[PATH_MAX];  /* libxtrace_inject.so */
	char simulator[PATH_MAX]; /* directory with the simulated libcuda.so.1 and libcupti.so */
};

/* 0 when libxtrace_inject.so was found, else -ENOENT, or what reading the own path gave. */
int install_paths_find(struct install_paths *paths);

#endif
