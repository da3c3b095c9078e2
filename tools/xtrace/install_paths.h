/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the parts of xtrace are. They are found relative to the running program, so that a build
 * tree, an installed tree and an unpacked tarball all work.
 */
#ifndef XTRACE_INSTALL_PATHS_H
#define XTRACE_INSTALL_PATHS_H

#include <limits.h>

struct install_paths {
	char program[PATH_MAX];	  /* the running program */
	char top[PATH_MAX];	  /* contains bin/, lib/ and share/ */
	char injected[PATH_MAX];  /* libxtrace_inject.so */
	char simulator[PATH_MAX]; /* directory with the simulated libcuda.so.1 and libcupti.so */
};

/* Returns 0, -ENOENT if libxtrace_inject.so is missing, or another -errno. */
int install_paths_find(struct install_paths *paths);

#endif
