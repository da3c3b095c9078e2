/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns the clocks of several hosts before timelines are written. The collectives of all logs are
 * needed for that, so the logs are read once more, before.
 */
#ifndef XT_MERGE_ALIGN_H
#define XT_MERGE_ALIGN_H

struct inputs;
struct options;
struct report;

/*
 * If an output of the options is a timeline of several hosts, aligns the clocks of the inputs and
 * notes in the report how well. Clocks that no collective compares stay as they are.
 */
void align_hosts(const struct options *options, struct inputs *inputs, struct report *report);

#endif
