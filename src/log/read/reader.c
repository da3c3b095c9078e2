/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log chunk by chunk: checks headers, resynchronises after damage and counts what was
 * skipped. decode.c handles the content of chunks. Runs on the caller's thread. Holds one file
 * buffer and one decoded chunk, whatever the size of the log.
 *
 * The file is read with pread(), never mapped: a mapped log that is truncated while it is read
 * kills the reader with SIGBUS.
 *
 * A chunk of a few dozen bytes can hold a million rows. Without limits, a log of a few kilobytes
 * could exhaust the reader's memory. Real logs stay far below the limits of
 * docs/internals/LOG_FORMAT.md: their rows take more than two bytes each.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/regular_file.h"
#include "log/read/decode.h"
#include "xtrace/log_format.h"
#include "xtrace/reader.h"

#define XT_LOG_LIMITS_VARIABLE "XTRACE_LOG_LIMITS" /* 0 disables the limits */

enum xt_expansion_unit {
	XT_EXPANSION_TABLE_ROWS, /* rows of kinds that a reader keeps in memory */
	XT_EXPANSION_TABLE_BYTES,
	XT_EXPANSION_ROWS, /* rows of all kinds */
	XT_EXPANSION_BYTES,
	XT_EXPANSION_UNITS
};

/* Zeros are the start of a log. */
struct xt_expansion {
	uint64_t amounts[XT_EXPANSION_UNITS];
	uint64_t log_bytes; /* up to the end of the last chunk */
};

#define STREAMED_KINDS                                                                             \
	(1u << XT_KIND_CALL | 1u << XT_KIND_KERNEL | 1u << XT_KIND_COPY | 1u << XT_KIND_SET |      \
	 1u << XT_KIND_CLOCK)

static const struct {
	const char *what;
	uint64_t base;
	uint64_t per_log_byte;
} limits[XT_EXPANSION_UNITS] = {
	[XT_EXPANSION_TABLE_ROWS] = {"table rows", 1u << 20, 4},
	[XT_EXPANSION_TABLE_BYTES] = {"bytes of tables", 1u << 24, 64},
	[XT_EXPANSION_ROWS] = {"rows", 1u << 23, 16},
	[XT_EXPANSION_BYTES] = {"bytes of rows", 1u << 28, 256},
};

static uint64_t limit_of(enum xt_expansion_unit unit, uint64_t log_bytes)
{
	return limits[unit].base + limits[unit].per_log_byte * log_bytes;
}

static bool exceeds(const struct xt_expansion *expansion, enum xt_expansion_unit unit)
{
	return expansion->amounts[unit] > limit_of(unit, expansion->log_bytes);
}

/* Adds a chunk of a known kind that ends at log_bytes. False if the log now exceeds a limit. */
static bool xt_expansion_add(struct xt_expansion *expansion, const struct xt_chunk_header *header,
			     uint64_t log_bytes)
{
	expansion->log_bytes = log_bytes;
	if (!(STREAMED_KINDS >> header->kind & 1)) {
		expansion->amounts[XT_EXPANSION_TABLE_ROWS] += header->row_count;
		expansion->amounts[XT_EXPANSION_TABLE_BYTES] += header->raw_bytes;
	}
	expansion->amounts[XT_EXPANSION_ROWS] += header->row_count;
	expansion->amounts[XT_EXPANSION_BYTES] += header->raw_bytes;
	for (int unit = 0; unit < XT_EXPANSION_UNITS; unit++)
		if (exceeds(expansion, unit))
			return false;
	return true;
}

/* Describes the exceeded limit for an error message. */
static void xt_expansion_put(char *out, size_t out_bytes, const struct xt_expansion *expansion)
{
	int unit = 0;

	while (unit < XT_EXPANSION_UNITS - 1 && !exceeds(expansion, unit))
		unit++;
	snprintf(out, out_bytes,
		 "its first %llu bytes expand to %llu %s, the limit is %llu; xtrace does not "
		 "write such logs. To read it nevertheless, set " XT_LOG_LIMITS_VARIABLE "=0",
		 (unsigned long long)expansion->log_bytes,
		 (unsigned long long)expansion->amounts[unit], limits[unit].what,
		 (unsigned long long)limit_of(unit, expansion->log_bytes));
}

