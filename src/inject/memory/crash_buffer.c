/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file and its areas. crash_buffer_area() may run on any thread, in the cold path of a
 * callback: no lock, no malloc, but system calls. Names are appended to areas by the writer thread
 * only.
 */
#include "inject/memory/crash_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/memory/memory.h"
#include "inject/runtime/process.h"
#include "inject/runtime/signal_guard.h"
#include "log/base/regular_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; in the headers of glibc 2.35 */
#endif

static struct {
	char path[PATH_MAX];
	struct xt_guarded_fd file;
	_Atomic(struct xt_crash_buffer_header *) header; /* mapped; NULL without a file */
	atomic_uint_fast64_t end_offset;
	atomic_uint_fast64_t unbacked;
	void *addresses[XT_CRASH_BUFFER_AREAS_MAX]; /* of the areas in the header */
} crash_buffer = {.file = {.fd = -1}};

/* Pairs with crash_buffer_create(): NVTX threads may claim thread buffers before CUDA starts. */
static struct xt_crash_buffer_header *header_now(void)
{
	return atomic_load_explicit(&crash_buffer.header, memory_order_acquire);
}

/* Where the tracer writes what others read. Without a file, this is unused memory. */
static struct xt_crash_buffer_header *shared_header(void)
{
	static struct xt_crash_buffer_header unused;
	struct xt_crash_buffer_header *header = header_now();

	return header ? header : &unused;
}

uint32_t crash_buffer_page_bytes;

/* Pages of the file format have 4 KiB. The processor's pages have at least that. */
static size_t page_bytes(void)
{
	long bytes =
		crash_buffer_page_bytes ? (long)crash_buffer_page_bytes : sysconf(_SC_PAGESIZE);

	return bytes > XT_CRASH_BUFFER_PAGE_BYTES ? (size_t)bytes : XT_CRASH_BUFFER_PAGE_BYTES;
}

static size_t round_to_pages(size_t bytes)
{
	return (bytes + page_bytes() - 1) & ~(page_bytes() - 1);
}

/* The whole pages of a range; their size is 0 if there are none. */
static uint8_t *whole_pages(void *from, size_t bytes, size_t *bytes_out)
{
	uintptr_t start = ((uintptr_t)from + page_bytes() - 1) & ~(page_bytes() - 1);
	uintptr_t end = ((uintptr_t)from + bytes) & ~(page_bytes() - 1);

	*bytes_out = end > start ? end - start : 0;
	return (uint8_t *)start;
}

/*
 * Allocates disk space first: writing to a hole on a full disk would raise SIGBUS in the program.
 */
static bool reserve(int fd, uint64_t offset, size_t bytes)
{
	struct signal_guard guard;
	int rc;

	signal_hold(&guard, SIGXFSZ);
	rc = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
	signal_release(&guard, rc == EFBIG);
	return rc == 0;
}

/* The writer may reopen the file at any time. */
static struct xt_guarded_fd current_file(void)
{
	return (struct xt_guarded_fd){
		.fd = __atomic_load_n(&crash_buffer.file.fd, __ATOMIC_RELAXED),
		.device = crash_buffer.file.device,
		.inode = crash_buffer.file.inode,
	};
}

static void *map_file(uint64_t offset, size_t bytes)
{
	struct xt_guarded_fd file = current_file();
	void *area;

	if (!xt_guarded_fd_is_ours(&file))
		return NULL;
	/* Map first: without memory, the file must not grow. */
	area = map_file_part(file.fd, offset, bytes);
	/* The program may have closed all descriptors meanwhile and opened a file of its own. */
	if (area && (!reserve(file.fd, offset, bytes) || !xt_guarded_fd_is_ours(&file))) {
		munmap(area, bytes);
		return NULL;
	}
	return area;
}

