/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/address_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"

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
		struct address_range range = {0};
		char rights[5];
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %*u %n", &range.start,
			   &range.end, rights, &name) < 3)
			continue;
		range.can_read = rights[0] == 'r';
		range.can_write = rights[1] == 'w';
		range.can_execute = rights[2] == 'x';
		range.is_private = rights[3] == 'p';
		range.is_main_stack = !strncmp(line + name, "[stack]", 7);
		range.is_heap = !strncmp(line + name, "[heap]", 6);
		range.is_file = line[name] == '/';
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