struct xt_source {
	int fd; /* -1: memory */
	bool owns_fd;
	const uint8_t *memory;
	uint64_t total_bytes; /* at the last check: the file may grow or shrink */
	uint8_t *buffer;
	size_t buffer_capacity;
	uint64_t buffer_offset; /* file offset of buffer[0] */
	size_t buffer_bytes;
	bool lacks_memory; /* for the buffer, at some time */
};

/* Large enough that a system call is cheap compared with decoding what it read. */
#define BUFFER_BYTES_MIN (1u << 20)

/* Read after a gap. A reader that skips chunks needs only the header of the next one. */
#define AFTER_GAP_BYTES (16u << 10)

static int look_at_size(struct xt_source *source)
{
	struct stat status;
	int error = xt_regular_check(source->fd, &status);

	if (!error)
		source->total_bytes = (uint64_t)status.st_size;
	return error;
}

/* Reads from fd, which the caller still owns. 0 or -errno. */
static int xt_source_open_fd(struct xt_source *source, int fd)
{
	*source = (struct xt_source){.fd = fd};
	return look_at_size(source);
}

/* 0 or -errno. Accepts regular files only (-EISDIR, -ESPIPE). Never blocks. */
static int xt_source_open(struct xt_source *source, const char *path)
{
	struct stat status;
	int fd = xt_regular_open(path, &status);

	*source = (struct xt_source){.fd = -1};
	if (fd < 0)
		return fd;
	*source = (struct xt_source){
		.fd = fd, .owns_fd = true, .total_bytes = (uint64_t)status.st_size};
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

static void xt_source_open_memory(struct xt_source *source, const void *data, size_t data_bytes)
{
	*source = (struct xt_source){.fd = -1, .memory = data, .total_bytes = data_bytes};
}

/* Accepts zeros. */
static void xt_source_close(struct xt_source *source)
{
	if (source->owns_fd)
		close(source->fd);
	free(source->buffer);
	*source = (struct xt_source){.fd = -1};
}

static bool reserve(struct xt_source *source, size_t want)
{
	size_t capacity = want > BUFFER_BYTES_MIN ? want : BUFFER_BYTES_MIN;
	uint8_t *grown;

	if (capacity <= source->buffer_capacity)
		return true;
	grown = realloc(source->buffer, capacity);
	if (!grown) {
		source->lacks_memory = true;
		return false;
	}
	source->buffer = grown;
	source->buffer_capacity = capacity;
	return true;
}

/* Moves the buffer's window to `offset` and keeps the data it already has. */
static void slide(struct xt_source *source, uint64_t offset)
{
	uint64_t end = source->buffer_offset + source->buffer_bytes;
	size_t kept = 0;

	if (offset >= source->buffer_offset && offset < end) {
		kept = (size_t)(end - offset);
		memmove(source->buffer, source->buffer + (offset - source->buffer_offset), kept);
	}
	source->buffer_offset = offset;
	source->buffer_bytes = kept;
}

/* Reads on until the buffer has `want` bytes, and up to `most`. */
static void fill(struct xt_source *source, size_t want, size_t most)
{
	while (source->buffer_bytes < want) {
		ssize_t got = pread(source->fd, source->buffer + source->buffer_bytes,
				    most - source->buffer_bytes,
				    (off_t)(source->buffer_offset + source->buffer_bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		source->buffer_bytes += (size_t)got;
	}
}

/*
 * Returns the bytes from `offset` on: at least `want` bytes, unless the file ends, memory is short
 * or a read fails. *have_out is their number. Valid until the next call.
 */
static const uint8_t *xt_source_view(struct xt_source *source, uint64_t offset, size_t want,
				     size_t *have_out)
{
	uint64_t end = source->buffer_offset + source->buffer_bytes;
	size_t most;

	*have_out = 0;
	if (source->fd < 0) {
		if (offset >= source->total_bytes)
			return NULL;
		*have_out = (size_t)(source->total_bytes - offset);
		return source->memory + offset;
	}
	if (offset < source->buffer_offset || offset > end || end - offset < want) {
		if (offset > INT64_MAX - want || !reserve(source, want))
			return NULL;
		most = source->buffer_capacity;
		if (offset > end && want < AFTER_GAP_BYTES)
			most = AFTER_GAP_BYTES;
		slide(source, offset);
		fill(source, want, most);
	}
	*have_out = source->buffer_bytes - (size_t)(offset - source->buffer_offset);
	return source->buffer + (offset - source->buffer_offset);
}

/* Reads from the file again: a writer may have replaced bytes at its end. */
static void xt_source_forget(struct xt_source *source)
{
	source->buffer_bytes = 0;
}

/* The current size of the file. */
static uint64_t xt_source_total(struct xt_source *source)
{
	if (source->fd >= 0)
		look_at_size(source);
	return source->total_bytes;
}

/* Whether the file reaches end_offset. Checks the file's size again before it returns false. */
static bool xt_source_reaches(struct xt_source *source, uint64_t end_offset)
{
	return end_offset <= source->total_bytes || end_offset <= xt_source_total(source);
}

#define LOG_HEADER_BYTES_MAX 4096 /* a later minor version may append fields */

#define FOLLOW_SEARCH_BYTES (UINT64_C(64) << 20)

struct xt_reader {
	struct xt_source source;
	struct xt_log_header header;
	struct xt_damage damage;
	struct xt_chunk chunk;
	uint64_t position;	  /* of the next chunk header */
	uint64_t intact_end;	  /* end of the last intact chunk */
	uint64_t cut_at;	  /* the log ends there; 0: at the end of the file */
	uint32_t intact_sequence; /* sequence number after that chunk */
	uint64_t next_sequence;	  /* 64 bits: a malicious number must not wrap into a small gap */
	struct xt_expansion expansion;
	bool has_limits;
	bool refused;
	bool ended;
	bool is_following;    /* must not search for long at once */
	bool ended_in_debris; /* the file ends in data without a valid chunk header */
	uint64_t tail_bytes;  /* counted as skipped at the end, but may be part of a later chunk */
};

static enum xt_open_error read_header(struct xt_reader *reader)
{
	struct xt_log_header *header = &reader->header;
	size_t have;
	const uint8_t *p = xt_source_view(&reader->source, 0, sizeof(*header), &have);

	if (!have && !xt_source_total(&reader->source))
		return XT_OPEN_EMPTY;
	if (reader->source.lacks_memory) {
		errno = ENOMEM;
		return XT_OPEN_ERRNO;
	}
	if (have < sizeof(*header) || memcmp(p, XT_LOG_MAGIC, sizeof(header->magic)) != 0)
		return XT_OPEN_NOT_A_LOG;
	memcpy(header, p, sizeof(*header));
	/* Check the version first: a newer header may store its checksum elsewhere. */
	if (header->byte_order == __builtin_bswap32(XT_LOG_BYTE_ORDER))
		return XT_OPEN_BYTE_ORDER;
	if (header->byte_order != XT_LOG_BYTE_ORDER)
		return XT_OPEN_BAD_HEADER;
	if (header->version_major > XT_LOG_VERSION_MAJOR)
		return XT_OPEN_NEWER;
	if (header->check != xt_check32(header, offsetof(struct xt_log_header, check)) ||
	    header->version_major == 0 || header->header_bytes < sizeof(*header) ||
	    header->header_bytes > LOG_HEADER_BYTES_MAX)
		return XT_OPEN_BAD_HEADER;
	if (header->machine != XT_MACHINE_UNSTATED && header->machine != XT_MACHINE_X86_64 &&
	    header->machine != XT_MACHINE_AARCH64)
		return XT_OPEN_MACHINE;
	reader->position = header->header_bytes;
	reader->intact_end = header->header_bytes;
	return XT_OPEN_OK;
}

static bool has_limits(void)
{
	const char *value = getenv(XT_LOG_LIMITS_VARIABLE);

	return !value || strcmp(value, "0") != 0;
}

/* Takes ownership of the opened source, even on failure. */
static enum xt_open_error open_source(struct xt_source *source, struct xt_reader **reader_out)
{
	struct xt_reader *reader = calloc(1, sizeof(*reader));
	enum xt_open_error error;

	if (!reader) {
		xt_source_close(source);
		errno = ENOMEM;
		return XT_OPEN_ERRNO;
	}
	reader->source = *source;
	reader->has_limits = has_limits();
	error = read_header(reader);
	if (error) {
		xt_reader_close(reader);
		return error;
	}
	*reader_out = reader;
	return XT_OPEN_OK;
}

enum xt_open_error xt_reader_open(const char *path, struct xt_reader **reader_out)
{
	struct xt_source source;
	int error = xt_source_open(&source, path);

	*reader_out = NULL;
	if (error) {
		errno = -error;
		return XT_OPEN_ERRNO;
	}
	return open_source(&source, reader_out);
}

enum xt_open_error xt_reader_open_fd(int fd, struct xt_reader **reader_out)
{
	struct xt_source source;
	int error = xt_source_open_fd(&source, fd);

	*reader_out = NULL;
	if (error) {
		errno = -error;
		return XT_OPEN_ERRNO;
	}
	return open_source(&source, reader_out);
}

enum xt_open_error xt_reader_open_memory(const void *data, size_t data_bytes,
					 struct xt_reader **reader_out)
{
	struct xt_source source;

	*reader_out = NULL;
	xt_source_open_memory(&source, data, data_bytes);
	return open_source(&source, reader_out);
}

void xt_reader_close(struct xt_reader *reader)
{
	if (!reader)
		return;
	xt_source_close(&reader->source);
	xt_chunk_release(&reader->chunk);
	free(reader);
}

const struct xt_log_header *xt_reader_header(const struct xt_reader *reader)
{
	return &reader->header;
}

const struct xt_damage *xt_reader_damage(const struct xt_reader *reader)
{
	return &reader->damage;
}

bool xt_reader_refused(const struct xt_reader *reader, char why[XT_REFUSAL_BYTES])
{
	if (reader->refused)
		xt_expansion_put(why, XT_REFUSAL_BYTES, &reader->expansion);
	return reader->refused;
}

uint64_t xt_reader_event_rows(const struct xt_reader *reader)
{
	return reader->expansion.amounts[XT_EXPANSION_ROWS] -
	       reader->expansion.amounts[XT_EXPANSION_TABLE_ROWS];
}

void xt_reader_position(const struct xt_reader *reader, uint64_t *done_bytes, uint64_t *total_bytes)
{
	uint64_t total = reader->source.total_bytes;

	*total_bytes = total;
	*done_bytes = reader->position < total ? reader->position : total;
}

void xt_reader_cut(struct xt_reader *reader, uint64_t end_offset)
{
	reader->cut_at = end_offset;
}

struct xt_log_tail xt_reader_tail(const struct xt_reader *reader)
{
	return (struct xt_log_tail){
		.end_offset = reader->intact_end,
		.sequence = (uint32_t)reader->next_sequence + reader->ended_in_debris,
		.intact_sequence = reader->intact_sequence,
	};
}

static bool header_is_right(const uint8_t *p)
{
	const uint32_t magic = XT_CHUNK_MAGIC;
	uint32_t check;

	if (memcmp(p, &magic, sizeof(magic)) != 0)
		return false;
	memcpy(&check, p + offsetof(struct xt_chunk_header, check), sizeof(check));
	return check == xt_check32(p, offsetof(struct xt_chunk_header, check));
}

/*
 * Finds the next valid chunk header at or after the position and moves the position there. Counts
 * the bytes it skips. False at the end of the file.
 */
static bool find_header(struct xt_reader *reader, struct xt_chunk_header *header)
{
	const uint8_t first = XT_CHUNK_MAGIC & 0xff;
	uint64_t start = reader->position;
	bool searching = false;

	for (;;) {
		size_t have, at = 0;
		const uint8_t *p =
			xt_source_view(&reader->source, reader->position, sizeof(*header), &have);

		/* The next call continues here. */
		if (reader->is_following && reader->position - start >= FOLLOW_SEARCH_BYTES)
			return false;
		if (have < sizeof(*header)) {
			reader->damage.bytes_skipped += have;
			reader->tail_bytes = have;
			/* Second condition: the file was longer when the last chunk was read. */
			if ((have > 0 && !searching) ||
			    xt_source_total(&reader->source) < reader->position)
				reader->damage.truncated = true;
			reader->ended_in_debris = have > 0 || searching;
			return false;
		}
		while (have - at >= sizeof(*header)) {
			const uint8_t *hit = memchr(p + at, first, have - sizeof(*header) - at + 1);

			at = hit ? (size_t)(hit - p) : have - sizeof(*header) + 1;
			if (hit && header_is_right(hit)) {
				memcpy(header, hit, sizeof(*header));
				reader->position += at;
				reader->damage.bytes_skipped += at;
				return true;
			}
			at += hit != NULL;
		}
		searching = true;
		reader->position += at;
		reader->damage.bytes_skipped += at;
	}
}

static void note_sequence(struct xt_reader *reader, uint32_t sequence)
{
	if (sequence > reader->next_sequence)
		reader->damage.chunks_missing += sequence - reader->next_sequence;
	reader->next_sequence = (uint64_t)sequence + 1;
}

/*
 * Counts a chunk that ends at that offset. A reader that unpacks on several threads learns late
 * whether a chunk is intact, after it has passed chunks behind it.
 */
static void count_intact(struct xt_reader *reader, const struct xt_chunk_header *header,
			 uint64_t end_offset)
{
	if (end_offset <= reader->intact_end)
		return;
	reader->intact_end = end_offset;
	reader->intact_sequence = header->sequence + 1;
	reader->damage.closed = header->kind == XT_KIND_END;
}

static void count_damaged(struct xt_reader *reader, const struct xt_chunk_header *header)
{
	reader->damage.bytes_skipped += sizeof(*header) + (uint64_t)header->stored_bytes;
	reader->damage.chunks_damaged++;
	if (header->kind < XT_KIND_COUNT)
		reader->damage.damaged_by_kind[header->kind]++;
}

static void end_in_chunk(struct xt_reader *reader)
{
	uint64_t total = reader->source.total_bytes;

	reader->tail_bytes = total > reader->position ? total - reader->position : 0;
	reader->damage.bytes_skipped += reader->tail_bytes;
	reader->damage.truncated = true;
	reader->ended = true;
}

/* Stops before an intact chunk that would make the log expand beyond the limits. */
static bool refuse(struct xt_reader *reader, const struct xt_chunk_header *header)
{
	uint64_t end = reader->position + sizeof(*header) + header->stored_bytes;

	/* A chunk beyond the chunk limits is damaged and is skipped. */
	if (header->row_count > XT_CHUNK_ROWS_MAX || header->raw_bytes > XT_CHUNK_RAW_BYTES_MAX)
		return false;
	if (xt_expansion_add(&reader->expansion, header, end) || !reader->has_limits)
		return false;
	reader->damage.bytes_skipped += reader->source.total_bytes - reader->position;
	reader->refused = reader->ended = true;
	return true;
}

/* Returns the content of the chunk that ends at the position, or NULL if it is damaged. */
static const uint8_t *view_stored(struct xt_reader *reader, const struct xt_chunk_header *header)
{
	const uint8_t *stored = NULL;
	size_t have = 0;

	if (header->stored_bytes <= XT_CHUNK_STORED_BYTES_MAX)
		stored = xt_source_view(&reader->source, reader->position - header->stored_bytes,
					header->stored_bytes, &have);
	return have < header->stored_bytes ? NULL : stored;
}

/*
 * Moves the position behind the next wanted chunk. Returns its content, which is valid until the
 * next access to the source, or NULL at the end of the log.
 */
static const uint8_t *find_chunk(struct xt_reader *reader, uint32_t wanted_kinds,
				 struct xt_chunk *chunk)
{
	struct xt_chunk_header *header = &chunk->header;

	while (!reader->ended) {
		const uint8_t *stored;
		uint64_t end_offset;
		bool is_known;

		if ((reader->cut_at && reader->position >= reader->cut_at) ||
		    !find_header(reader, header)) {
			reader->ended = true;
			break;
		}
		note_sequence(reader, header->sequence);
		end_offset = reader->position + sizeof(*header) + header->stored_bytes;
		if (!xt_source_reaches(&reader->source, end_offset)) {
			end_in_chunk(reader);
			break;
		}
		is_known = header->kind && header->kind < XT_KIND_COUNT;
		reader->damage.chunks_unknown += !is_known;
		if (is_known && refuse(reader, header))
			break;
		reader->position = chunk->end_offset = end_offset;
		if (!is_known || (wanted_kinds && !(wanted_kinds & (1u << header->kind)))) {
			count_intact(reader, header, end_offset);
			continue;
		}
		stored = view_stored(reader, header);
		if (stored)
			return stored;
		count_damaged(reader, header);
	}
	reader->damage.lacks_memory |= reader->source.lacks_memory;
	return NULL;
}

bool xt_reader_fetch(struct xt_reader *reader, uint32_t wanted_kinds, struct xt_chunk *chunk)
{
	const uint8_t *stored;

	while ((stored = find_chunk(reader, wanted_kinds, chunk))) {
		if (!xt_chunk_store(chunk, stored))
			return true;
		reader->damage.lacks_memory = true;
		count_damaged(reader, &chunk->header);
	}
	return false;
}

void xt_reader_count(struct xt_reader *reader, const struct xt_chunk *chunk, bool is_intact)
{
	if (!is_intact) {
		reader->damage.lacks_memory |= chunk->lacks_memory;
		count_damaged(reader, &chunk->header);
		return;
	}
	count_intact(reader, &chunk->header, chunk->end_offset);
	reader->damage.chunks_read++;
}

bool xt_reader_read(struct xt_reader *reader, uint32_t wanted_kinds, struct xt_chunk *chunk)
{
	const uint8_t *stored;

	while ((stored = find_chunk(reader, wanted_kinds, chunk))) {
		bool is_intact = !xt_chunk_unpack(chunk, stored);

		xt_reader_count(reader, chunk, is_intact);
		if (is_intact)
			return true;
	}
	return false;
}

const struct xt_chunk *xt_reader_next(struct xt_reader *reader, uint32_t wanted_kinds)
{
	return xt_reader_read(reader, wanted_kinds, &reader->chunk) ? &reader->chunk : NULL;
}

bool xt_reader_follow(struct xt_reader *reader)
{
	if (reader->refused || xt_source_total(&reader->source) < reader->position)
		return false;
	reader->is_following = true;
	if (!reader->ended)
		return true;
	reader->ended = false;
	reader->damage.truncated = false;
	reader->damage.bytes_skipped -= reader->tail_bytes;
	reader->tail_bytes = 0;
	xt_source_forget(&reader->source);
	return true;
}
