/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correlation ids of calls that were not recorded, so that their GPU work is dropped too. Writer
 * thread only.
 */
#ifndef XT_INJECT_SUPPRESSED_IDS_H
#define XT_INJECT_SUPPRESSED_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define SKIPPED_PAGES_MAX 64

/*
 * A bit set in pages that are created as needed. Zero-initialised means empty. Keeps the latest
 * thirty million calls; the GPU work of older ones has ended.
 */
struct suppressed_ids {
	uint8_t **pages;
	uint32_t made[SKIPPED_PAGES_MAX]; /* page numbers in order of creation, a ring buffer */
	uint32_t made_count;		  /* total; modulo SKIPPED_PAGES_MAX, the oldest page */
	uint64_t count;			  /* ids ever added */
};

/* If out of memory, the id is not added; its GPU work then appears without a call. */
void suppressed_ids_add(struct suppressed_ids *set, uint32_t correlation_id);

/* A recorded call reuses the id. */
void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id);
bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id);
/* CUPTI restarts its ids: removes all, keeps the count. */
void suppressed_ids_forget(struct suppressed_ids *set);
void suppressed_ids_free(struct suppressed_ids *set);

#endif
