/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by kernel and by call path: in total, and in the last moments.
 *
 * Work is joined with its call by the correlation id. Memory is bounded: what does not fit into the
 * tables counts as LIVE_HOT_OTHER. Belongs to one thread.
 */
#ifndef XT_LIVE_HOT_H
#define XT_LIVE_HOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/reader.h"

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
	struct live_module *modules;
	struct live_stack *stacks;
	struct live_python_frame *python_frames;
	struct live_string *strings;
	uint32_t *name_of_shape; /* XT_STRING_ID */
	size_t module_capacity, stack_capacity, python_capacity, string_capacity, shape_capacity;
	uint64_t *words;
	size_t word_count, word_capacity;
	char *text;
	size_t text_bytes, text_capacity;
	struct live_pending_call *calls; /* by correlation id; later calls replace earlier ones */
};

/* Kinds of chunks to read. */
uint32_t live_hot_kinds(void);

/* Adds a chunk. Returns 0 or -ENOMEM. */
int live_hot_add(struct live_hot *hot, const struct xt_chunk *chunk);

/* Begins the next slot of the window, and forgets the oldest. */
void live_hot_advance(struct live_hot *hot);

/* Work in the window. */
uint64_t live_hot_recent_ns(const struct live_hot_row *row);
uint64_t live_hot_recent_count(const struct live_hot_row *row);

/* Tables of the log. All accept any id. */
const struct live_module *live_hot_module(const struct live_hot *hot, uint64_t id);
struct xt_bytes live_hot_string(const struct live_hot *hot, uint64_t id);
const struct live_python_frame *live_hot_python(const struct live_hot *hot, uint64_t id);

void live_hot_free(struct live_hot *hot);

#endif
