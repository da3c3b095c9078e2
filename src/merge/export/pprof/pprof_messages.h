/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PPROF_MESSAGES_H
#define XT_MERGE_PPROF_MESSAGES_H

#include "merge/export/pprof/pprof_state.h"

/* The index of a text (any bytes) in the file; -1 if memory ran out. */
int64_t pprof_string(struct pprof *pprof, const char *text, size_t length);

/*
 * Writes a profile that has some of the whole: put together, such pieces are one profile. 0 or
 * -ENOMEM.
 */
int pprof_put(struct pprof *pprof, const Perftools__Profiles__Profile *piece);

#endif
