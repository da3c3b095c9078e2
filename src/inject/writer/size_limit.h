/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the log within --max-size. Writer thread only. */
#ifndef XT_INJECT_SIZE_LIMIT_H
#define XT_INJECT_SIZE_LIMIT_H

#include "inject/writer/recorder.h"

/* size_limit_enforce.c: keeps the log within its size; once in each round. */
void size_limit_enforce(struct recorder *rec);
void size_limit_end(struct recorder *rec); /* what is half done is given up */

#endif
