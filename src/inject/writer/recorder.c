/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of rows and interned ids, and how they are written to the file. Writer thread only; may
 * allocate.
 *
 * Kernel names are addresses in GPU modules. They are read with a system call, because a module may
 * be unloaded at any time, and cached by address until any module is unloaded.
 */
#include "inject/writer/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer.h"
#include "inject/memory/memory.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "log/write/compact.h"
#include "xtrace/log_format.h"

#define OWN_KEYS_BYTES (128u << 10) /* of an interner: not charged to the budget */

void intern_forget(struct intern *known)
{
	budget_give_back(known->charged_bytes);
	known->charged_bytes = 0;
	known->forgotten_count += (uint32_t)known->keys.count;
	interner_free(&known->keys);
}

/* Charges what the keys take to the budget. False if it is used up. */
static bool charge(struct intern *known)
{
	size_t bytes = interner_bytes(&known->keys);
	size_t more = bytes > OWN_KEYS_BYTES ? bytes - OWN_KEYS_BYTES - known->charged_bytes : 0;

	if (more && !budget_take(more))
		return false;
	known->charged_bytes += more;
	return true;
}

uint32_t intern_id(struct intern *known, const void *key, size_t key_bytes, bool *is_new)
{
	uint32_t id = interner_find(&known->keys, key, key_bytes);

	*is_new = false;
	if (id)
		return known->forgotten_count + id;
	if (key_bytes > known->keys_limit)
		return 0;
	if (known->keys.bytes_used + key_bytes > known->keys_limit)
		intern_forget(known);
	id = interner_id(&known->keys, key, key_bytes, is_new);
	if (!id || !charge(known)) {
		/* Out of memory: start again with a small, empty table and new ids. */
		intern_forget(known);
		id = interner_id(&known->keys, key, key_bytes, is_new);
	}
	return id ? known->forgotten_count + id : 0;
}

#define PAGE_BITS  19 /* 64 KiB */
#define PAGE_COUNT (1u << (32 - PAGE_BITS))
#define PAGE_BYTES ((1u << PAGE_BITS) / 8)

static uint8_t *suppressed_byte(const struct suppressed_ids *set, uint32_t id)
{
	uint8_t *page = set->pages ? set->pages[id >> PAGE_BITS] : NULL;

	return page ? &page[(id & ((1u << PAGE_BITS) - 1)) / 8] : NULL;
}

/* Ids are nearly ascending, so a new page is needed rarely. */
static void make_page(struct suppressed_ids *set, uint32_t number)
{
	uint32_t *place = &set->made[set->made_count % SKIPPED_PAGES_MAX];

	if (set->made_count >= SKIPPED_PAGES_MAX) {
		free(set->pages[*place]);
		set->pages[*place] = NULL;
	}
	set->pages[number] = calloc(1, PAGE_BYTES);
	if (!set->pages[number])
		return;
	*place = number;
	set->made_count++;
}

void suppressed_ids_add(struct suppressed_ids *set, uint32_t correlation_id)
{
	uint8_t *byte;

	set->count++;
	if (!set->pages)
		set->pages = calloc(PAGE_COUNT, sizeof(*set->pages));
	if (!set->pages)
		return;
	if (!set->pages[correlation_id >> PAGE_BITS])
		make_page(set, correlation_id >> PAGE_BITS);
	byte = suppressed_byte(set, correlation_id);
	if (byte)
		*byte |= (uint8_t)(1u << correlation_id % 8);
}

void suppressed_ids_remove(struct suppressed_ids *set, uint32_t correlation_id)
{
	uint8_t *byte = suppressed_byte(set, correlation_id);

	if (byte)
		*byte &= (uint8_t) ~(1u << correlation_id % 8);
}

bool suppressed_ids_has(const struct suppressed_ids *set, uint32_t correlation_id)
{
	const uint8_t *byte = suppressed_byte(set, correlation_id);

	return byte && *byte >> correlation_id % 8 & 1;
}

void suppressed_ids_forget(struct suppressed_ids *set)
{
	for (size_t i = 0; set->pages && i < PAGE_COUNT; i++)
		free(set->pages[i]);
	free(set->pages);
	set->pages = NULL;
}

void suppressed_ids_free(struct suppressed_ids *set)
{
	suppressed_ids_forget(set);
	*set = (struct suppressed_ids){0};
}

#define KERNEL_NAME_BYTES_MAX CRASH_BUFFER_NAME_BYTES_MAX

