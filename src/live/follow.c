/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compacted log has copies of the newest chunks of the old one, then new chunks. To find where to
 * continue, the last counted chunk of each kind of event is recognised by its content. A first pass
 * over the new log looks for these chunks, and a second pass skips all chunks up to them. A kind
 * whose last chunk is not found has only new chunks.
 */
#include "live/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/hash_table.h"
#include "log/base/monotonic.h"
#include "log/read/tail.h"

#define HASHED_ROWS 64 /* more are not needed to tell chunks apart */

/* Recognises a chunk. */
struct fingerprint {
	uint32_t row_count; /* 0: no chunk */
	uint64_t hash;
};

struct place {
	struct fingerprint last; /* the last chunk that was counted */
	uint64_t seen_count;	 /* chunks of this kind in this file so far */
	uint64_t skip_count;	 /* chunks to skip from the start of this file */
};

struct live_log {
	char *path;
	int fd;
	struct stat status; /* of fd */
	struct xt_reader *reader;
	struct xt_log_header header;
	struct live_totals totals;
	struct live_hot hot;
	bool is_ranked;
	struct place places[XT_KIND_COUNT];
	uint64_t damaged_before; /* in earlier files */
	bool is_searching;	 /* first pass over a log that replaced another */
	bool is_current;
};

/* Columns that together differ between any two chunks of a kind. */
static const unsigned hashed_columns[XT_KIND_COUNT][2] = {
	[XT_KIND_CALL] = {XT_CALL_CORRELATION, XT_CALL_ENTER_NS},
	[XT_KIND_KERNEL] = {XT_KERNEL_CORRELATION, XT_KERNEL_START_NS},
	[XT_KIND_COPY] = {XT_COPY_CORRELATION, XT_COPY_START_NS},
	[XT_KIND_SET] = {XT_SET_CORRELATION, XT_SET_START_NS},
	[XT_KIND_MEMORY] = {XT_MEMORY_ADDRESS, XT_MEMORY_TIME_NS},
};

static struct fingerprint fingerprint_of(const struct xt_chunk *chunk)
{
	struct fingerprint fingerprint = {.row_count = xt_chunk_rows(chunk)};
	size_t rows = fingerprint.row_count < HASHED_ROWS ? fingerprint.row_count : HASHED_ROWS;

	for (unsigned c = 0; c < 2; c++) {
		unsigned column = hashed_columns[xt_chunk_kind(chunk)][c];
		uint32_t hash = xt_hash_bytes(xt_chunk_u64(chunk, column), rows * sizeof(uint64_t));

		fingerprint.hash = fingerprint.hash << 32 | hash;
	}
	return fingerprint;
}

static bool is_event(enum xt_kind kind)
{
	return live_totals_event_kinds() >> kind & 1;
}

static void search_chunk(struct live_log *log, const struct xt_chunk *chunk)
{
	struct place *place = &log->places[xt_chunk_kind(chunk)];
	struct fingerprint fingerprint = fingerprint_of(chunk);

	place->seen_count++;
	if (fingerprint.row_count == place->last.row_count && fingerprint.hash == place->last.hash)
		place->skip_count = place->seen_count;
}

static int add_chunk(struct live_log *log, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	struct place *place = &log->places[kind];

	if (is_event(kind)) {
		if (++place->seen_count <= place->skip_count)
			return 0;
		place->last = fingerprint_of(chunk);
	}
	return log->is_ranked && live_hot_add(&log->hot, chunk)
		       ? -ENOMEM
		       : live_totals_add(&log->totals, chunk);
}

/* Starts to read the file of fd from its beginning. */
static int open_reader(struct live_log *log)
{
	enum xt_open_error error;

	xt_reader_close(log->reader);
	error = xt_reader_open_fd(log->fd, &log->reader);
	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		log->places[k].seen_count = 0;
	if (error == XT_OPEN_ERRNO)
		return -errno;
	return error ? -EBADMSG : 0;
}

