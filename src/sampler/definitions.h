/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions of a CPU log that get ids: equal keys get equal ids, and each is written once.
 * Sampler thread only.
 */
#ifndef XT_SAMPLER_DEFINITIONS_H
#define XT_SAMPLER_DEFINITIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "log/base/interner.h"
#include "log/write/writer.h"
#include "xtrace/log_format.h"

/* Zeros are empty. */
struct definitions {
	struct interner keys;
	uint64_t *times_ns; /* when each key was first seen */
	size_t times_capacity;
	uint32_t forgotten; /* keys that were forgotten; ids continue after them */
	size_t written;	    /* of the keys: how many are in the log */
};

struct definition {
	uint32_t id;
	uint64_t time_ns;
	const void *key;
	size_t key_bytes;
};

/* Returns the id of the key, or 0 if out of memory. */
uint32_t definitions_id(struct definitions *definitions, const void *key, size_t key_bytes,
			uint64_t now_ns);

/*
 * Puts the definitions that were not written yet into the table, and the table into the log. put()
 * adds one row; it needs room for the bytes of its key. Forgets the keys if they are too large.
 */
int definitions_write(struct definitions *definitions, struct xt_writer *writer,
		      struct xt_table *table,
		      void (*put)(struct xt_table *table, const struct definition *definition));
void definitions_free(struct definitions *definitions);

/* The keys, and functions that put their rows. */
struct frame_key {
	uint32_t name, file; /* XT_STRING_ID */
	uint32_t first_line, line;
};

struct module_key {
	uint64_t start, end, bias;
	uint32_t build_id_bytes, path_bytes;
	uint8_t texts[64 + 4096]; /* the build id, then the path */
};

/* Followed by u64 frames, u32 modules, u32 Python frames and u32 places. */
struct stack_key {
	uint32_t flags, native_count, python_count, reserved;
};

struct thread_key {
	uint32_t
		id; /* XT_THREAD_ID, which is not that of the definition: a thread may be renamed */
	pid_t tid;
	uint64_t start_ns;
	char name[32];
};

void definition_put_string(struct xt_table *table, const struct definition *definition);
void definition_put_frame(struct xt_table *table, const struct definition *definition);
void definition_put_module(struct xt_table *table, const struct definition *definition);
void definition_put_stack(struct xt_table *table, const struct definition *definition);
void definition_put_thread(struct xt_table *table, const struct definition *definition);

#endif