/* For containers that forbid process_vm_readv(). */
static ssize_t read_own_file(const void *from, void *out, size_t bytes)
{
	ssize_t n;
	int fd;

	/* A child forked meanwhile would inherit the descriptor. */
	loader_lock();
	fd = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, out, bytes, (off_t)(uintptr_t)from);
	if (fd >= 0)
		close(fd);
	loader_unlock();
	return n;
}

/*
 * Reads memory that may be unmapped: all of it, or returns false. By this thread's id, because a
 * main thread that has ended has no memory.
 */
static bool read_own_memory(const void *from, void *out, size_t bytes)
{
	pid_t thread_id = (pid_t)syscall(SYS_gettid);
	struct iovec here = {out, bytes}, there = {(void *)(uintptr_t)from, bytes};
	ssize_t n = process_vm_readv(thread_id, &here, 1, &there, 1, 0);

	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		n = read_own_file(from, out, bytes);
	return n == (ssize_t)bytes;
}

/*
 * Reads a kernel name. It points into a GPU module, which may have been unloaded since. Returns 0
 * if the name is unreadable, has no end, or has invalid characters.
 */
static size_t read_name(const char *name, char *out)
{
	size_t length = 0;

	while (length < KERNEL_NAME_BYTES_MAX) {
		size_t to_page = 4096 - ((uintptr_t)(name + length) & 4095);
		const char *end;

		if (!read_own_memory(name + length, out + length, to_page))
			return 0;
		end = memchr(out + length, '\0', to_page);
		if (end)
			length = (size_t)(end - out);
		else
			length += to_page;
		for (const char *c = out; end && c < end; c++)
			if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
				return 0;
		if (end)
			return length;
	}
	return 0;
}

uint32_t kernel_name_id(struct recorder *rec, const char *name)
{
	static char text[KERNEL_NAME_BYTES_MAX + 4096];
	struct known_name *known;
	uint64_t epoch = atomic_load(&cupti_module_unloads) + 1;
	size_t length;

	if (!name)
		return 0;
	known = &rec->names[((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15)) >>
			    (64 - KNOWN_NAMES_BITS)];
	if (known->address != name || known->epoch != epoch || !known->id) {
		known->address = name;
		known->epoch = epoch;
		length = read_name(name, text);
		known->id = recorder_string(rec, text, length);
		recorder_crash_buffer_name(rec, XT_NAME_KERNEL, (uintptr_t)name, text, length);
	}
	return known->id;
}

void record_node_name(struct recorder *rec, const struct xt_record_node_name *record)
{
	uint32_t name = kernel_name_id(rec, (const char *)(uintptr_t)record->name);
	struct xt_table *table = name ? recorder_table(rec, XT_KIND_GRAPH_NODE_NAME, 0) : NULL;

	if (table)
		xt_write_graph_node_name(table, &(struct xt_row_graph_node_name){
							record->node_id, record->time_ns, name});
}

#define MEMORY_TOTALS_MAX 16384 /* allocations; with more, nothing is known */

/* The table at its largest, with the smaller one from which it grows. */
#define TABLE_BYTES ((size_t)MEMORY_TOTALS_MAX * 3 * sizeof(struct xt_allocation))

static void memory_totals_free(struct memory_totals *totals)
{
	if (totals->allocations.slots)
		budget_give_back(TABLE_BYTES);
	xt_allocations_free(&totals->allocations);
}

static void memory_totals_give_up(struct memory_totals *totals)
{
	totals->is_unknown = true;
	memory_totals_free(totals);
}

static void memory_totals_add(struct memory_totals *totals,
			      const struct cupti_activity_memory *memory)
{
	const struct xt_allocation new = {.address = memory->address,
					  .bytes = memory->bytes,
					  .time_ns = memory->timestamp_ns,
					  .gpu = memory->device_id};
	struct xt_allocation old;
	int outcome = -ENOSPC;

	if (!totals->allocations.slots && !budget_take(TABLE_BYTES)) {
		totals->is_unknown = true;
		return;
	}
	if (totals->allocations.count < MEMORY_TOTALS_MAX)
		outcome = xt_allocations_add(&totals->allocations, &new, &old);
	if (outcome < 0) {
		memory_totals_give_up(totals);
		return;
	}
	if (outcome)
		totals->bytes[old.gpu] -= old.bytes;
	totals->bytes[new.gpu] += new.bytes;
	totals->is_used[new.gpu] = true;
}

