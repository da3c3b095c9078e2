/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line and the inputs of a merge, for its workers. So all processes see the same logs
 * under the same numbers, even if other hosts have other files.
 */
#ifndef XT_MERGE_PACK_INPUTS_H
#define XT_MERGE_PACK_INPUTS_H

#include "merge/base/pack.h"
#include "merge/read/inputs.h"

/* When reading: free *argv with free_argv(), and the inputs with inputs_free(), in any case. */
void pack_argv(struct pack *pack, int *argc, char ***argv);
void free_argv(int argc, char **argv);
void pack_inputs(struct pack *pack, struct inputs *inputs);

#endif
