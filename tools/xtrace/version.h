/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XTRACE_VERSION_H
#define XTRACE_VERSION_H

#include <stddef.h>

/* The commit that this installation was built from. */
void version_commit(char *out, size_t out_bytes);

#endif