void memory_totals_take(struct memory_totals *totals, const struct cupti_activity_memory *memory)
{
	struct xt_allocation old;

	if (totals->is_unknown || !xt_memory_is_on_gpu(memory->memory_kind) ||
	    memory->device_id >= MEMORY_TOTALS_DEVICES_MAX)
		return;
	if (memory->operation == XT_CUPTI_MEMORY_ALLOC)
		memory_totals_add(totals, memory);
	else if (xt_allocations_remove(&totals->allocations, memory->address, memory->timestamp_ns,
				       &old))
		totals->bytes[old.gpu] -= old.bytes;
}

bool memory_totals_text(const struct memory_totals *totals, uint64_t now_ns, char *out,
			size_t out_bytes)
{
	int length = snprintf(out, out_bytes, "%" PRIu64, now_ns);
	bool is_used = false;

	for (unsigned d = 0; d < MEMORY_TOTALS_DEVICES_MAX; d++) {
		if (!totals->is_used[d])
			continue;
		is_used = true;
		if ((size_t)length < out_bytes)
			length += snprintf(out + length, out_bytes - (size_t)length, " %u:%" PRIu64,
					   d, totals->bytes[d]);
	}
	return is_used && !totals->is_unknown && (size_t)length < out_bytes;
}

/* Tables in the order of their chunks: an id is defined before it is used. */
static const struct {
	enum xt_kind kind;
	uint32_t rows;
	size_t content; /* bytes or list elements */
} layout[] = {
	{XT_KIND_META, 64, 64 << 10},	  {XT_KIND_MODULE, 1024, 512 << 10},
	{XT_KIND_MODULE_UNLOAD, 1024, 0}, {XT_KIND_THREAD, 1024, 32 << 10},
	{XT_KIND_API, 1024, 64 << 10},	  {XT_KIND_STRING, 1024, 1 << 20},
	{XT_KIND_STREAM, 1024, 0},	  {XT_KIND_SHAPE, 4096, 0},
	{XT_KIND_PYTHON_FRAME, 4096, 0},  {XT_KIND_STACK, 4096, 128 << 10},
	{XT_KIND_AUTOGRAD, 1024, 0},	  {XT_KIND_CALL, 32 << 10, 0},
	{XT_KIND_KERNEL, 32 << 10, 0},	  {XT_KIND_COPY_SHAPE, 1024, 0},
	{XT_KIND_COPY, 8 << 10, 0},	  {XT_KIND_SET, 8 << 10, 0},
	{XT_KIND_RANGE, 8 << 10, 0},	  {XT_KIND_GRAPH_NODE, 8 << 10, 0},
	{XT_KIND_GRAPH_UPDATE, 4096, 0},  {XT_KIND_GRAPH_NODE_NAME, 4096, 0},
	{XT_KIND_STACK_RATE, 64, 0},	  {XT_KIND_SWITCH, 64, 16 << 10},
	{XT_KIND_MEMORY, 8 << 10, 0},	  {XT_KIND_CLOCK, 64, 0},
	{XT_KIND_ACCOUNT, 64, 4 << 10},
};
#define LAYOUT_COUNT (sizeof(layout) / sizeof(*layout))

static const struct {
	size_t offset, keys_bytes;
} interns[] = {
	{offsetof(struct recorder, strings), 16u << 20},
	{offsetof(struct recorder, modules), 4u << 20},
	{offsetof(struct recorder, python_frames), 4u << 20},
	{offsetof(struct recorder, stacks), 16u << 20},
	{offsetof(struct recorder, autograd), 4u << 20},
	{offsetof(struct recorder, streams), 4u << 20},
	{offsetof(struct recorder, shapes), 4u << 20},
	{offsetof(struct recorder, copy_shapes), 4u << 20},
	{offsetof(struct recorder, crash_buffer_names), 16u << 20},
};
#define INTERNS_COUNT (sizeof(interns) / sizeof(*interns))

static struct intern *intern_at(struct recorder *rec, size_t i)
{
	return (struct intern *)((uint8_t *)rec + interns[i].offset);
}

