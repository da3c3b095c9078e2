/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a log through the page cache. copy_file_range() is slower here: on file systems that share
 * blocks it waits for the disk, where the newest part of the log is not yet.
 */
#include "log/write/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/base/regular_file.h"
#include "log/write/compact.h"
#include "log/write/log_file.h"
#include "log/write/writer_state.h"

#define BLOCK_BYTES (256u << 10)

int xt_snapshot_path(const char *log_path, const char *ending, char *path, size_t path_bytes)
{
	const char *name = strrchr(log_path, '/'), *suffix;
	int length;

	name = name ? name + 1 : log_path;
	suffix = strrchr(name, '.');
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
	free(copy->path);
	free(copy->end);
	free(copy);
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
