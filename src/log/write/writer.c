/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns tables into chunks and writes them. In the traced process this runs on the writer thread.
 * It allocates only while its buffers grow to their working size, and never prints. After a failed
 * write the file is complete up to its last intact chunk.
 */
#include "log/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "log/write/compact.h"
#include "log/read/decode.h"
#include "log/write/writer_state.h"

#define LOGS_OF_ONE_PID_MAX 100 /* then the log's id becomes part of its name */

#define COMPRESSION_LEVEL 1 /* differences gain little from higher levels, which cost CPU time */

#define CUT_COST_BYTES 16 /* upper bound of zstd's cost for a new block */

static int grow(uint8_t **buffer, size_t *capacity, size_t want)
{
	size_t bytes = *capacity * 2 > want ? *capacity * 2 : want;
	uint8_t *grown;

	if (want <= *capacity)
		return 0;
	grown = realloc(*buffer, bytes);
	if (!grown)
		return -ENOMEM;
	*buffer = grown;
	*capacity = bytes;
	return 0;
}

static struct xt_writer *writer_new(void)
{
	struct xt_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->file = XT_GUARDED_FD_NONE;
	writer->cctx = ZSTD_createCCtx();
	if (!writer->cctx ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->cctx, ZSTD_c_compressionLevel,
						COMPRESSION_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->cctx, ZSTD_c_contentSizeFlag, 1)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->cctx, ZSTD_c_checksumFlag, 1))) {
		xt_writer_close(writer);
		return NULL;
	}
	return writer;
}

static int open_own(struct xt_guarded_fd *file, const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	return fd < 0 ? -errno : xt_guarded_fd_take(file, fd);
}

