/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a log, for a compaction without its oldest events. In the traced process it runs on the
 * writer thread, a few megabytes at a time, so that the rings can be drained in between.
 *
 * Goes through the page cache. copy_file_range() is slower here: on file systems that share blocks
 * it waits for the disk, where the newest part of the log is not yet.
 */
#include "log/write/compact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "log/write/writer_state.h"

int log_file_lock(int fd)
{
	int error;

	do
		error = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
	while (error == EINTR);
	return error == EWOULDBLOCK ? -EBUSY : 0;
}

int log_file_write_all(int fd, const uint8_t *data, size_t data_bytes, uint64_t offset)
{
	while (data_bytes) {
		ssize_t written = pwrite(fd, data, data_bytes, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		data += written;
		data_bytes -= (size_t)written;
		offset += (uint64_t)written;
	}
	return 0;
}

/* A kernel's record follows its call. Keep calls for this much longer than kernels, if they fit. */
#define CALLS_LEAD_NS UINT64_C(1000000000)
#define CALLS_LEAD_SHARE                                                                           \
	4 /* share of keep_bytes reserved for those calls: one in this many bytes */

/* Kinds that compaction may discard. All other kinds are small or referred to by these. */
static const bool is_event[XT_KIND_COUNT] = {
	[XT_KIND_ACCOUNT] = true, /* cumulative: a newer one follows before the files are swapped */
	[XT_KIND_CLOCK] = true,	  [XT_KIND_CALL] = true, [XT_KIND_KERNEL] = true,
	[XT_KIND_COPY] = true,	  [XT_KIND_SET] = true,	 [XT_KIND_MEMORY] = true,
	[XT_KIND_RANGE] = true,
};

static bool is_droppable(const struct chunk_note *note)
{
	return is_event[note->kind] || note->is_superseded;
}

/* Makes room for `more` notes. */
static int make_room(struct chunk_notes *notes, size_t more)
{
	return grow(notes->rows, notes->capacity, notes->count + more);
}

static int add_note(struct chunk_notes *notes, const struct chunk_note *note)
{
	int error = make_room(notes, 1);

	if (!error)
		notes->rows[notes->count++] = *note;
	return error;
}

void xt_compact_prepare(struct xt_writer *writer)
{
	writer->is_noted = true;
}

int compact_note(struct xt_writer *writer, uint32_t kind, uint32_t row_count, size_t chunk_bytes)
{
	const struct chunk_note note = {
		.time_ns = monotonic_ns(),
		.bytes = (uint32_t)chunk_bytes,
		.row_count = row_count,
		.kind = (uint16_t)kind,
	};

	return writer->is_noted ? add_note(&writer->notes, &note) : 0;
}

void compact_flushed(struct xt_writer *writer)
{
	uint64_t end = writer->file_bytes;

	/* The chunks just flushed are the last ones in the file. */
	for (size_t i = writer->notes.count; i-- > writer->flushed_notes;) {
		end -= writer->notes.rows[i].bytes;
		writer->notes.rows[i].offset = end;
	}
	writer->flushed_notes = writer->notes.count;
}

/* The buffer was discarded. */
static void compact_dropped(struct xt_writer *writer)
{
	writer->notes.count = writer->flushed_notes;
}

/* The first chunk before `cut` from which on calls are kept. */
static size_t choose_first_call(const struct xt_writer *writer, size_t cut, uint64_t room_bytes)
{
	const struct chunk_note *notes = writer->notes.rows;
	uint64_t bytes = 0;
	size_t i = cut;

	for (; i > 0; i--) {
		if (notes[i - 1].kind != XT_KIND_CALL)
			continue;
		bytes += notes[i - 1].bytes;
		if (bytes > room_bytes || notes[i - 1].time_ns + CALLS_LEAD_NS < notes[cut].time_ns)
			break;
	}
	return i;
}

/*
 * The first chunk whose events are kept, so that at most keep_bytes remain. -EFBIG if no event
 * would remain.
 */
static int choose_cut(const struct xt_writer *writer, uint64_t keep_bytes, size_t *cut)
{
	uint64_t bytes = sizeof(struct xt_log_header);
	size_t i = writer->flushed_notes;

	for (size_t n = 0; n < writer->flushed_notes; n++)
		if (!is_droppable(&writer->notes.rows[n]))
			bytes += writer->notes.rows[n].bytes;
	while (i > 0) {
		const struct chunk_note *note = &writer->notes.rows[i - 1];

		if (is_droppable(note)) {
			if (bytes + note->bytes > keep_bytes)
				break;
			bytes += note->bytes;
		}
		i--;
	}
	*cut = i;
	return i < writer->flushed_notes && i ? 0 : -EFBIG;
}

/*
 * The first chunk whose events are kept, so that all events since then remain. -ENODATA if all
 * events would remain, or none.
 */
static int choose_cut_at(const struct xt_writer *writer, uint64_t since_ns, size_t *cut)
{
	size_t i = writer->flushed_notes;

	while (i > 0 && writer->notes.rows[i - 1].time_ns >= since_ns)
		i--;
	*cut = i;
	for (size_t n = 0; n < i && i < writer->flushed_notes; n++)
		if (is_droppable(&writer->notes.rows[n]))
			return 0;
	return -ENODATA;
}

int xt_compact_remove_draft(const char *path, uint64_t log_id)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct xt_log_header header;
	struct stat status;
	bool is_draft = false;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode))
		is_draft = !status.st_size ||
			   (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
			    !memcmp(header.magic, XT_LOG_MAGIC, sizeof(header.magic)) &&
			    (!log_id || header.log_id == log_id));
	close(fd);
	if (!is_draft)
		return -EEXIST;
	return unlink(path) ? -errno : 0;
}

