/* SPDX-License-Identifier: Apache-2.0 */
/* The crash buffer's file: created while other threads, of NVTX, ask for areas. */
/* Included for its static variables. */
#include "inject/memory/crash_buffer.c"

#include "scenarios.h"

const void *const file_header_place = &crash_buffer.header;
const void *const file_kind_place =
	&((struct xt_crash_buffer_header *)scenario_area)->areas[0].kind;

int __wrap_xt_guarded_fd_take(struct xt_guarded_fd *file, int fd);
bool __wrap_xt_guarded_fd_is_ours(const struct xt_guarded_fd *file);

int __wrap_xt_guarded_fd_take(struct xt_guarded_fd *file, int fd)
{
	file->fd = fd;
	file->inode = 1;
	return 0;
}

bool __wrap_xt_guarded_fd_is_ours(const struct xt_guarded_fd *file)
{
	return file->fd == SCENARIO_FD;
}

static uint8_t *areas[EXPLORER_THREADS_MAX];

static void nothing(void)
{
}

static void create_file(void)
{
	if (crash_buffer_create("file", 1, 2))
		explorer_fail("the file was not created");
}

static void add_area(void)
{
	areas[explorer_thread()] = crash_buffer_area(4096, XT_AREA_RING);
}

static void add_and_find_area(void)
{
	add_area();
	crash_buffer_contains(areas[explorer_thread()]);
}

static void check_areas(void)
{
	const struct xt_crash_buffer_header *header = crash_buffer.header;
	uint64_t header_bytes = round_to_pages(sizeof(*header));

	for (uint32_t i = 0; header && i < header->area_count; i++)
		if (header->areas[i].kind && header->areas[i].offset < header_bytes)
			explorer_fail("an area overlaps the header");
	if (header && header->area_count == 2 && header->areas[0].offset == header->areas[1].offset)
		explorer_fail("two areas overlap");
}

const struct explorer_program file_created = {
	.set_up = nothing,
	.threads = {create_file, add_and_find_area},
	.at_each_write = check_areas,
	.at_end = check_areas,
};
const struct explorer_program file_areas = {
	.set_up = create_file,
	.threads = {add_and_find_area, add_and_find_area},
	.at_each_write = check_areas,
	.at_end = check_areas,
	.switches_max = 3,
};
