/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/address_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "sampler/process_modules.h"

#define PAGE_BYTES UINT64_C(4096)
/* User addresses with four levels of page tables. */
#define ADDRESS_MAX UINT64_C(0x7fffffff0000)

int address_map_read(struct address_map *map, pid_t pid)
{
	char path[64], *line = NULL;
	size_t line_bytes = 0;
	FILE *file;
	int error = 0;

	map->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	while (file && !error && getline(&line, &line_bytes, file) > 0) {
		struct address_range range;
		struct memory_mapping mapping;

		if (!memory_mapping_parse(line, &mapping))
			continue;
		range = (struct address_range){
			.start = mapping.start,
			.end = mapping.end,
			.can_write = mapping.is_writable,
			.can_execute = mapping.is_executable,
			.is_private = mapping.is_private,
			.is_main_stack = !strcmp(mapping.path, "[stack]"),
		};
		error = grow(&map->ranges, &map->capacity, map->count + 1, sizeof(range));
		if (!error)
			map->ranges[map->count++] = range;
	}
	free(line);
	if (file)
		fclose(file);
	return error ? -ENOMEM : map->count ? 0 : -ESRCH;
}

void address_map_free(struct address_map *map)
{
	free(map->ranges);
	*map = (struct address_map){0};
}

const struct address_range *address_map_find(const struct address_map *map, uint64_t address)
{
	for (size_t i = 0; i < map->count; i++)
		if (address >= map->ranges[i].start && address < map->ranges[i].end)
			return &map->ranges[i];
	return NULL;
}

uint64_t address_map_gap(const struct address_map *map, uint64_t bytes)
{
	uint64_t start = 0, largest = 0;

	for (size_t i = 0; i + 1 < map->count && map->ranges[i + 1].start < ADDRESS_MAX; i++) {
		uint64_t gap = map->ranges[i + 1].start - map->ranges[i].end;

		if (gap > largest) {
			largest = gap;
			start = map->ranges[i].end;
		}
	}
	/* The program and the kernel take memory from the ends of gaps. */
	return largest > 4 * bytes ? (start + largest / 2) & ~(PAGE_BYTES - 1) : 0;
}
