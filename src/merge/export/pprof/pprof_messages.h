/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PPROF_MESSAGES_H
#define XT_MERGE_PPROF_MESSAGES_H

#include "merge/export/pprof/pprof_state.h"

/* Returns the index of a string (any bytes) in the file. */
int64_t pprof_string(struct pprof *pprof, const char *text, size_t length);

/* Writes a part of the profile. The concatenated parts form one profile. */
void pprof_put(struct pprof *pprof, const Perftools__Profiles__Profile *piece);

#endif