int crash_buffer_create(const char *path, uint64_t log_id, uint32_t cupti_version)
{
	size_t bytes = round_to_pages(sizeof(struct xt_crash_buffer_header));
	struct xt_crash_buffer_header *header;
	int fd, rc;

	if (snprintf(crash_buffer.path, sizeof(crash_buffer.path), "%s", path) >=
	    (int)sizeof(crash_buffer.path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = xt_guarded_fd_take(&crash_buffer.file, fd);
	header = rc ? NULL : map_file(0, bytes);
	if (!header) {
		unlink(path);
		xt_guarded_fd_close(&crash_buffer.file);
		return rc ? rc : -ENOSPC;
	}
	memcpy(header->magic, XT_CRASH_BUFFER_MAGIC, sizeof(header->magic));
	header->version = XT_CRASH_BUFFER_VERSION;
	header->byte_order = XT_LOG_BYTE_ORDER;
	header->log_id = log_id;
	header->pid = (uint32_t)getpid();
	header->cupti_version = cupti_version;
	atomic_store(&crash_buffer.end_offset, bytes);
	/* Pairs with header_now(): a thread that sees the header sees the rest of crash_buffer. */
	atomic_store_explicit(&crash_buffer.header, header, memory_order_release);
	return 0;
}

static void *file_area(size_t area_bytes, enum xt_area_kind kind)
{
	struct xt_crash_buffer_header *header = header_now();
	size_t bytes = round_to_pages(area_bytes);
	struct xt_crash_buffer_area *entry;
	unsigned index;
	uint64_t offset;
	void *area;

	if (!header)
		return NULL;
	if (__atomic_load_n(&header->area_count, __ATOMIC_RELAXED) >= XT_CRASH_BUFFER_AREAS_MAX)
		return NULL;
	offset = atomic_fetch_add(&crash_buffer.end_offset, bytes);
	area = map_file(offset, bytes);
	if (!area)
		return NULL;
	/* Otherwise the kernel reads 128 KiB of zeros around the first page touched. */
	madvise(area, bytes, MADV_RANDOM);
	index = __atomic_fetch_add(&header->area_count, 1, __ATOMIC_RELAXED);
	if (index >= XT_CRASH_BUFFER_AREAS_MAX)
		return area; /* usable, but recovery will not find it */
	entry = &header->areas[index];
	entry->offset = offset;
	/* Recovery expects the format's pages behind a ring, whatever the processor's are. */
	entry->bytes = (area_bytes + XT_CRASH_BUFFER_PAGE_BYTES - 1) &
		       ~(uint64_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1);
	crash_buffer.addresses[index] = area;
	__atomic_store_n(&entry->kind, kind, __ATOMIC_RELEASE);
	return area;
}

void *crash_buffer_area(size_t area_bytes, enum xt_area_kind kind)
{
	void *area;

	/* A child that the C library does not know must not use its parent's file. */
	if ((header_now() && !is_own_process()) || map_has_failed_lately())
		return NULL;
	area = file_area(area_bytes, kind);
	if (area)
		return area;
	area = map_memory(round_to_pages(area_bytes));
	if (!area)
		return NULL;
	atomic_fetch_add(&crash_buffer.unbacked, 1);
	return area;
}

void crash_buffer_touch(void *pages, size_t bytes)
{
	size_t before = (uintptr_t)pages & (page_bytes() - 1);

	if (!madvise((uint8_t *)pages - before, bytes + before, MADV_POPULATE_WRITE))
		return;
	/* The kernel is older than 5.14. */
	for (size_t i = 0; i < bytes; i += XT_CRASH_BUFFER_PAGE_BYTES)
		((volatile uint8_t *)pages)[i] = 0;
}

/* The area of the file that contains these pages, or NULL for plain memory. */
static const struct xt_crash_buffer_area *area_of(const void *pages, uint64_t *offset)
{
	struct xt_crash_buffer_header *header = header_now();
	uint32_t count = header ? __atomic_load_n(&header->area_count, __ATOMIC_RELAXED) : 0;

	for (uint32_t i = 0; i < count && i < XT_CRASH_BUFFER_AREAS_MAX; i++) {
		const struct xt_crash_buffer_area *area = &header->areas[i];
		uintptr_t distance;

		/* Pairs with file_area(): the rest of the entry is there. */
		if (!__atomic_load_n(&area->kind, __ATOMIC_ACQUIRE))
			continue;
		distance = (uintptr_t)pages - (uintptr_t)crash_buffer.addresses[i];
		if (distance >= area->bytes)
			continue;
		*offset = area->offset + distance;
		return area;
	}
	return NULL;
}

size_t crash_buffer_occupied_bytes(size_t area_bytes)
{
	return round_to_pages(area_bytes);
}

size_t crash_buffer_release_pages(void *pages, size_t bytes)
{
	uint64_t offset;
	size_t whole_bytes;
	uint8_t *whole = whole_pages(pages, bytes, &whole_bytes);

	if (!whole_bytes ||
	    madvise(whole, whole_bytes, area_of(pages, &offset) ? MADV_REMOVE : MADV_DONTNEED))
		return 0;
	return whole_bytes;
}

bool crash_buffer_restore_pages(void *pages, size_t bytes)
{
	struct xt_guarded_fd file = current_file();
	uint64_t offset;
	size_t whole_bytes;
	uint8_t *whole = whole_pages(pages, bytes, &whole_bytes);
	uint8_t *from = pages, *end = from + bytes;

	if (!whole_bytes) {
		memset(from, 0, bytes);
		return true;
	}
	if (area_of(whole, &offset) &&
	    !(xt_guarded_fd_is_ours(&file) && reserve(file.fd, offset, whole_bytes)))
		return false;
	memset(from, 0, (size_t)(whole - from));
	memset(whole + whole_bytes, 0, (size_t)(end - (whole + whole_bytes)));
	return true;
}

void crash_buffer_record_bytes(uint32_t kind, uint32_t bytes)
{
	if (kind < XT_CRASH_BUFFER_RECORD_KINDS)
		__atomic_store_n(&shared_header()->record_bytes[kind], bytes, __ATOMIC_RELAXED);
}

void crash_buffer_log_bytes(uint64_t bytes)
{
	__atomic_store_n(&shared_header()->log_bytes, bytes, __ATOMIC_RELAXED);
}

uint32_t crash_buffer_request(uint32_t *delay_ms, uint32_t *duration_ms)
{
	struct xt_crash_buffer_header *header = shared_header();
	uint32_t request = __atomic_load_n(&header->request, __ATOMIC_ACQUIRE);

	*delay_ms = __atomic_load_n(&header->delay_ms, __ATOMIC_RELAXED);
	*duration_ms = __atomic_load_n(&header->duration_ms, __ATOMIC_RELAXED);
	return request;
}

void crash_buffer_request_taken(uint32_t request)
{
	__atomic_store_n(&shared_header()->request_taken, request, __ATOMIC_RELAXED);
}

void crash_buffer_request_done(uint32_t request)
{
	/* A newer request stays pending. */
	__atomic_compare_exchange_n(&shared_header()->request, &request, request | XT_REQUEST_DONE,
				    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void crash_buffer_state(enum xt_tracer_state state, const char *problem)
{
	struct xt_crash_buffer_header *header = shared_header();

	if (strncmp(header->problem, problem, sizeof(header->problem) - 1) != 0)
		snprintf(header->problem, sizeof(header->problem), "%s", problem);
	__atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
}

void crash_buffer_snapshot(uint32_t number, int error)
{
	struct xt_crash_buffer_header *header = shared_header();

	__atomic_store_n(&header->snapshot_number, number, __ATOMIC_RELAXED);
	__atomic_store_n(&header->snapshot_error, -error, __ATOMIC_RELAXED);
}

void crash_buffer_gpu(uint32_t device)
{
	struct xt_crash_buffer_header *header = shared_header();

	if (device < 64)
		__atomic_store_n(&header->gpus, header->gpus | UINT64_C(1) << device,
				 __ATOMIC_RELAXED);
}

void crash_buffer_totals(uint64_t launch_count, uint64_t lost_count)
{
	struct xt_crash_buffer_header *header = shared_header();

	__atomic_store_n(&header->launch_count, launch_count, __ATOMIC_RELAXED);
	__atomic_store_n(&header->lost_count, lost_count, __ATOMIC_RELAXED);
}

bool crash_buffer_contains(const void *pages)
{
	uint64_t offset;

	return area_of(pages, &offset) != NULL;
}

void crash_buffer_count_after_end(void)
{
	struct xt_crash_buffer_header *header = header_now();

	if (header && is_own_process())
		__atomic_fetch_add(&header->counters[XT_CRASH_BUFFER_CALLS_AFTER_END], 1,
				   __ATOMIC_RELAXED);
}

void crash_buffer_count(const uint64_t counters[XT_CRASH_BUFFER_COUNTERS])
{
	struct xt_crash_buffer_header *header = shared_header();

	for (unsigned i = 0; i < XT_CRASH_BUFFER_COUNTERS; i++)
		if (__atomic_load_n(&header->counters[i], __ATOMIC_RELAXED) != counters[i])
			__atomic_store_n(&header->counters[i], counters[i], __ATOMIC_RELAXED);
}

void crash_buffer_end(enum xt_crash_buffer_ending ending, int error)
{
	struct xt_crash_buffer_header *header = shared_header();

	__atomic_store_n(&header->error, error, __ATOMIC_RELAXED);
	__atomic_store_n(&header->ending, ending, __ATOMIC_RELEASE);
}

bool crash_buffer_is_open(void)
{
	return !header_now() || xt_guarded_fd_is_ours(&crash_buffer.file);
}

void crash_buffer_reopen(void)
{
	struct xt_guarded_fd again;

	if (!crash_buffer_is_open() &&
	    !xt_guarded_fd_reopen(&crash_buffer.file, crash_buffer.path, &again))
		__atomic_store_n(&crash_buffer.file.fd, again.fd, __ATOMIC_RELAXED);
}

bool crash_buffer_exists(void)
{
	struct stat status;

	return header_now() && !lstat(crash_buffer.path, &status) &&
	       status.st_dev == crash_buffer.file.device &&
	       status.st_ino == crash_buffer.file.inode;
}

uint64_t crash_buffer_unbacked_areas(void)
{
	return atomic_load(&crash_buffer.unbacked);
}

void crash_buffer_abandon(void)
{
	xt_guarded_fd_close(&crash_buffer.file);
	atomic_store_explicit(&crash_buffer.header, NULL, memory_order_relaxed);
}

void crash_buffer_remove(void)
{
	if (header_now())
		unlink(crash_buffer.path);
}

#define NAMES_AREA_BYTES (256u << 10)
#define NAMES_AREAS_MAX	 64
#define NAMES_OWN_AREAS	 2 /* not charged to the budget */
#define NAMES_DATA_BYTES (NAMES_AREA_BYTES - XT_NAMES_DATA_OFFSET)

static struct xt_names_header *names_area; /* the area being filled; NULL: none yet */
static unsigned names_area_count;

void crash_buffer_name_add(enum xt_name_of of, uint64_t key, const char *text, size_t text_bytes)
{
	size_t bytes = (sizeof(struct xt_crash_buffer_name) + text_bytes + 7) & ~(size_t)7;
	struct xt_crash_buffer_name *name;

	if (bytes > NAMES_DATA_BYTES)
		return;
	if (!names_area || NAMES_DATA_BYTES - names_area->used_bytes < bytes) {
		if (names_area_count == NAMES_AREAS_MAX ||
		    (names_area_count >= NAMES_OWN_AREAS && !budget_take(NAMES_AREA_BYTES)))
			return;
		names_area_count++;
		names_area = crash_buffer_area(NAMES_AREA_BYTES, XT_AREA_NAMES);
		if (!names_area)
			return;
	}
	name = (struct xt_crash_buffer_name *)((uint8_t *)names_area + XT_NAMES_DATA_OFFSET +
					       names_area->used_bytes);
	name->key = key;
	name->of = of;
	name->text_bytes = (uint32_t)text_bytes;
	memcpy(name->text, text, text_bytes);
	/* A kill may come at any moment: publish the name once it is complete. */
	__atomic_store_n(&names_area->used_bytes, names_area->used_bytes + bytes, __ATOMIC_RELEASE);
}