/* Creates a file and locks it, in place of an unfinished copy. 0 or -errno. */
static int compact_open_draft(const char *path, struct xt_guarded_fd *file)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags, 0600), error;

	if (fd < 0 && errno == EEXIST) { /* left by a killed process with the same pid? */
		error = xt_compact_remove_draft(path, 0);
		if (error)
			return error;
		fd = open(path, flags, 0600);
	}
	if (fd < 0)
		return -errno;
	error = xt_guarded_fd_take(file, fd);
	if (!error)
		error = log_file_lock(file->fd);
	return error;
}

static int compact_begin(struct xt_writer *writer, size_t cut, uint64_t calls_bytes)
{
	struct compaction *new = calloc(1, sizeof(*new));
	int error;

	if (!new)
		return -ENOMEM;
	new->file = XT_GUARDED_FD_NONE;
	writer->compaction = new;
	error = -ENOMEM;
	if (asprintf(&new->path, "%s" XT_COMPACT_SUFFIX, writer->path) < 0) {
		new->path = NULL;
		goto fail;
	}
	error = compact_open_draft(new->path, &new->file);
	if (error)
		goto fail;
	error = log_file_write_all(new->file.fd, (const uint8_t *)&writer->header,
				   sizeof(writer->header), 0);
	if (error)
		goto fail;
	new->file_bytes = sizeof(writer->header);
	new->first_kept = cut;
	new->from_ns = writer->notes.rows[cut - 1].time_ns;
	new->first_kept_call = choose_first_call(writer, cut, calls_bytes);
	return 0;
fail:
	xt_compact_end(writer);
	return error;
}

int xt_compact_begin(struct xt_writer *writer, uint64_t keep_bytes)
{
	uint64_t calls_bytes = keep_bytes / CALLS_LEAD_SHARE;
	size_t cut;
	int error = choose_cut(writer, keep_bytes - calls_bytes, &cut);

	return error ? error : compact_begin(writer, cut, calls_bytes);
}

int xt_compact_begin_since(struct xt_writer *writer, uint64_t since_ns)
{
	size_t cut;
	int error = choose_cut_at(writer, since_ns, &cut);

	return error ? error : compact_begin(writer, cut, UINT64_MAX);
}

static bool is_kept(const struct compaction *new, size_t index, const struct chunk_note *note)
{
	return index >= new->first_kept || !is_droppable(note) ||
	       (note->kind == XT_KIND_CALL && index >= new->first_kept_call);
}

