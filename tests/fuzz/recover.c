/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes recovery. The input patches a valid crash buffer: each patch is a position and bytes. A
 * position is in the header, or in the start or the content of an area. The log that belongs to the
 * crash buffer is unchanged.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "../unit/log/recover_maker.h"
#include "fuzz.h"
#include "log/recover/recover.h"

#define LOG "one.xtr"

static struct made_crash_buffer made;
static struct blob log_bytes;
static const char *log_path, *crash_buffer_path, *template_path;
static int template_fd = -1;

/* Recovery deletes the crash buffer, so keep a second link to the file and restore it each time. */
static void begin(void)
{
	log_path = fuzz_path(LOG);
	crash_buffer_path = fuzz_path(LOG XT_CRASH_BUFFER_SUFFIX);
	template_path = fuzz_path("template");
	make_crash_buffer(&made, 130000);
	fuzz_write_file(template_path, made.bytes.data, made.bytes.bytes);
	template_fd = open(template_path, O_WRONLY | O_CLOEXEC);
	make_log(log_path);
	log_bytes = file_read(log_path);
}

/* Returns a position in the records of a ring, the data of a buffer, or the names. */
static uint64_t place_of(uint8_t part, uint64_t offset)
{
	static const uint64_t contents[MADE_AREAS] = {
		[MADE_RING_1] = XT_RING_DATA_OFFSET,
		[MADE_RING_2] = XT_RING_DATA_OFFSET,
		[MADE_COMPLETED] = XT_ACTIVITY_DATA_OFFSET,
		[MADE_AT_CUPTI] = XT_ACTIVITY_DATA_OFFSET,
		[MADE_NAMES] = XT_NAMES_DATA_OFFSET,
	};
	uint8_t area = part / 2 % (MADE_AREAS + 1);

	if (area == MADE_AREAS)
		return offset % sizeof(struct xt_crash_buffer_header);
	return made.offsets[area] + offset % 8192 + (part % 2 ? contents[area] : 0);
}

static void put(uint64_t place, const uint8_t *bytes, size_t count)
{
	if (pwrite(template_fd, bytes, count, (off_t)place) != (ssize_t)count)
		_exit(1);
}

/* Applies the patches, or reverts them. */
static void change(struct feed feed, bool takes_back)
{
	while (feed.at < feed.end) {
		uint8_t part = feed_byte(&feed);
		uint64_t place = place_of(part, feed_number(&feed));
		size_t count;
		const uint8_t *bytes = feed_bytes(&feed, 1 + feed_byte(&feed) % 64, &count);

		if (place + count <= made.bytes.bytes)
			put(place, takes_back ? made.bytes.data + place : bytes, count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct feed feed = {data, data + bytes};
	struct xt_recovered got;

	if (!log_path)
		begin();
	fuzz_write_file(log_path, log_bytes.data, log_bytes.bytes);
	change(feed, false);
	unlink(crash_buffer_path);
	if (link(template_path, crash_buffer_path))
		_exit(1);
	xt_recover(log_path, &got);
	change(feed, true);
	return 0;
}
