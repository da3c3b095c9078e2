/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool file and its areas. spool_area() may run on any thread, in the cold path of a
 * callback: it takes no lock and calls no malloc, but it makes system calls.
 */
#include "inject/writer/crash_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/runtime/map_memory.h"
#include "inject/runtime/fork_guard.h"
#include "inject/runtime/signal_guard.h"
#include "log/base/guarded_fd.h"

static struct {
	char path[PATH_MAX];
	struct xt_own_file file;
	struct xt_spool_header *header; /* mapped; NULL without a file */
	atomic_uint_fast64_t end_offset;
	atomic_uint_fast64_t unbacked;
	void *addresses[XT_SPOOL_AREAS_MAX]; /* of the areas in the header */
} spool = {.file = {.fd = -1}};

static size_t round_to_pages(size_t bytes)
{
	return (bytes + XT_SPOOL_PAGE_BYTES - 1) & ~(size_t)(XT_SPOOL_PAGE_BYTES - 1);
}

/* Reserves disk space first: a hole that cannot be filled later would be a SIGBUS in the program. */
static bool reserve(int fd, uint64_t offset, size_t bytes)
{
	struct signal_guard guard;
	int rc;

	signal_hold(&guard, SIGXFSZ);
	rc = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
	signal_release(&guard, rc == EFBIG);
	return rc == 0;
}

/* The file as it is now: the writer may open it again meanwhile. */
static struct xt_own_file current_file(void)
{
	return (struct xt_own_file){
		.fd = __atomic_load_n(&spool.file.fd, __ATOMIC_RELAXED),
		.device = spool.file.device,
		.inode = spool.file.inode,
	};
}

static void *map_file(uint64_t offset, size_t bytes)
{
	struct xt_own_file file = current_file();
	void *area;

	if (!xt_own_file_is_ours(&file) || !reserve(file.fd, offset, bytes))
		return NULL;
	area = map_file_part(file.fd, offset, bytes);
	/* Meanwhile the program may have closed all descriptors and opened a file of its own. */
	if (area && !xt_own_file_is_ours(&file)) {
		munmap(area, bytes);
		return NULL;
	}
	return area;
}