int recorder_init(struct recorder *rec, struct xt_writer *writer, uint64_t start_ns)
{
	int rc = 0;

	memset(rec, 0, sizeof(*rec));
	rec->writer = writer;
	rec->start_ns = start_ns;
	for (size_t i = 0; i < LAYOUT_COUNT && !rc; i++)
		rc = xt_table_init(&rec->tables[layout[i].kind], layout[i].kind, layout[i].rows,
				   layout[i].content);
	for (size_t i = 0; i < INTERNS_COUNT; i++)
		intern_at(rec, i)->keys_limit = interns[i].keys_bytes;
	return rc;
}

void recorder_free(struct recorder *rec)
{
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		xt_table_free(&rec->tables[layout[i].kind]);
	suppressed_ids_free(&rec->skipped);
	suppressed_ids_free(&rec->shutdown_dropped);
	free(rec->open_ranges.rows);
	memory_totals_free(&rec->memory_totals);
	for (size_t i = 0; i < INTERNS_COUNT; i++)
		intern_forget(intern_at(rec, i));
	xt_writer_close(rec->writer);
	rec->writer = NULL;
}

int recorder_cut(struct recorder *rec)
{
	int rc = 0;

	for (size_t i = 0; i < LAYOUT_COUNT && !rc; i++)
		rc = xt_writer_add(rec->writer, &rec->tables[layout[i].kind]);
	return rc;
}

struct xt_table *recorder_table(struct recorder *rec, enum xt_kind kind, size_t content)
{
	struct xt_table *table = &rec->tables[kind];

	if (xt_table_has_room(table, content))
		return table;
	if (recorder_cut(rec))
		return NULL;
	return xt_table_has_room(table, content) ? table : NULL;
}

uint32_t recorder_id(struct recorder *rec, struct intern *known, const void *key, size_t key_bytes,
		     enum xt_kind kind, size_t content, struct xt_table **table)
{
	bool is_new;
	uint32_t id = intern_id(known, key, key_bytes, &is_new);

	*table = is_new ? recorder_table(rec, kind, content) : NULL;
	if (!is_new || *table)
		return id;
	interner_withdraw(&known->keys);
	return 0;
}

uint32_t recorder_string(struct recorder *rec, const void *text, size_t length)
{
	struct xt_table *table;
	uint32_t id;

	if (!length)
		return 0;
	id = recorder_id(rec, &rec->strings, text, length, XT_KIND_STRING, length, &table);
	if (table)
		xt_write_string(table, &(struct xt_row_string){id, {text, length}});
	return id;
}

uint32_t recorder_module(struct recorder *rec, const struct module_image *image, const char *path,
			 size_t path_bytes, uint64_t load_ns)
{
	uint8_t key[sizeof(*image) + PATH_MAX];
	struct xt_table *table;
	size_t key_bytes;
	uint32_t id;

	if (path_bytes > PATH_MAX || image->build_id_bytes > XT_MODULE_BUILD_ID_MAX)
		return 0;
	key_bytes = offsetof(struct module_image, build_id) + image->build_id_bytes;
	memcpy(key, image, key_bytes);
	memcpy(key + key_bytes, path, path_bytes);
	id = recorder_id(rec, &rec->modules, key, key_bytes + path_bytes, XT_KIND_MODULE,
			 path_bytes + image->build_id_bytes, &table);
	if (table)
		xt_write_module(table, &(struct xt_row_module){
					       .id = id,
					       .load_ns = load_ns,
					       .start = image->start,
					       .end = image->end,
					       .bias = image->bias,
					       .path = {path, path_bytes},
					       .build_id = xt_bytes_of(image->build_id,
								       image->build_id_bytes),
				       });
	return id;
}

void recorder_crash_buffer_name(struct recorder *rec, enum xt_name_of of, uint64_t key,
				const char *text, size_t length)
{
	uint8_t known[sizeof(of) + sizeof(key) + CRASH_BUFFER_NAME_BYTES_MAX];
	bool is_new;

	if (length > CRASH_BUFFER_NAME_BYTES_MAX)
		return;
	memcpy(known, &of, sizeof(of));
	memcpy(known + sizeof(of), &key, sizeof(key));
	memcpy(known + sizeof(of) + sizeof(key), text, length);
	intern_id(&rec->crash_buffer_names, known, sizeof(of) + sizeof(key) + length, &is_new);
	if (!is_new)
		return;
	crash_buffer_name_add(of, key, text, length);
	if (of == XT_NAME_DOMAIN)
		debug_log(DEBUG_NVTX, "domain %llu: %.*s", (unsigned long long)key, (int)length,
			  text);
}

