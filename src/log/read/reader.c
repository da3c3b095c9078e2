/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log chunk by chunk: checks headers, resynchronises after damage and counts what was
 * skipped. decode.c handles the content of chunks. Runs on the caller's thread. Holds one file
 * buffer and one decoded chunk, whatever the size of the log.
 */
#include "xtrace/reader.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "log/read/decode.h"
#include "log/read/expansion.h"
#include "log/read/source.h"
#include "log/read/tail.h"

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
	return NULL;
}

bool xt_reader_fetch(struct xt_reader *reader, uint32_t wanted_kinds, struct xt_chunk *chunk)
{
	const uint8_t *stored;

	while ((stored = find_chunk(reader, wanted_kinds, chunk))) {
		if (!xt_chunk_store(chunk, stored))
			return true;
		count_damaged(reader, &chunk->header);
	}
	return false;
}

void xt_reader_count(struct xt_reader *reader, const struct xt_chunk *chunk, bool is_intact)
{
	if (!is_intact) {
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
