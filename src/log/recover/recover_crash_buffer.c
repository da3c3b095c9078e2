/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read with pread(), not mapped: truncating a mapped file kills its reader.
 *
 * Parses CUPTI activity buffers without CUPTI. The tracer stores the record sizes that CUPTI showed
 * it in the crash buffer. For a kind that it had not seen twice in a row, a table gives the size in
 * each CUPTI version.
 */
#include "log/recover/recover_crash_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda_abi/cupti_record_bytes.h"
#include "log/base/grow.h"
#include "log/base/regular_file.h"

/* Limits on the memory that a crash buffer can make us allocate, far above any real one. */
#define RECOVERY_RING_BYTES_MAX	  (4u << 20)
#define RECOVERY_BUFFER_BYTES_MAX (16u << 20)
#define RECOVERY_NAMES_BYTES_MAX  (16u << 20)
#define RECOVERY_KEPT_BYTES_MAX	  (1u << 30)
#define RECOVERY_WORK_COUNT_MAX	  (8u << 20)
#define RECOVERY_NAME_BYTES_MAX	  65535

#define RECORD_BYTES_MAX 4096
#define BYTES_UP_TO(type, field)                                                                   \
	(offsetof(struct type, field) + sizeof(((struct type *)NULL)->field))

/* The bytes that a record of each kind needs. A shorter one is invalid. 0: not GPU work. */
static const size_t bytes_needed[XT_CRASH_BUFFER_RECORD_KINDS] = {
	[XT_CUPTI_ACTIVITY_KERNEL] = BYTES_UP_TO(cupti_activity_kernel, graph_node_id),
	[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL] = BYTES_UP_TO(cupti_activity_kernel, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMCPY] = BYTES_UP_TO(cupti_activity_memcpy, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMCPY2] = BYTES_UP_TO(cupti_activity_memcpy_peer, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMSET] = BYTES_UP_TO(cupti_activity_memset, graph_node_id),
	[XT_CUPTI_ACTIVITY_MEMORY2] = BYTES_UP_TO(cupti_activity_memory, stream_id),
	[XT_CUPTI_ACTIVITY_GRAPH_TRACE] = BYTES_UP_TO(cupti_activity_graph_trace, stream_id),
};

/* Records of older versions of CUPTI end early: the rest is 0. */
static void read_work(struct recovery_work *work, uint32_t kind, const uint8_t *data, size_t bytes)
{
	union {
		struct cupti_activity any;
		struct cupti_activity_kernel kernel;
		struct cupti_activity_memcpy copy;
		struct cupti_activity_memcpy_peer peer_copy;
		struct cupti_activity_memset set;
		struct cupti_activity_memory memory;
		struct cupti_activity_graph_trace graph;
	} record;

	memset(&record, 0, sizeof(record)); /* = {0} may leave bytes behind the first member */
	memcpy(&record, data, bytes < sizeof(record) ? bytes : sizeof(record));
	xt_gpu_work_of(kind, &record.any, &work->gpu);
}

/* The times show whether the record is complete, so ignore the begun flag. */
static uint32_t kind_at(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind & ~XT_CUPTI_RECORD_BEGUN;
}

/* Size of a record of that kind; 0 if unknown. */
static size_t record_bytes(const struct recovery *recovery, uint32_t kind)
{
	const struct xt_crash_buffer_header *crash_buffer = recovery->crash_buffer;
	size_t bytes;

	if (kind >= XT_CRASH_BUFFER_RECORD_KINDS)
		return 0;
	bytes = crash_buffer->record_bytes[kind];
	if (!bytes && bytes_needed[kind])
		bytes = xt_cupti_record_bytes(crash_buffer->cupti_version, kind);
	if (bytes < sizeof(uint64_t) || bytes < bytes_needed[kind] || bytes > RECORD_BYTES_MAX ||
	    bytes % 8)
		return 0;
	return bytes;
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (data[i])
			return false;
	return true;
}

/*
 * Returns the end of the records: the end of the data, or zeros after the last record. *is_whole is
 * false if something else follows.
 */
static size_t find_end(const struct recovery *recovery, const uint8_t *data, size_t data_bytes,
		       bool *is_whole)
{
	size_t pos = 0;

	while (data_bytes - pos >= sizeof(uint64_t)) {
		uint32_t kind;
		size_t bytes;

		kind = kind_at(data + pos);
		bytes = kind ? record_bytes(recovery, kind) : 0;
		if (!bytes || bytes > data_bytes - pos)
			break;
		pos += bytes;
	}
	*is_whole = is_zero(data + pos, data_bytes - pos);
	return pos;
}

