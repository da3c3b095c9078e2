/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private state of the writer, for writer.c and compact.c alone.
 */
#ifndef XT_LOG_WRITER_STATE_H
#define XT_LOG_WRITER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "log/base/regular_file.h"
#include "log/write/writer.h"

/* A chunk in the file or in the buffer. */
struct chunk_note {
	uint64_t offset;
	uint64_t time_ns; /* monotonic, when it was added */
	uint32_t bytes;	  /* including its header */
	uint32_t row_count;
	uint16_t kind;
	bool is_superseded; /* describes a compaction; the next one replaces it */
};

struct chunk_notes {
	struct chunk_note *rows;
	size_t count;
	size_t capacity;
};

/* A compaction in progress. */
struct compaction {
	struct xt_guarded_fd file;
	char *path;
	struct chunk_notes notes; /* of the new file */
	uint64_t file_bytes;
	uint32_t sequence;
	size_t next;	   /* index in the old file's notes of the next chunk to copy or discard */
	size_t first_kept; /* events before this chunk are discarded */
	size_t first_kept_call; /* calls before this chunk are discarded; see CALLS_LEAD_NS */
	uint64_t dropped_rows[XT_KIND_COUNT];
	uint64_t from_ns;
};

/* A snapshot in progress. */
struct snapshot_copy {
	struct xt_guarded_fd source, file;
	char *path;
	uint8_t *end; /* chunks that only the snapshot has */
	size_t end_bytes;
	uint32_t sequence;   /* of the first of them */
	uint64_t body_bytes; /* of the log */
	uint64_t copied_bytes;
};

struct xt_writer {
	struct xt_guarded_fd file;
	uint32_t sequence;   /* of the next chunk */
	uint64_t file_bytes; /* intact chunks in the file */
	struct xt_log_header header;
	uint8_t *pending;
	size_t pending_bytes;
	size_t pending_capacity;
	uint8_t *raw; /* a table's encoding, before compression */
	size_t raw_capacity;
	ZSTD_CCtx *cctx;

	char *path;   /* NULL: the log was opened to append */
	bool is_torn; /* a failed write left bytes after the intact chunks */

	/* For compact.c. */
	bool is_noted;		       /* chunks are tracked in notes */
	struct chunk_notes notes;      /* chunks in the file, then those in the buffer */
	size_t flushed_notes;	       /* number of notes that are in the file */
	struct compaction *compaction; /* NULL: none in progress */
	bool is_switched;	       /* the buffer is for the new file */

	struct snapshot_copy *snapshot; /* NULL: none in progress */
};

#endif