int xt_writer_create(const char *path, struct xt_log_header *header, struct xt_writer **writer_out)
{
	struct xt_writer *writer = writer_new();
	int error = -ENOMEM;

	*writer_out = NULL;
	if (!writer || grow(&writer->pending, &writer->pending_capacity, sizeof(*header)))
		goto fail;
	writer->path = strdup(path);
	if (!writer->path)
		goto fail;
	error = open_own(&writer->file, path,
			 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	if (error)
		goto fail;
	log_file_lock(writer->file.fd);

	memcpy(header->magic, XT_LOG_MAGIC, sizeof(header->magic));
	header->version_major = XT_LOG_VERSION_MAJOR;
	header->version_minor = XT_LOG_VERSION_MINOR;
	header->byte_order = XT_LOG_BYTE_ORDER;
	header->header_bytes = sizeof(*header);
	header->check = xt_check32(header, offsetof(struct xt_log_header, check));
	writer->header = *header;
	memcpy(writer->pending, header, sizeof(*header));
	writer->pending_bytes = sizeof(*header);
	*writer_out = writer;
	return 0;
fail:
	xt_writer_close(writer);
	return error;
}

/* Host names may contain characters that file names must not. */
static void host_name(char *out, size_t out_bytes)
{
	if (gethostname(out, out_bytes) || !out[0])
		snprintf(out, out_bytes, "localhost");
	out[out_bytes - 1] = '\0';
	for (char *c = out; *c; c++)
		if (*c == '/' || (unsigned char)*c <= ' ')
			*c = '_';
}

int xt_writer_create_new(char *path, const char *data_dir, const char *ending,
			 struct xt_log_header *header, struct xt_writer **writer_out)
{
	char host[256];
	int error = -EEXIST;

	host_name(host, sizeof(host));
	if (getrandom(&header->log_id, sizeof(header->log_id), 0) != sizeof(header->log_id))
		header->log_id = header->start_monotonic_ns << 20 ^ header->pid;
	/* exec() keeps the pid; each program image gets its own log. */
	for (int image = 1; error == -EEXIST && image <= LOGS_OF_ONE_PID_MAX; image++) {
		char suffix[24] = "";

		/* In containers, programs get the same few pids each time. */
		if (image == LOGS_OF_ONE_PID_MAX)
			snprintf(suffix, sizeof(suffix), "-%016llx",
				 (unsigned long long)header->log_id);
		else if (image > 1)
			snprintf(suffix, sizeof(suffix), "-%d", image);
		if (snprintf(path, PATH_MAX, "%s/%s.%u%s%s", data_dir, host, header->pid, suffix,
			     ending) >= PATH_MAX)
			return -ENAMETOOLONG;
		error = xt_writer_create(path, header, writer_out);
	}
	return error;
}

/* Finds the end of the log in fd. Reads the whole file, because only that shows what is intact. */
static int find_tail(int fd, struct xt_log_header *header, struct xt_log_tail *tail)
{
	struct xt_reader *reader;
	enum xt_open_error error = xt_reader_open_fd(fd, &reader);
	char why[XT_REFUSAL_BYTES];
	bool is_refused;

	if (error)
		return error == XT_OPEN_ERRNO ? -errno : -EBADMSG;
	while (xt_reader_next(reader, 0))
		;
	*header = *xt_reader_header(reader);
	*tail = xt_reader_tail(reader);
	is_refused = xt_reader_refused(reader, why);
	xt_reader_close(reader);
	/* The reader stopped early, so the tail is unknown. Do not cut anything off. */
	return is_refused ? -EFBIG : 0;
}

static int cut(int fd, uint64_t file_bytes)
{
	int error;

	do
		error = ftruncate(fd, (off_t)file_bytes) ? -errno : 0;
	while (error == -EINTR);
	return error;
}

static int open_to_append(const char *path, bool has_tail, struct xt_writer **writer_out)
{
	struct xt_writer *writer = writer_new();
	struct xt_log_tail tail = {0};
	int error = -ENOMEM;

	*writer_out = NULL;
	if (!writer)
		goto fail;
	error = open_own(&writer->file, path,
			 O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (!error)
		error = log_file_lock(writer->file.fd);
	if (!error)
		error = find_tail(writer->file.fd, &writer->header, &tail);
	if (!error)
		error = cut(writer->file.fd, tail.end_offset);
	if (error)
		goto fail;
	writer->file_bytes = tail.end_offset;
	writer->sequence = has_tail ? tail.intact_sequence : tail.sequence;
	*writer_out = writer;
	return 0;
fail:
	xt_writer_close(writer);
	return error;
}

int xt_writer_append(const char *path, struct xt_writer **writer_out)
{
	return open_to_append(path, false, writer_out);
}

int xt_writer_resume(const char *path, struct xt_writer **writer_out)
{
	return open_to_append(path, true, writer_out);
}

/*
 * Compresses `raw` into one frame, with a block for each part between two cuts, so that each part
 * gets its own entropy tables. Returns the frame's size, or 0 if out of memory.
 */
static size_t compress(struct xt_writer *writer, size_t raw_bytes, const struct xt_cuts *cuts,
		       uint8_t *frame, size_t frame_capacity)
{
	ZSTD_outBuffer out = {frame, frame_capacity, 0};
	size_t left = ZSTD_CCtx_setPledgedSrcSize(writer->cctx, raw_bytes);

	for (uint32_t c = 0, begin = 0; c < cuts->count && !ZSTD_isError(left); c++) {
		ZSTD_inBuffer in = {writer->raw + begin, cuts->ends[c] - begin, 0};

		left = ZSTD_compressStream2(writer->cctx, &out, &in, ZSTD_e_flush);
		begin = cuts->ends[c];
	}
	if (!ZSTD_isError(left)) {
		uint32_t begin = cuts->count ? cuts->ends[cuts->count - 1] : 0;
		/* An empty table may have no buffer. */
		ZSTD_inBuffer in = {raw_bytes ? writer->raw + begin : NULL, raw_bytes - begin, 0};

		left = ZSTD_compressStream2(writer->cctx, &out, &in, ZSTD_e_end);
	}
	if (!left)
		return out.pos;
	/* The output has room for the bound, so only zstd's own memory can be missing. */
	ZSTD_CCtx_reset(writer->cctx, ZSTD_reset_session_only);
	return 0;
}

/* After xt_compact_finish() the buffer belongs to the new file. */
static uint32_t *next_sequence(struct xt_writer *writer)
{
	return writer->is_switched ? &writer->compaction->sequence : &writer->sequence;
}

static int add_chunk(struct xt_writer *writer, enum xt_kind kind, uint32_t row_count,
		     size_t raw_bytes, const struct xt_cuts *cuts)
{
	struct xt_chunk_header header = {
		.magic = XT_CHUNK_MAGIC,
		.kind = (uint16_t)kind,
		.raw_bytes = (uint32_t)raw_bytes,
		.row_count = row_count,
		.sequence = *next_sequence(writer),
	};
	size_t bound = ZSTD_compressBound(raw_bytes) + cuts->count * CUT_COST_BYTES;
	uint8_t *place;
	size_t stored;

	if (grow(&writer->pending, &writer->pending_capacity,
		 writer->pending_bytes + sizeof(header) + bound))
		return -ENOMEM;
	place = writer->pending + writer->pending_bytes;
	stored = compress(writer, raw_bytes, cuts, place + sizeof(header), bound);
	if (!stored)
		return -ENOMEM;
	header.stored_bytes = (uint32_t)stored;
	header.check = xt_check32(&header, offsetof(struct xt_chunk_header, check));
	memcpy(place, &header, sizeof(header));
	if (compact_note(writer, kind, row_count, sizeof(header) + stored))
		return -ENOMEM;
	writer->pending_bytes += sizeof(header) + stored;
	++*next_sequence(writer);
	return 0;
}

int xt_writer_add(struct xt_writer *writer, struct xt_table *table)
{
	struct xt_cuts cuts;
	size_t raw_bytes;
	int error;

	if (!table->row_count)
		return 0;
	error = grow(&writer->raw, &writer->raw_capacity, xt_table_encoded_bound(table));
	if (error)
		return error;
	raw_bytes = xt_table_encode(table, writer->header.version_major, writer->raw, &cuts);
	error = add_chunk(writer, table->kind, table->row_count, raw_bytes, &cuts);
	if (!error)
		xt_table_clear(table);
	return error;
}

int xt_writer_add_end(struct xt_writer *writer)
{
	const struct xt_cuts none = {0};

	return add_chunk(writer, XT_KIND_END, 0, 0, &none);
}

/* Completes the compacted file and lets it replace the log. */
static int flush_switched(struct xt_writer *writer)
{
	const struct compaction *new = writer->compaction;
	int error = -EBADF;

	if (xt_guarded_fd_is_ours(&new->file))
		error = log_file_write_all(new->file.fd, writer->pending, writer->pending_bytes,
					   new->file_bytes);
	if (!error)
		error = compact_commit(writer);
	if (!error) {
		writer->pending_bytes = 0;
		return 0;
	}
	xt_compact_end(writer);
	return error;
}

int xt_writer_flush(struct xt_writer *writer)
{
	bool ours = xt_guarded_fd_is_ours(&writer->file);
	int error = -EBADF;

	if (writer->is_switched)
		return flush_switched(writer);
	if (ours)
		error = log_file_write_all(writer->file.fd, writer->pending, writer->pending_bytes,
					   writer->file_bytes);
	if (!error) {
		writer->file_bytes += writer->pending_bytes;
		writer->pending_bytes = 0;
		writer->is_torn = false;
		compact_flushed(writer);
		return 0;
	}
	/*
	 * The program may have closed the descriptor since, and opened a file of its own. If
	 * cutting fails too, the next flush overwrites the torn bytes.
	 */
	if (ours && xt_guarded_fd_is_ours(&writer->file))
		writer->is_torn = cut(writer->file.fd, writer->file_bytes) != 0;
	return error;
}

bool xt_writer_has_room(const struct xt_writer *writer)
{
	struct statvfs disk;

	if (!xt_guarded_fd_is_ours(&writer->file) || fstatvfs(writer->file.fd, &disk))
		return true;
	return (uint64_t)(geteuid() ? disk.f_bavail : disk.f_bfree) * disk.f_frsize >=
	       writer->pending_bytes;
}

void xt_writer_leave_gap(struct xt_writer *writer)
{
	writer->sequence++;
}

bool xt_writer_is_open(const struct xt_writer *writer)
{
	return xt_guarded_fd_is_ours(&writer->file);
}

/*
 * While nothing held the lock, another program may have recovered this log as that of a dead
 * process.
 */
static bool is_as_we_left_it(const struct xt_writer *writer, int fd)
{
	struct stat status;

	return !fstat(fd, &status) &&
	       (writer->is_torn || (uint64_t)status.st_size == writer->file_bytes);
}

int xt_writer_reopen(struct xt_writer *writer)
{
	struct xt_guarded_fd again;
	int error;

	/* After xt_compact_finish(), the next flush fails and gives up instead. */
	if (!writer->path || writer->is_switched)
		return -EBADF;
	xt_compact_end(writer);
	error = xt_guarded_fd_reopen(&writer->file, writer->path, &again);
	if (error)
		return error;
	error = log_file_lock(again.fd);
	if (!error && !is_as_we_left_it(writer, again.fd))
		error = -ESTALE;
	if (error)
		xt_guarded_fd_close(&again);
	else
		writer->file = again;
	return error;
}

uint64_t xt_writer_file_bytes(const struct xt_writer *writer)
{
	return writer->is_switched ? writer->compaction->file_bytes : writer->file_bytes;
}

uint64_t xt_writer_pending_bytes(const struct xt_writer *writer)
{
	return writer->pending_bytes;
}

bool xt_writer_is_deleted(const struct xt_writer *writer)
{
	struct stat status, named;

	if (!xt_guarded_fd_is_ours(&writer->file) || fstat(writer->file.fd, &status) ||
	    status.st_nlink)
		return false;
	/* Some file systems do not count links. */
	return !writer->path || stat(writer->path, &named) || named.st_ino != status.st_ino ||
	       named.st_dev != status.st_dev;
}

const char *xt_writer_path(const struct xt_writer *writer)
{
	return writer->path;
}

void xt_writer_abandon(struct xt_writer *writer)
{
	xt_guarded_fd_close(&writer->file);
	if (writer->compaction)
		xt_guarded_fd_close(&writer->compaction->file);
	if (writer->snapshot) {
		xt_guarded_fd_close(&writer->snapshot->source);
		xt_guarded_fd_close(&writer->snapshot->file);
	}
}

void xt_writer_close(struct xt_writer *writer)
{
	if (!writer)
		return;
	xt_guarded_fd_close(&writer->file);
	xt_snapshot_give_up(writer);
	compact_free(writer);
	ZSTD_freeCCtx(writer->cctx);
	free(writer->path);
	free(writer->pending);
	free(writer->raw);
	free(writer);
}
