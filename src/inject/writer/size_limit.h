/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the log within --max-size. Writer thread only. */
#ifndef XT_INJECT_SIZE_LIMIT_H
#define XT_INJECT_SIZE_LIMIT_H

#include "inject/writer/recorder.h"

/* Once per round. */
void size_limit_enforce(struct recorder *rec);
void size_limit_end(struct recorder *rec); /* discards an unfinished compaction */

#endif
