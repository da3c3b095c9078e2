/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that a program gave through NVTX: to categories, by domain, to threads, and to devices,
 * contexts and, by context, streams.
 */
#ifndef XT_MERGE_RANGE_NAMES_H
#define XT_MERGE_RANGE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct range_name {
	uint64_t key;	 /* number of the category, tid, CUPTI's number */
	uint32_t domain; /* of streams: the context */
	uint32_t text;	 /* XT_STRING_ID */
	uint32_t order;	 /* range_names.c's */
};

/* All zeros is an empty table. */
struct range_names {
	struct range_name *rows;
	size_t count;
	size_t capacity;
};

/* 0 or -ENOMEM. */
int range_names_add(struct range_names *names, uint32_t domain, uint64_t key, uint32_t text);

/* All are there: to be called once, before what follows. */
void range_names_index(struct range_names *names);
void range_names_free(struct range_names *names);

/* What that was named last, as XT_STRING_ID; 0: nothing. */
uint32_t range_names_find(const struct range_names *names, uint32_t domain, uint64_t key);

#endif
