/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that the fuzz targets of the merge share. One thread.
 */
#ifndef TESTS_FUZZ_MERGING_H
#define TESTS_FUZZ_MERGING_H

#include <stddef.h>

#include "fuzz.h"

#define MERGE_MANY_LOGS 128 /* in merge_choice.top: the target adds a log */

/* An exporter and its options, from the first bytes of an input. */
struct merge_choice {
	uint8_t exporter, how, which, top;
};

struct merge_choice merge_choose(struct feed *feed);

/* Merges the logs into the chosen output, and deletes the output. */
void merge_logs(struct merge_choice choice, const char *const *logs, size_t count);

#endif