static int open_file(const char *path, struct stat *status)
{
	/* The directory may belong to another user: neither follow a link nor wait for a FIFO. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (!fstat(fd, status))
		return fd;
	close(fd);
	return -errno;
}

int live_log_open(struct live_log **log_out, const char *path, const struct live_namer *namer)
{
	struct live_log *log = calloc(1, sizeof(*log));
	int error = -ENOMEM;

	*log_out = NULL;
	if (!log)
		return error;
	log->fd = -1;
	log->is_ranked = namer != NULL;
	if (namer)
		log->hot.namer = *namer;
	log->path = strdup(path);
	if (!log->path)
		goto fail;
	error = log->fd = open_file(path, &log->status);
	if (error < 0)
		goto fail;
	error = open_reader(log);
	if (error)
		goto fail;
	log->header = *xt_reader_header(log->reader);
	*log_out = log;
	return 0;
fail:
	live_log_close(log);
	return error;
}

/* Whether the name now belongs to another file. A deleted log is followed to its end. */
static bool is_replaced(const struct live_log *log)
{
	struct stat status;

	return !lstat(log->path, &status) &&
	       (status.st_ino != log->status.st_ino || status.st_dev != log->status.st_dev);
}

static uint64_t damaged_in_file(const struct live_log *log)
{
	const struct xt_damage *damage = log->reader ? xt_reader_damage(log->reader) : NULL;

	return damage ? damage->chunks_damaged + damage->chunks_missing : 0;
}

/* Continues in the file that has the log's name now. */
static int switch_file(struct live_log *log)
{
	struct stat status;
	int error, fd = open_file(log->path, &status);

	if (fd < 0)
		return fd;
	log->damaged_before += damaged_in_file(log);
	close(log->fd);
	log->fd = fd;
	log->status = status;
	error = open_reader(log);
	if (error)
		return error;
	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		log->places[k].skip_count = 0;
	log->is_searching = true;
	return xt_reader_header(log->reader)->log_id == log->header.log_id ? 0 : -ESTALE;
}

/* Reads up to the end of this file. Returns 0, 1 if the time is over, or -errno. */
static int read_file(struct live_log *log, uint64_t until_ns)
{
	uint32_t kinds = log->is_searching
				 ? live_totals_event_kinds()
				 : live_totals_kinds() | (log->is_ranked ? live_hot_kinds() : 0);
	const struct xt_chunk *chunk;
	char why[XT_REFUSAL_BYTES];
	int error = 0;

	while (!error && (chunk = xt_reader_next(log->reader, kinds))) {
		if (log->is_searching)
			search_chunk(log, chunk);
		else
			error = add_chunk(log, chunk);
		if (!error && monotonic_ns() >= until_ns)
			return 1;
	}
	if (!error && xt_reader_refused(log->reader, why))
		return -EFBIG;
	return error;
}

int live_log_read(struct live_log *log, uint64_t budget_ns)
{
	uint64_t until_ns = monotonic_ns() + budget_ns;
	int outcome;

	for (;;) {
		/* Before reading: after a replacement, nothing more is written to this file. */
		bool was_replaced = is_replaced(log);

		/* A file that was cut is read again, like one that replaced it. */
		outcome =
			xt_reader_follow(log->reader) ? read_file(log, until_ns) : switch_file(log);
		if (outcome)
			return outcome;
		if (log->is_searching) {
			outcome = open_reader(log);
			log->is_searching = false;
		} else if (was_replaced) {
			outcome = switch_file(log);
		} else {
			log->is_current = true;
			return 0;
		}
		if (outcome)
			return outcome;
	}
}

void live_log_advance(struct live_log *log, bool is_running)
{
	if (is_running)
		live_totals_advance(&log->totals);
	else
		live_totals_finish(&log->totals);
}

bool live_log_is_current(const struct live_log *log)
{
	return log->is_current;
}

const struct live_totals *live_log_totals(const struct live_log *log)
{
	return &log->totals;
}

struct live_hot *live_log_hot(struct live_log *log)
{
	return log->is_ranked ? &log->hot : NULL;
}

const struct xt_log_header *live_log_header(const struct live_log *log)
{
	return &log->header;
}

uint64_t live_log_damaged_count(const struct live_log *log)
{
	return log->damaged_before + damaged_in_file(log);
}

void live_log_close(struct live_log *log)
{
	if (!log)
		return;
	xt_reader_close(log->reader);
	if (log->fd >= 0)
		close(log->fd);
	live_totals_free(&log->totals);
	live_hot_free(&log->hot);
	free(log->path);
	free(log);
}