int spool_create(const char *path, uint64_t log_id, uint32_t cupti_version)
{
	size_t bytes = round_to_pages(sizeof(struct xt_spool_header));
	struct xt_spool_header *header;
	int fd, rc;

	if (snprintf(spool.path, sizeof(spool.path), "%s", path) >= (int)sizeof(spool.path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = xt_own_file_take(&spool.file, fd);
	header = rc ? NULL : map_file(0, bytes);
	if (!header) {
		unlink(path);
		xt_own_file_close(&spool.file);
		return rc ? rc : -ENOSPC;
	}
	memcpy(header->magic, XT_SPOOL_MAGIC, sizeof(header->magic));
	header->version = XT_SPOOL_VERSION;
	header->byte_order = XT_LOG_BYTE_ORDER;
	header->log_id = log_id;
	header->pid = (uint32_t)getpid();
	header->cupti_version = cupti_version;
	atomic_store(&spool.end_offset, bytes);
	spool.header = header;
	return 0;
}

static void *file_area(size_t bytes, enum xt_area_kind kind)
{
	struct xt_spool_area *entry;
	unsigned index;
	uint64_t offset;
	void *area;

	if (!spool.header)
		return NULL;
	if (__atomic_load_n(&spool.header->area_count, __ATOMIC_RELAXED) >= XT_SPOOL_AREAS_MAX)
		return NULL;
	offset = atomic_fetch_add(&spool.end_offset, bytes);
	area = map_file(offset, bytes);
	if (!area)
		return NULL;
	/* Else the kernel reads 128 KiB of zeros around the first page that is touched. */
	madvise(area, bytes, MADV_RANDOM);
	index = __atomic_fetch_add(&spool.header->area_count, 1, __ATOMIC_RELAXED);
	if (index >= XT_SPOOL_AREAS_MAX)
		return area; /* as good as any, but a recovery will not find it */
	entry = &spool.header->areas[index];
	entry->offset = offset;
	entry->bytes = bytes;
	spool.addresses[index] = area;
	__atomic_store_n(&entry->kind, kind, __ATOMIC_RELEASE);
	return area;
}

void *spool_area(size_t area_bytes, enum xt_area_kind kind)
{
	size_t bytes = round_to_pages(area_bytes);
	void *area;

	/* A child of which the C library does not know must leave its parent's file alone. */
	if (spool.header && !is_own_process())
		return NULL;
	area = file_area(bytes, kind);
	if (area)
		return area;
	area = map_memory(bytes);
	if (!area)
		return NULL;
	atomic_fetch_add(&spool.unbacked, 1);
	return area;
}

void spool_touch(void *pages, size_t bytes)
{
	if (!madvise(pages, bytes, MADV_POPULATE_WRITE))
		return;
	/* A kernel before 5.14. */
	for (size_t i = 0; i < bytes; i += XT_SPOOL_PAGE_BYTES)
		((volatile uint8_t *)pages)[i] = 0;
}

/* The area of the file that these pages are in; NULL: they are plain memory. */
static const struct xt_spool_area *area_of(const void *pages, uint64_t *offset)
{
	uint32_t count =
		spool.header ? __atomic_load_n(&spool.header->area_count, __ATOMIC_RELAXED) : 0;

	for (uint32_t i = 0; i < count && i < XT_SPOOL_AREAS_MAX; i++) {
		const struct xt_spool_area *area = &spool.header->areas[i];
		uintptr_t distance = (uintptr_t)pages - (uintptr_t)spool.addresses[i];

		if (!__atomic_load_n(&area->kind, __ATOMIC_ACQUIRE) || distance >= area->bytes)
			continue;
		*offset = area->offset + distance;
		return area;
	}
	return NULL;
}

bool spool_empty(void *pages, size_t bytes)
{
	uint64_t offset;

	return !madvise(pages, bytes, area_of(pages, &offset) ? MADV_REMOVE : MADV_DONTNEED);
}

bool spool_fill(void *pages, size_t bytes)
{
	struct xt_own_file file = current_file();
	uint64_t offset;

	return !area_of(pages, &offset) ||
	       (xt_own_file_is_ours(&file) && reserve(file.fd, offset, bytes));
}

void spool_record_bytes(uint32_t kind, uint32_t bytes)
{
	if (spool.header && kind < XT_SPOOL_RECORD_KINDS)
		__atomic_store_n(&spool.header->record_bytes[kind], bytes, __ATOMIC_RELAXED);
}

void spool_log_bytes(uint64_t bytes)
{
	if (spool.header)
		__atomic_store_n(&spool.header->log_bytes, bytes, __ATOMIC_RELAXED);
}

uint32_t spool_wish(void)
{
	return spool.header ? __atomic_load_n(&spool.header->wish, __ATOMIC_RELAXED) : XT_WISH_NONE;
}

void spool_wish_done(uint32_t wish)
{
	/* If there is another one by now, that is to be done next. */
	__atomic_compare_exchange_n(&spool.header->wish, &wish, wish | XT_WISH_DONE, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool spool_has(const void *pages)
{
	uint64_t offset;

	return area_of(pages, &offset) != NULL;
}

void spool_count_after_end(void)
{
	if (spool.header && is_own_process())
		__atomic_fetch_add(&spool.header->counters[XT_SPOOL_CALLS_AFTER_END], 1,
				   __ATOMIC_RELAXED);
}

void spool_count(const uint64_t counters[XT_SPOOL_COUNTERS])
{
	for (unsigned i = 0; spool.header && i < XT_SPOOL_COUNTERS; i++)
		if (spool.header->counters[i] != counters[i])
			__atomic_store_n(&spool.header->counters[i], counters[i], __ATOMIC_RELAXED);
}

void spool_end(enum xt_spool_ending ending, int error)
{
	if (!spool.header)
		return;
	__atomic_store_n(&spool.header->error, error, __ATOMIC_RELAXED);
	__atomic_store_n(&spool.header->ending, ending, __ATOMIC_RELEASE);
}

bool spool_is_open(void)
{
	return !spool.header || xt_own_file_is_ours(&spool.file);
}

void spool_reopen(void)
{
	struct xt_own_file again;

	if (!spool_is_open() && !xt_own_file_reopen(&spool.file, spool.path, &again))
		__atomic_store_n(&spool.file.fd, again.fd, __ATOMIC_RELAXED);
}

bool spool_is_there(void)
{
	struct stat status;

	return spool.header && !lstat(spool.path, &status) && status.st_dev == spool.file.device &&
	       status.st_ino == spool.file.inode;
}

uint64_t spool_unbacked_areas(void)
{
	return atomic_load(&spool.unbacked);
}

void spool_abandon(void)
{
	xt_own_file_close(&spool.file);
	spool.header = NULL;
}

void spool_remove(void)
{
	if (spool.header)
		unlink(spool.path);
}