/* Copies a chunk. Only its sequence number changes. */
static int copy_chunk(struct xt_writer *writer, const struct chunk_note *note)
{
	struct compaction *new = writer->compaction;
	struct chunk_note copied = *note;
	struct xt_chunk_header header;
	uint8_t *chunk = malloc(note->bytes);
	int error = -ENOMEM;

	if (!chunk)
		return error;
	error = xt_read_at(writer->file.fd, chunk, note->bytes, note->offset);
	if (error)
		goto out;
	memcpy(&header, chunk, sizeof(header));
	header.sequence = new->sequence;
	header.check = xt_check32(&header, offsetof(struct xt_chunk_header, check));
	memcpy(chunk, &header, sizeof(header));
	error = log_file_write_all(new->file.fd, chunk, note->bytes, new->file_bytes);
	copied.offset = new->file_bytes;
	if (!error)
		error = add_note(&new->notes, &copied);
	if (error)
		goto out;
	new->file_bytes += note->bytes;
	new->sequence++;
out:
	free(chunk);
	return error;
}

int xt_compact_step(struct xt_writer *writer, uint64_t budget_bytes)
{
	struct compaction *new = writer->compaction;
	uint64_t copied_bytes = 0;

	/* The program may have closed the descriptors and reused their numbers. */
	if (!xt_guarded_fd_is_ours(&writer->file) || !xt_guarded_fd_is_ours(&new->file)) {
		xt_compact_end(writer);
		return -EBADF;
	}
	while (new->next < writer->flushed_notes) {
		const struct chunk_note *note = &writer->notes.rows[new->next];
		int error;

		if (copied_bytes >= budget_bytes)
			return 0;
		if (is_kept(new, new->next, note)) {
			error = copy_chunk(writer, note);
			if (error) {
				xt_compact_end(writer);
				return error;
			}
			copied_bytes += note->bytes;
		} else {
			new->dropped_rows[note->kind] += note->row_count;
		}
		new->next++;
	}
	return 1;
}

void xt_compact_finish(struct xt_writer *writer, struct xt_compacted *compacted)
{
	struct compaction *new = writer->compaction;

	memcpy(compacted->rows, new->dropped_rows, sizeof(compacted->rows));
	compacted->from_ns = new->from_ns;
	writer->is_switched = true;
}

bool xt_compact_is_finished(const struct xt_writer *writer)
{
	return writer->is_switched;
}

int compact_commit(struct xt_writer *writer)
{
	struct compaction *new = writer->compaction;
	int error = make_room(&new->notes, writer->notes.count - writer->flushed_notes);

	if (error)
		return error;
	if (rename(new->path, writer->path))
		return -errno;
	/* The chunks of the last flush follow those copied from the old file. */
	for (size_t i = writer->flushed_notes; i < writer->notes.count; i++) {
		struct chunk_note note = writer->notes.rows[i];

		note.offset = new->file_bytes;
		note.is_superseded = note.kind == XT_KIND_META;
		new->file_bytes += note.bytes;
		new->notes.rows[new->notes.count++] = note;
	}
	free(writer->notes.rows);
	writer->notes = new->notes;
	writer->flushed_notes = writer->notes.count;
	writer->file_bytes = new->file_bytes;
	writer->sequence = new->sequence;
	xt_guarded_fd_close(&writer->file);
	writer->file = new->file;
	free_all(new->path, new);
	writer->compaction = NULL;
	writer->is_switched = false;
	return 0;
}

void xt_compact_end(struct xt_writer *writer)
{
	struct compaction *new = writer->compaction;

	if (!new)
		return;
	/* The buffer describes the new file only, so discard it too. */
	if (writer->is_switched) {
		writer->pending_bytes = 0;
		compact_dropped(writer);
	}
	if (new->file.fd >= 0) {
		unlink(new->path);
		xt_guarded_fd_close(&new->file);
	}
	free_all(new->notes.rows, new->path, new);
	writer->compaction = NULL;
	writer->is_switched = false;
}

void compact_free(struct xt_writer *writer)
{
	xt_compact_end(writer);
	free(writer->notes.rows);
}

#define BLOCK_BYTES (256u << 10)

int xt_snapshot_path(const char *log_path, const char *ending, char *path, size_t path_bytes)
{
	const char *name = base_name(log_path), *suffix = strrchr(name, '.');
	int length;

	if (!suffix || strcmp(suffix, ".xtr") != 0)
		return -EINVAL;
	length = snprintf(path, path_bytes, "%.*s" XT_SNAPSHOT_FOLDER "/%.*s%s",
			  (int)(name - log_path), log_path, (int)(suffix - name), name, ending);
	return length >= 0 && (size_t)length < path_bytes ? 0 : -ENAMETOOLONG;
}

