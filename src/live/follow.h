/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the log of a running process: each call reads only what was appended since.
 *
 * The log may be damaged or cut, and a compacted one may replace it under the same name. Then the
 * reading continues in the new file after the events that were already counted. Belongs to one
 * thread.
 */
#ifndef XT_LIVE_FOLLOW_H
#define XT_LIVE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "live/totals.h"

/*
 * GPU time by kernel and by call path: in total, and in the last moments.
 *
 * Work is joined with its call by the correlation id. Memory is bounded: what does not fit into the
 * tables counts as LIVE_HOT_OTHER.
 */
#define LIVE_HOT_OTHER 0    /* unknown, or beyond the limits */
#define LIVE_HOT_MAX   4096 /* rows of a ranking */
#define LIVE_HOT_SLOTS 8    /* the window has the work since so many calls of live_hot_advance() */

struct live_module {
	char *path; /* NULL: not defined */
	uint64_t bias;
	uint8_t build_id[64];
	uint8_t build_id_bytes;
};

struct live_stack {
	uint64_t first;	      /* in words: frames, their modules, then Python frames */
	uint32_t frame_count; /* innermost first */
	uint32_t python_count;
	uint16_t path; /* row of the ranking */
	bool is_defined, is_named;
};

struct live_python_frame {
	uint32_t name, file, line; /* XT_STRING_ID */
};

struct live_string {
	uint32_t offset, length; /* in text */
	uint16_t kernel;	 /* row of the ranking */
	bool is_defined, is_named;
};

struct live_stacks {
	struct live_stack *rows;
	uint64_t *words;
	size_t capacity, word_count, word_capacity;
};

struct live_strings {
	struct live_string *rows;
	char *text;
	size_t capacity, text_bytes, text_capacity;
};

struct live_hot_row {
	uint64_t ns, count;
	uint64_t recent_ns[LIVE_HOT_SLOTS], recent_count[LIVE_HOT_SLOTS];
};

struct live_ranking {
	struct live_hot_row *rows;
	size_t capacity, count;
};

struct live_hot;

/* Chooses rows of the rankings. Each is asked once for each stack and kernel name. */
struct live_namer {
	void *context;
	uint16_t (*path)(void *context, const struct live_hot *hot, uint32_t stack);
	/* kernel is a mangled name. */
	uint16_t (*kernel)(void *context, const char *text, size_t length);
};

struct live_pending_call {
	uint32_t correlation, stack;
};

/* Set the namer. The rest starts as zeros. */
struct live_hot {
	struct live_namer namer;
	struct live_ranking kernels, paths;
	unsigned slot; /* the newest of the window */
	struct live_stacks stacks;
	struct live_strings strings;
	struct live_module *modules;
	struct live_python_frame *python_frames;
	uint32_t *name_of_shape; /* XT_STRING_ID */
	size_t module_capacity, python_capacity, shape_capacity;
	struct live_pending_call *calls; /* by correlation id; later calls replace earlier ones */
};

/* Begins the next slot of the window, and forgets the oldest. */
void live_hot_advance(struct live_hot *hot);

/* The sum over the window. */
uint64_t live_hot_sum(const uint64_t values[LIVE_HOT_SLOTS]);

/* Tables of the log. All accept any id. */
const struct live_module *live_hot_module(const struct live_hot *hot, uint64_t id);
struct xt_bytes live_hot_string(const struct live_hot *hot, uint64_t id);
const struct live_python_frame *live_hot_python(const struct live_hot *hot, uint64_t id);

/* Recognises a chunk. */
struct live_fingerprint {
	uint32_t row_count; /* 0: no chunk */
	uint64_t hash;
};

struct live_place {
	struct live_fingerprint last; /* the last chunk that was counted */
	uint64_t seen_count;	      /* chunks of this kind in this file so far */
	uint64_t skip_count;	      /* chunks to skip from the start of this file */
};

/* The caller may read the first members. */
struct live_log {
	struct xt_log_header header;
	struct live_totals totals;
	struct live_hot hot; /* the rankings, which live_hot_advance() may change */
	bool is_current;     /* the totals have the whole log up to some recent time, not a part */

	char *path;
	int fd;
	struct stat status; /* of fd */
	struct xt_reader *reader;
	bool is_ranked;
	struct live_place places[XT_KIND_COUNT];
	uint64_t damaged_before; /* in earlier files */
	bool is_searching;	 /* first pass over a log that replaced another */
};

/*
 * Opens a log. namer: gives names to kernels and call paths; NULL: do not rank them. Returns 0 or
 * -errno: -EBADMSG if it is not a log.
 */
int live_log_open(struct live_log **log_out, const char *path, const struct live_namer *namer);

/*
 * Reads for about budget_ns. Returns 0 if everything was read, 1 if there is more, or -errno if
 * reading must end. The error is -ESTALE if the log of another process took its name, and -EFBIG if
 * the log expands beyond its limits.
 */
int live_log_read(struct live_log *log, uint64_t budget_ns);

/* After everything was read: counts idle time up to now, or the rest if the process has ended. */
void live_log_advance(struct live_log *log, bool is_running);

/* Chunks of the log that are damaged or missing. */
uint64_t live_log_damaged_count(const struct live_log *log);

/* Accepts NULL. */
void live_log_close(struct live_log *log);

#endif
