/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that a program gave through NVTX to categories, threads, devices, contexts and streams.
 */
#ifndef XT_MERGE_RANGE_NAMES_H
#define XT_MERGE_RANGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct range_name {
	uint64_t key;	 /* category number, tid, or CUPTI's number */
	uint32_t domain; /* for streams: the context */
	uint32_t text;	 /* XT_STRING_ID */
	uint32_t order;	 /* used by range_names.c */
};

/* All zeros is an empty table. */
struct range_names {
	struct range_name *rows;
	size_t count;
	size_t capacity;
};

/* Adds a name. */
void range_names_add(struct range_names *names, uint32_t domain, uint64_t key, uint32_t text);

/* Call it once, after the last name and before range_names_find(). */
void range_names_index(struct range_names *names);
void range_names_free(struct range_names *names);

/* Returns the last name given, as XT_STRING_ID; 0: none. */
uint32_t range_names_find(const struct range_names *names, uint32_t domain, uint64_t key);

#endif