/* Whether the record size of kernels is only assumed, from an older CUPTI version. */
static bool is_guess(const struct recovery *recovery)
{
	return recovery->crash_buffer->cupti_version >= XT_CUPTI_RECORD_VERSIONS_END &&
	       !recovery->crash_buffer->record_bytes[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL];
}

/*
 * Appends the records of an activity buffer to recovery->work. at_cupti: CUPTI had not completed
 * the buffer. False if the buffer is damaged. Sets recovery->error if out of memory.
 */
static bool recovery_take_buffer(struct recovery *recovery, const uint8_t *data, size_t data_bytes,
				 bool at_cupti)
{
	bool is_whole;
	size_t end = find_end(recovery, data, data_bytes, &is_whole);

	if (!is_whole && is_guess(recovery)) {
		recovery->out->areas_unknown++;
		return true;
	}
	for (size_t pos = 0; pos < end;) {
		struct recovery_work *work;
		uint32_t kind;

		kind = kind_at(data + pos);
		if (recovery->work_count >= RECOVERY_WORK_COUNT_MAX)
			return false;
		recovery->error =
			grow(recovery->work, recovery->work_capacity, recovery->work_count + 1);
		if (recovery->error)
			return true;
		if (bytes_needed[kind]) {
			work = &recovery->work[recovery->work_count++];
			*work = (struct recovery_work){.at_cupti = at_cupti};
			read_work(work, kind, data + pos, record_bytes(recovery, kind));
		}
		pos += record_bytes(recovery, kind);
	}
	/* If the buffer begins with zeros, it was being cleared: its records are in the log. */
	return is_whole || end == 0;
}

