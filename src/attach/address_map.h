/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a process, of files and others, from /proc/PID/maps.
 */
#ifndef XT_ATTACH_ADDRESS_MAP_H
#define XT_ATTACH_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct address_range {
	uint64_t start, end;
	bool can_write, can_execute, is_private, is_main_stack;
};

struct address_map {
	struct address_range *ranges; /* by address */
	size_t count, capacity;
};

/* 0, -ENOMEM or -ESRCH. All zeros is an empty map. */
int address_map_read(struct address_map *map, pid_t pid);
void address_map_free(struct address_map *map);

/* The mapping that contains an address, or NULL. */
const struct address_range *address_map_find(const struct address_map *map, uint64_t address);

/* An unmapped range of this size, far from all mappings. 0: there is none. */
uint64_t address_map_gap(const struct address_map *map, uint64_t bytes);

#endif
