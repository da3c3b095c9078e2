/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a recovery:
 * 1. Check the crash buffer, so that no log is touched without need.
 * 2. Lock the log. This fails while the traced process has it open.
 * 3. Read both, and append in one write what only the crash buffer has.
 * 4. Delete the crash buffer.
 */
#include "log/recover/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/recover/recover_crash_buffer.h"
#include "log/recover/recover_log.h"
#include "log/recover/recover_rings.h"
#include "log/recover/recover_rows.h"
#include "log/write/compact.h"
#include "log/write/snapshot_file.h"
#include "xtrace/reader.h"

static void release(struct recovery *recovery)
{
	for (size_t i = 0; i < recovery->ring_count; i++) {
		free(recovery->rings[i]->records);
		free(recovery->rings[i]);
	}
	free(recovery->rings);
	free(recovery->crash_buffer);
	free(recovery->work);
	free(recovery->work_by_call);
	free(recovery->switches);
	free(recovery->name_texts);
	free(recovery->stream_ids);
	free(recovery->text_strings);
	interner_free(&recovery->names);
	interner_free(&recovery->texts);
	interner_free(&recovery->streams);
	interner_free(&recovery->shapes);
	interner_free(&recovery->copy_shapes);
	interner_free(&recovery->python_frames);
	recovery_close_tables(recovery);
	xt_writer_close(recovery->writer);
	if (recovery->crash_buffer_fd >= 0)
		close(recovery->crash_buffer_fd);
	free(recovery);
}

/* Fails with -EBADMSG if the crash buffer belongs to another log. */
static int read_log_header(struct recovery *recovery, const char *log_path)
{
	struct xt_reader *reader;
	enum xt_open_error error = xt_reader_open(log_path, &reader);

	if (error)
		return error == XT_OPEN_ERRNO ? -errno : -EBADMSG;
	recovery->log_header = *xt_reader_header(reader);
	xt_reader_close(reader);
	return recovery->log_header.log_id == recovery->crash_buffer->log_id ? 0 : -EBADMSG;
}

static bool is_empty_file(const char *path)
{
	struct stat status;

	return !lstat(path, &status) && S_ISREG(status.st_mode) && !status.st_size;
}

/* -ENOLCK if the file system has no locks: the process may still be writing. */
static int try_lock(const char *log_path)
{
	int fd = open(log_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error = 0;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) && !error)
		error = errno == EINTR ? 0 : errno == EWOULDBLOCK ? -EBUSY : -ENOLCK;
	close(fd);
	return error;
}

/*
 * Between our open and our lock the process may have closed its log, or another recovery may have
 * finished.
 */
static bool crash_buffer_is_still_there(const struct recovery *recovery)
{
	struct stat status;

	return !fstat(recovery->crash_buffer_fd, &status) && status.st_nlink > 0;
}

static bool has_anything(const struct xt_recovered *out)
{
	return out->calls || out->open_calls || out->ranges || out->nodes || out->kernels ||
	       out->copies || out->sets || out->memory;
}

static int append(struct recovery *recovery, const char *log_path)
{
	int error = recovery_read_crash_buffer(recovery);

	if (!error)
		error = recovery->error;
	if (!error)
		error = recovery_scan_log(recovery, log_path);
	if (!error)
		error = recovery_open_tables(recovery);
	if (error)
		return error;
	recovery_add_rings(recovery);
	recovery_add_work(recovery);
	if (!recovery->error && recovery->was_closed && !has_anything(recovery->out))
		return 0; /* the process, or an earlier recovery, was killed just before it deleted the crash buffer */
	recovery_add_account(recovery);
	error = recovery->error;
	if (!error)
		error = recovery_add_tables(recovery);
	if (!error)
		error = xt_writer_add_end(recovery->writer);
	return error ? error : xt_writer_flush(recovery->writer);
}

/*
 * The log's header is written after the crash buffer exists. A process killed before that has
 * recorded nothing, and its crash buffer may be incomplete.
 */
static int drop_unused_crash_buffer(const char *log_path, const char *crash_buffer_path)
{
	int error = try_lock(log_path);

	if (!error && is_empty_file(log_path))
		unlink(crash_buffer_path);
	return error;
}

/* Deletes the copies of an interrupted compaction and of an interrupted snapshot. */
static void remove_unfinished(const struct recovery *recovery, const char *log_path)
{
	char snapshot[PATH_MAX], *path = NULL;

	if (!xt_snapshot_path(log_path, XT_SNAPSHOT_DRAFT, snapshot, sizeof(snapshot)))
		xt_compact_remove_draft(snapshot, recovery->log_header.log_id);

	if (asprintf(&path, "%s" XT_COMPACT_SUFFIX, log_path) < 0)
		return;
	xt_compact_remove_draft(path, recovery->log_header.log_id);
	free(path);
}

static int recover(struct recovery *recovery, const char *log_path, const char *crash_buffer_path)
{
	int error = recovery_open_crash_buffer(recovery, crash_buffer_path);

	if (error == -ENOENT)
		return 0;
	if ((!error || error == -EBADMSG) && is_empty_file(log_path) &&
	    recovery_is_unused(recovery))
		return drop_unused_crash_buffer(log_path, crash_buffer_path);
	if (!error)
		error = read_log_header(recovery, log_path);
	if (error)
		return error;
	recovery->out->found = true;
	recovery->out->ending = recovery->crash_buffer->ending;
	recovery->out->error = recovery->crash_buffer->error;
	error = try_lock(log_path);
	/*
	 * Rings and buffers are freed only after a successful write, so the crash buffer still has
	 * the data of a torn tail.
	 */
	if (!error)
		error = xt_writer_resume(log_path, &recovery->writer);
	if (error)
		return error;
	if (!crash_buffer_is_still_there(recovery)) {
		recovery->out->found = false;
		return 0;
	}
	/*
	 * More is missing than a torn write: the crash buffer no longer has the data that was cut
	 * off.
	 */
	if (xt_writer_file_bytes(recovery->writer) < recovery->crash_buffer->log_bytes) {
		recovery->out->log_is_cut = true;
		xt_writer_leave_gap(recovery->writer);
	}
	error = append(recovery, log_path);
	if (error) {
		*recovery->out = (struct xt_recovered){.found = true};
		return error;
	}
	remove_unfinished(recovery, log_path);
	/* If this fails, the next recovery finds that the log already has everything. */
	unlink(crash_buffer_path);
	return 0;
}

int xt_recover(const char *log_path, struct xt_recovered *out)
{
	struct recovery *recovery = calloc(1, sizeof(*recovery));
	char *crash_buffer_path = NULL;
	int error = -ENOMEM;

	*out = (struct xt_recovered){0};
	if (recovery && asprintf(&crash_buffer_path, "%s" XT_CRASH_BUFFER_SUFFIX, log_path) >= 0) {
		recovery->out = out;
		recovery->crash_buffer_fd = -1;
		error = recover(recovery, log_path, crash_buffer_path);
		free(crash_buffer_path);
	}
	if (recovery)
		release(recovery);
	return error;
}

bool xt_log_is_held(const char *log_path)
{
	return try_lock(log_path) == -EBUSY;
}
