/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that were made while recording was paused, by correlation id: what the GPU did for them
 * is not recorded either. Writer thread only.
 */
#ifndef XT_INJECT_SUPPRESSED_IDS_H
#define XT_INJECT_SUPPRESSED_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define SKIPPED_PAGES_MAX 64

/* A bit for each id, in pages that are made when they are needed. All zeros is an empty set. The latest
 * thirty million calls are kept: by then what the GPU did for the others is long over. */
struct suppressed_ids {
	uint8_t **pages;
	uint32_t made[SKIPPED_PAGES_MAX]; /* which pages there are, the oldest at made_count */
	uint32_t made_count;		  /* modulo their number; ever */
	uint64_t count;			  /* of calls that were ever added */
};

/* Without memory for it the call is not in the set: its work is then shown as nobody's. */
void suppressed_ids_add(struct suppressed_ids *set, uint32_t correlation_id);

/* The id is used again, by a call that is recorded. */
void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id);
bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id);
/* CUPTI numbers anew: those of before are over. Their count stays. */
void suppressed_ids_forget(struct suppressed_ids *set);
void suppressed_ids_free(struct suppressed_ids *set);

#endif