void xt_snapshot_ending(char ending[XT_SNAPSHOT_ENDING_BYTES], uint32_t number)
{
	snprintf(ending, XT_SNAPSHOT_ENDING_BYTES, ".snapshot-%u.xtr", number);
}

/* Compaction may replace the log meanwhile, so the copy has a descriptor of its own. */
static int open_source(const struct xt_writer *writer, struct xt_guarded_fd *source)
{
	int fd;

	if (!xt_guarded_fd_is_ours(&writer->file))
		return -EBADF;
	fd = fcntl(writer->file.fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : xt_guarded_fd_take(source, fd);
}

int xt_snapshot_begin(struct xt_writer *writer, const char *draft_path)
{
	struct snapshot_copy *copy = calloc(1, sizeof(*copy));
	int error = -ENOMEM;

	if (!copy)
		return -ENOMEM;
	copy->source = copy->file = XT_GUARDED_FD_NONE;
	copy->sequence = writer->sequence;
	copy->body_bytes = writer->file_bytes;
	writer->snapshot = copy;
	copy->path = strdup(draft_path);
	if (copy->path)
		error = open_source(writer, &copy->source);
	if (!error)
		error = compact_open_draft(copy->path, &copy->file);
	if (error)
		xt_snapshot_give_up(writer);
	return error;
}

int xt_snapshot_seal(struct xt_writer *writer)
{
	struct snapshot_copy *copy = writer->snapshot;

	copy->end = malloc(writer->pending_bytes);
	if (copy->end) {
		memcpy(copy->end, writer->pending, writer->pending_bytes);
		copy->end_bytes = writer->pending_bytes;
	}
	/* The log continues as if these rows had never been added. */
	writer->pending_bytes = 0;
	writer->sequence = copy->sequence;
	compact_dropped(writer);
	if (copy->end)
		return 0;
	xt_snapshot_give_up(writer);
	return -ENOMEM;
}

static int copy_block(struct snapshot_copy *copy, uint8_t *block)
{
	uint64_t left = copy->body_bytes - copy->copied_bytes;
	size_t bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;
	int error = xt_read_at(copy->source.fd, block, bytes, copy->copied_bytes);

	if (!error)
		error = log_file_write_all(copy->file.fd, block, bytes, copy->copied_bytes);
	if (!error)
		copy->copied_bytes += bytes;
	return error;
}

int xt_snapshot_step(struct xt_writer *writer, uint64_t budget_bytes)
{
	struct snapshot_copy *copy = writer->snapshot;
	uint64_t until = copy->copied_bytes + budget_bytes;
	/* The program may have closed the descriptors and reused their numbers. */
	bool is_ours = xt_guarded_fd_is_ours(&copy->source) && xt_guarded_fd_is_ours(&copy->file);
	uint8_t *block = malloc(BLOCK_BYTES);
	int error = !block ? -ENOMEM : is_ours ? 0 : -EBADF;

	while (!error && copy->copied_bytes < copy->body_bytes && copy->copied_bytes < until)
		error = copy_block(copy, block);
	free(block);
	if (!error && copy->copied_bytes < copy->body_bytes)
		return 0;
	if (!error)
		error = log_file_write_all(copy->file.fd, copy->end, copy->end_bytes,
					   copy->body_bytes);
	if (!error)
		return 1;
	xt_snapshot_give_up(writer);
	return error;
}

static void free_copy(struct xt_writer *writer)
{
	struct snapshot_copy *copy = writer->snapshot;

	xt_guarded_fd_close(&copy->source);
	xt_guarded_fd_close(&copy->file);
	free_all(copy->path, copy->end, copy);
	writer->snapshot = NULL;
}

int xt_snapshot_commit(struct xt_writer *writer, const char *path)
{
	int error = rename(writer->snapshot->path, path) ? -errno : 0;

	if (error)
		xt_snapshot_give_up(writer);
	else
		free_copy(writer);
	return error;
}

void xt_snapshot_give_up(struct xt_writer *writer)
{
	if (!writer->snapshot)
		return;
	if (writer->snapshot->file.fd >= 0)
		unlink(writer->snapshot->path);
	free_copy(writer);
}
