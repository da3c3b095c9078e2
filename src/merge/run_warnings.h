/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warnings about a whole run.
 */
#ifndef XT_MERGE_RUN_WARNINGS_H
#define XT_MERGE_RUN_WARNINGS_H

struct run;

/* Reports what the logs lack, and puts the warnings in order. Call it after the last log. */
void run_warnings_finish(const struct run *run);

#endif
