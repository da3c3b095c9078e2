/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writer.c and compact.c share: the writer from within. Nobody else includes this.
 */
#ifndef XT_LOG_WRITER_STATE_H
#define XT_LOG_WRITER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#include "log/base/guarded_fd.h"
#include "log/write/writer.h"

/* A chunk in the file, or on its way there. */
struct chunk_note {
	uint64_t offset;
	uint64_t time_ns; /* monotonic, when it was made */
	uint32_t bytes;	  /* with its header */
	uint32_t row_count;
	uint32_t kind;
};

struct chunk_notes {
	struct chunk_note *rows;
	size_t count;
	size_t capacity;
};

/* The file that is to take the log's place. */
struct compaction {
	struct xt_guarded_fd file;
	char *path;
	struct chunk_notes notes; /* of the new file */
	uint64_t file_bytes;
	uint32_t sequence;
	size_t next;		/* of the old file's notes: what is to be copied or left out */
	size_t first_kept;	/* events before are left out */
	size_t first_kept_call; /* calls whose work came later are kept longer */
	uint64_t dropped_rows[XT_KIND_COUNT];
	uint64_t from_ns;
};

struct xt_writer {
	struct xt_guarded_fd file;
	uint32_t sequence;   /* of the next chunk */
	uint64_t file_bytes; /* whole chunks in the file */
	struct xt_log_header header;
	uint8_t *pending;
	size_t pending_bytes;
	size_t pending_capacity;
	uint8_t *raw; /* a table's encoding, before compression */
	size_t raw_capacity;
	ZSTD_CCtx *cctx;

	char *path;   /* NULL: the log was opened to append */
	bool is_torn; /* bytes of a failed write are behind the whole chunks */

	/* For compact.c. */
	bool is_noted;		       /* else there are no notes */
	struct chunk_notes notes;      /* of the file, then of what is pending */
	size_t flushed_notes;	       /* of these, those in the file */
	struct compaction *compaction; /* NULL: not now */
	bool is_switched;	       /* what is pending is for the new file */
};

#endif