int recovery_open_crash_buffer(struct recovery *recovery, const char *path)
{
	struct xt_crash_buffer_header *header = calloc(1, sizeof(*header));
	struct stat status;
	int error;

	recovery->crash_buffer = header;
	if (!header)
		return -ENOMEM;
	recovery->crash_buffer_fd =
		open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (recovery->crash_buffer_fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(recovery->crash_buffer_fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EBADMSG;
	error = xt_read_at(recovery->crash_buffer_fd, header, sizeof(*header), 0);
	if (error)
		return error == -EIO ? -EBADMSG : error;
	if (memcmp(header->magic, XT_CRASH_BUFFER_MAGIC, sizeof(header->magic)) != 0 ||
	    header->version != XT_CRASH_BUFFER_VERSION || header->byte_order != XT_LOG_BYTE_ORDER)
		return -EBADMSG;
	return 0;
}

bool recovery_is_unused(const struct recovery *recovery)
{
	static const uint8_t zeroes[sizeof(recovery->crash_buffer->magic)];
	uint8_t magic[sizeof(zeroes)];
	struct stat status;
	ssize_t n;

	if (recovery->crash_buffer_fd < 0 || fstat(recovery->crash_buffer_fd, &status) ||
	    !S_ISREG(status.st_mode))
		return false;
	n = pread(recovery->crash_buffer_fd, magic, sizeof(magic), 0);
	return n >= 0 &&
	       (!memcmp(magic, zeroes, (size_t)n) ||
		(n == sizeof(magic) && !memcmp(magic, XT_CRASH_BUFFER_MAGIC, sizeof(magic))));
}

static const size_t record_bytes_min[] = {
	[XT_RECORD_CALL] = sizeof(struct xt_record_call),
	[XT_RECORD_STACK] = sizeof(struct xt_record_stack),
	[XT_RECORD_NODE] = sizeof(struct xt_record_node),
	[XT_RECORD_RANGE] = sizeof(struct xt_record_range),
	[XT_RECORD_SKIP] = sizeof(struct xt_record_skip),
	[XT_RECORD_SWITCH] = sizeof(struct xt_record_switch),
	[XT_RECORD_MODULE] = sizeof(struct xt_record_module),
	[XT_RECORD_SHUTDOWN_DROP] = sizeof(struct xt_record_skip),
	[XT_RECORD_AUTOGRAD] = sizeof(struct xt_record_autograd),
	[XT_RECORD_NODE_NAME] = sizeof(struct xt_record_node_name),
};

static bool is_right_stack(const struct xt_record_stack *stack)
{
	size_t module_bytes = xt_stack_modules_bytes(stack->frame_count);
	const uint16_t *modules;

	if (stack->stack_slot >= XT_STACK_SLOT_COUNT || stack->frame_count > XT_STACK_FRAMES_MAX ||
	    sizeof(*stack) + stack->frame_count * sizeof(uint64_t) + module_bytes >
		    stack->head.bytes)
		return false;
	modules = xt_stack_modules((struct xt_record_stack *)stack);
	for (uint32_t i = 0; i < stack->frame_count; i++)
		if (modules[i] >= XT_MODULE_SLOT_COUNT)
			return false;
	return true;
}

static bool is_right_module(const struct xt_record_module *module)
{
	return module->module_slot != XT_MODULE_SLOT_NONE &&
	       module->module_slot < XT_MODULE_SLOT_COUNT &&
	       module->build_id_bytes <= XT_MODULE_BUILD_ID_MAX &&
	       module->path_bytes <= XT_MODULE_PATH_MAX &&
	       module->head.bytes == xt_module_bytes(module->build_id_bytes, module->path_bytes);
}

static bool is_right_autograd(const struct xt_record_autograd *autograd)
{
	return autograd->slot < XT_AUTOGRAD_SLOT_COUNT &&
	       autograd->type_bytes <= XT_AUTOGRAD_TEXT_MAX &&
	       autograd->class_bytes <= XT_AUTOGRAD_TEXT_MAX &&
	       sizeof(*autograd) + autograd->type_bytes + autograd->class_bytes <=
		       autograd->head.bytes;
}

static bool is_right(const struct xt_record *record, uint64_t room)
{
	const struct xt_record_range *range = (const void *)record;
	size_t min;

	if (record->type >= sizeof(record_bytes_min) / sizeof(record_bytes_min[0]))
		return false;
	min = record_bytes_min[record->type];
	if (!min || min > record->bytes || record->bytes > room || record->bytes % 8)
		return false;
	if (record->type == XT_RECORD_STACK)
		return is_right_stack((const void *)record);
	if (record->type == XT_RECORD_MODULE)
		return is_right_module((const void *)record);
	if (record->type == XT_RECORD_AUTOGRAD)
		return is_right_autograd((const void *)record);
	if (record->type == XT_RECORD_RANGE)
		return range->text_bytes <= record->bytes - min;
	return true;
}

const struct xt_record *recovery_next_record(struct recovery_cursor *cursor)
{
	const struct xt_ring_header *header = &cursor->ring->header;

	while (!cursor->damaged && cursor->pos < header->write_pos) {
		const struct xt_record *record =
			(const void *)(cursor->ring->records + (cursor->pos - header->free_pos));
		uint64_t to_end = header->data_bytes - (cursor->pos & (header->data_bytes - 1));
		uint64_t committed = header->write_pos - cursor->pos;

		if (record->type == XT_RECORD_PAD && to_end <= committed) {
			cursor->pos += to_end;
			continue;
		}
		if (is_right(record, to_end < committed ? to_end : committed)) {
			cursor->pos += record->bytes;
			return record;
		}
		cursor->damaged = true;
	}
	return NULL;
}

static bool is_right_ring(const struct xt_ring_header *header, uint64_t room_bytes)
{
	return header->data_bytes == room_bytes && header->data_bytes <= RECOVERY_RING_BYTES_MAX &&
	       header->data_bytes >= 8 && !(header->data_bytes & (header->data_bytes - 1)) &&
	       header->free_pos % 8 == 0 && header->write_pos % 8 == 0 &&
	       header->free_pos <= header->write_pos &&
	       header->write_pos - header->free_pos <= header->data_bytes &&
	       header->thread_id < RECOVERY_THREAD_ID_MAX;
}

/*
 * Copies the records between the free and the write position. They may wrap around the end of the
 * ring.
 */
static int read_records(struct recovery *recovery, struct recovery_ring *ring, uint64_t data_offset)
{
	const struct xt_ring_header *header = &ring->header;
	uint64_t bytes = header->write_pos - header->free_pos;
	uint64_t place = header->free_pos & (header->data_bytes - 1);
	uint64_t first = header->data_bytes - place < bytes ? header->data_bytes - place : bytes;
	int error;

	recovery->kept_bytes += bytes;
	if (recovery->kept_bytes > RECOVERY_KEPT_BYTES_MAX)
		return -EIO;
	ring->records = malloc(bytes + 8);
	if (!ring->records)
		return -ENOMEM;
	error = xt_read_at(recovery->crash_buffer_fd, ring->records, first, data_offset + place);
	if (!error)
		error = xt_read_at(recovery->crash_buffer_fd, ring->records + first, bytes - first,
				   data_offset);
	return error;
}

/*
 * A returning call is removed from the open calls, counted, and committed, in this order. A call
 * that was counted but not committed is still stored after the open calls: treat it as open.
 */
static void reopen_returning_call(struct recovery_ring *ring)
{
	struct xt_ring_header *header = &ring->header;
	const uint64_t *counters = header->counters;
	uint64_t settled = counters[XT_RING_CALLS_COMMITTED] + counters[XT_RING_LOST_RING_FULL] +
			   counters[XT_RING_LOST_NESTED] + header->shutdown_drop_count;

	if (header->open_count == XT_RING_OPEN_CALLS_MAX ||
	    counters[XT_RING_CALLS_SEEN] - settled != 1 ||
	    header->open_calls[header->open_count].enter_ns < header->start_ns)
		return;
	header->open_count++;
	ring->is_last_returning = true;
}

static bool has_ring_of(const struct recovery *recovery, uint32_t thread_id)
{
	for (size_t i = 0; i < recovery->ring_count; i++)
		if (recovery->rings[i]->header.thread_id == thread_id)
			return true;
	return false;
}

/* -EIO: the ring is damaged. */
static int take_ring(struct recovery *recovery, const struct xt_crash_buffer_area *area)
{
	struct recovery_ring *ring;
	int error;

	if (area->bytes <= XT_RING_DATA_OFFSET)
		return -EIO;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	error = xt_read_at(recovery->crash_buffer_fd, &ring->header, sizeof(ring->header),
			   area->offset);
	for (int i = 0; i < XT_RING_COUNTERS && !error; i++)
		recovery->counters[i] += ring->header.counters[i];
	if (!error) {
		recovery->shutdown_drop_count += ring->header.shutdown_drop_count;
		recovery->size_drop_count += ring->header.size_drop_count;
	}
	if (!error && !ring->header.thread_id) {
		free(ring); /* no thread owns it */
		return 0;
	}
	if (!error && (!is_right_ring(&ring->header, area->bytes - XT_RING_DATA_OFFSET) ||
		       has_ring_of(recovery, ring->header.thread_id)))
		error = -EIO;
	if (!error)
		error = read_records(recovery, ring, area->offset + XT_RING_DATA_OFFSET);
	if (error) {
		free_all(ring->records, ring);
		return error;
	}
	if (ring->header.open_count > XT_RING_OPEN_CALLS_MAX) {
		ring->header.open_count = 0;
		recovery->out->areas_damaged++;
	}
	reopen_returning_call(ring);
	recovery->rings[recovery->ring_count++] = ring;
	return 0;
}

static int take_buffer(struct recovery *recovery, const struct xt_crash_buffer_area *area)
{
	struct xt_activity_header header;
	uint64_t bytes;
	uint8_t *data;
	int error;

	if (area->bytes <= XT_ACTIVITY_DATA_OFFSET)
		return -EIO;
	error = xt_read_at(recovery->crash_buffer_fd, &header, sizeof(header), area->offset);
	if (error)
		return error;
	if (header.state == XT_ACTIVITY_FREE || header.state == XT_ACTIVITY_IN_LOG)
		return 0;
	bytes = header.state == XT_ACTIVITY_COMPLETED ? header.valid_bytes : header.data_bytes;
	if (header.state > XT_ACTIVITY_IN_LOG || bytes > RECOVERY_BUFFER_BYTES_MAX ||
	    bytes > area->bytes - XT_ACTIVITY_DATA_OFFSET)
		return -EIO;
	data = malloc(bytes + 8);
	if (!data)
		return -ENOMEM;
	error = xt_read_at(recovery->crash_buffer_fd, data, bytes,
			   area->offset + XT_ACTIVITY_DATA_OFFSET);
	if (!error &&
	    !recovery_take_buffer(recovery, data, bytes, header.state == XT_ACTIVITY_AT_CUPTI))
		error = -EIO;
	free(data);
	return error;
}

static int add_name(struct recovery *recovery, const struct xt_crash_buffer_name *name)
{
	uint32_t key[3] = {name->of, (uint32_t)name->key, (uint32_t)(name->key >> 32)};
	uint32_t text, id;
	bool is_new;

	id = interner_id(&recovery->names, key, sizeof(key), &is_new);
	text = interner_id(&recovery->texts, name->text, name->text_bytes, &is_new);
	if (!id || !text ||
	    grow(recovery->name_texts, recovery->name_texts_capacity, (size_t)id + 1))
		return -ENOMEM;
	recovery->name_texts[id] = text;
	return 0;
}

static int take_names(struct recovery *recovery, const struct xt_crash_buffer_area *area)
{
	struct xt_names_header header;
	uint64_t pos = 0;
	uint8_t *data;
	int error;

	if (area->bytes <= XT_NAMES_DATA_OFFSET || area->bytes > RECOVERY_NAMES_BYTES_MAX)
		return -EIO;
	error = xt_read_at(recovery->crash_buffer_fd, &header, sizeof(header), area->offset);
	if (error)
		return error;
	recovery->kept_bytes += header.used_bytes;
	if (header.used_bytes > area->bytes - XT_NAMES_DATA_OFFSET ||
	    recovery->kept_bytes > RECOVERY_KEPT_BYTES_MAX)
		return -EIO;
	data = malloc(header.used_bytes + 8);
	if (!data)
		return -ENOMEM;
	error = xt_read_at(recovery->crash_buffer_fd, data, header.used_bytes,
			   area->offset + XT_NAMES_DATA_OFFSET);
	while (!error && header.used_bytes - pos >= sizeof(struct xt_crash_buffer_name)) {
		const struct xt_crash_buffer_name *name = (const void *)(data + pos);
		uint64_t bytes = (sizeof(*name) + (uint64_t)name->text_bytes + 7) & ~UINT64_C(7);

		if (name->text_bytes > RECOVERY_NAME_BYTES_MAX || bytes > header.used_bytes - pos)
			error = -EIO;
		else
			error = add_name(recovery, name);
		pos += bytes;
	}
	free(data);
	return error;
}

static int (*const takers[])(struct recovery *, const struct xt_crash_buffer_area *) = {
	[XT_AREA_RING] = take_ring,
	[XT_AREA_ACTIVITY] = take_buffer,
	[XT_AREA_NAMES] = take_names,
};

/*
 * Whether the area is inside the file, aligned, and overlaps neither the header nor an accepted
 * area.
 */
static bool is_right_area(const struct xt_crash_buffer_area *area,
			  const struct xt_crash_buffer_area *taken, size_t taken_count,
			  uint64_t file_bytes)
{
	if (area->kind >= sizeof(takers) / sizeof(takers[0]) ||
	    area->offset % XT_CRASH_BUFFER_PAGE_BYTES ||
	    area->offset < sizeof(struct xt_crash_buffer_header) || area->offset > file_bytes ||
	    area->bytes > file_bytes - area->offset)
		return false;
	for (size_t i = 0; i < taken_count; i++)
		if (area->offset < taken[i].offset + taken[i].bytes &&
		    taken[i].offset < area->offset + area->bytes)
			return false;
	return true;
}

int recovery_read_crash_buffer(struct recovery *recovery)
{
	struct xt_crash_buffer_header *header = recovery->crash_buffer;
	struct xt_crash_buffer_area *areas = header->areas; /* accepted areas move to the front */
	size_t taken_count = 0;
	struct stat status;
	uint32_t area_count = header->area_count;

	if (area_count > XT_CRASH_BUFFER_AREAS_MAX)
		area_count = XT_CRASH_BUFFER_AREAS_MAX;
	recovery->rings = calloc(area_count + 1, sizeof(*recovery->rings));
	if (!recovery->rings)
		return -ENOMEM;
	if (fstat(recovery->crash_buffer_fd, &status))
		return -errno;
	for (uint32_t i = 0; i < area_count; i++) {
		const struct xt_crash_buffer_area area = areas[i];
		int error = -EIO;

		if (area.kind == XT_AREA_NONE)
			continue;
		if (is_right_area(&area, areas, taken_count, (uint64_t)status.st_size)) {
			areas[taken_count++] = area;
			error = takers[area.kind](recovery, &area);
		}
		if (error == -ENOMEM)
			return error;
		recovery->out->areas_damaged += error != 0;
	}
	return 0;
}