/* The rows are in the file, so their sources can be reused. */
static void free_sources(struct recorder *rec)
{
	struct thread_buffer *tb;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));) {
		/* A thread may be emptying it: inherit_thread_buffer(). */
		if (atomic_load(&tb->state) == THREAD_BUFFER_INHERITED)
			continue;
		if (tb->slots_changed)
			memcpy(tb->ring->slot_stack_id, tb->slot_stack_id,
			       tb->slots_changed * sizeof(*tb->slot_stack_id));
		tb->slots_changed = 0;
		if (tb->autograd_changed)
			memcpy(tb->ring->slot_autograd_id, tb->slot_autograd_id,
			       sizeof(tb->slot_autograd_id));
		tb->autograd_changed = false;
		if (tb->modules_changed)
			memcpy(tb->ring->slot_module_id, tb->slot_module_id,
			       sizeof(tb->slot_module_id));
		tb->modules_changed = false;
		if (tb->ring->free_pos != tb->read_pos)
			ring_free(tb, tb->read_pos);
		/* Memory is available again. */
		if (tb->definitions_lost)
			atomic_fetch_add(&tb->cache_epoch_wanted, 1);
		tb->definitions_lost = false;
	}
	for (uint32_t i = 0; i < rec->held_count; i++)
		activity_release(rec->held[i]);
	rec->held_count = 0;
}

/*
 * Daemons close all descriptors, but the files still exist. The loader lock keeps a forked child
 * from inheriting the new descriptors and the log's file lock.
 */
static int reopen_files(struct recorder *rec)
{
	bool is_open = xt_writer_is_open(rec->writer);
	int error = 0;

	if (is_open && crash_buffer_is_open())
		return 0;
	loader_lock();
	if (!is_open) {
		error = xt_writer_reopen(rec->writer);
		if (rec->size_limit.state == SIZE_COMPACTING)
			rec->size_limit.state = SIZE_WITHIN_LIMIT;
	}
	crash_buffer_reopen();
	loader_unlock();
	debug_log(DEBUG_MEMORY, "files reopened: %s", error ? strerror(-error) : "ok");
	return error;
}

static int write_tables(struct recorder *rec)
{
	int open_error = reopen_files(rec), cut_error = recorder_cut(rec), error;

	/* Writing existing chunks frees memory for the rest. */
	if (cut_error && xt_compact_is_finished(rec->writer))
		return cut_error;
	/*
	 * A flush may replace the log by a smaller, compacted file. Until it is done, the old size
	 * is valid.
	 */
	crash_buffer_log_bytes(xt_writer_file_bytes(rec->writer));
	error = xt_writer_flush(rec->writer);
	crash_buffer_log_bytes(xt_writer_file_bytes(rec->writer));
	if (error == -EBADF && open_error)
		return open_error;
	return error ? error : cut_error;
}

static void update_write_error(struct recorder *rec, int error)
{
	bool was_stalled = rec->write_error;

	rec->write_error = error;
	if (was_stalled == !!error)
		return;
	activity_stall(error);
	thread_buffers_stall(error);
	/* Only once: a disk may fill up again and again. */
	if (error && !rec->has_reported_error)
		log_message("cannot write the log: %s; keeping what fits into memory, and retrying",
			    strerror(-error));
	else if (!error && !rec->has_reported_success)
		log_message("writing the log succeeds again; all events kept in memory are saved");
	rec->has_reported_error = true;
	rec->has_reported_success |= !error;
}

int recorder_flush(struct recorder *rec)
{
	struct row_counts *const all_counts[] = {&rec->calls, &rec->kernels, &rec->copies,
						 &rec->sets, &rec->memory};
	uint64_t start_ns = monotonic_ns(), before_bytes = xt_writer_file_bytes(rec->writer);
	int error = write_tables(rec);

	debug_log(DEBUG_WRITER, "flush: %lld bytes, %u activity buffers, %llu us%s%s",
		  (long long)(xt_writer_file_bytes(rec->writer) - before_bytes), rec->held_count,
		  (unsigned long long)(monotonic_ns() - start_ns) / 1000, error ? ": " : "",
		  error ? strerror(-error) : "");
	update_write_error(rec, error);
	if (error)
		return error;
	for (size_t i = 0; i < sizeof(all_counts) / sizeof(*all_counts); i++) {
		all_counts[i]->written += all_counts[i]->pending;
		all_counts[i]->pending = 0;
	}
	free_sources(rec);
	return 0;
}
