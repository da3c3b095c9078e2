/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/write/event_rows.h"

/* Above this, the keys are forgotten. Stacks that recur are defined again, with other ids. */
#define KEYS_BYTES_MAX (32u << 20)

uint32_t definitions_id(struct definitions *definitions, const void *key, size_t key_bytes,
			uint64_t now_ns)
{
	bool is_new;
	uint32_t id;

	/* First, so that no key is without a time. */
	if (grow(&definitions->times_ns, &definitions->times_capacity, definitions->keys.count + 1,
		 sizeof(*definitions->times_ns)))
		return 0;
	id = interner_id(&definitions->keys, key, key_bytes, &is_new);
	if (is_new)
		definitions->times_ns[id - 1] = now_ns;
	return id ? definitions->forgotten + id : 0;
}

int definitions_write(struct definitions *definitions, struct xt_writer *writer,
		      struct xt_table *table,
		      void (*put)(struct xt_table *table, const struct definition *definition))
{
	struct interner *keys = &definitions->keys;
	int error = 0;

	while (definitions->written < keys->count) {
		uint32_t at = (uint32_t)definitions->written + 1;
		struct definition definition = {.id = definitions->forgotten + at,
						.time_ns = definitions->times_ns[at - 1]};

		definition.key = interner_at(keys, at, &definition.key_bytes);
		if (!xt_table_has_room(table, definition.key_bytes)) {
			error = xt_writer_add(writer, table);
			if (error)
				return error;
		}
		put(table, &definition);
		definitions->written++;
	}
	error = xt_writer_add(writer, table);
	if (!error && keys->bytes_used > KEYS_BYTES_MAX) {
		definitions->forgotten += (uint32_t)keys->count;
		definitions->written = 0;
		interner_free(keys);
	}
	return error;
}

void definitions_free(struct definitions *definitions)
{
	interner_free(&definitions->keys);
	free(definitions->times_ns);
	*definitions = (struct definitions){0};
}

void definition_put_string(struct xt_table *table, const struct definition *definition)
{
	xt_table_put(table, XT_STRING_ID, definition->id);
	xt_table_put_bytes(table, XT_STRING_TEXT, definition->key, definition->key_bytes);
	xt_table_end_row(table);
}

void definition_put_frame(struct xt_table *table, const struct definition *definition)
{
	struct frame_key key;

	memcpy(&key, definition->key, sizeof(key));
	xt_table_put(table, XT_PYTHON_FRAME_ID, definition->id);
	xt_table_put(table, XT_PYTHON_FRAME_NAME, key.name);
	xt_table_put(table, XT_PYTHON_FRAME_FILE, key.file);
	xt_table_put(table, XT_PYTHON_FRAME_LINE, key.line);
	xt_table_put(table, XT_PYTHON_FRAME_FIRST_LINE, key.first_line);
	xt_table_end_row(table);
}

void definition_put_module(struct xt_table *table, const struct definition *definition)
{
	struct module_key key;

	memcpy(&key, definition->key, definition->key_bytes);
	xt_put_module(table, &(struct xt_module_row){
				     .module_id = definition->id,
				     .load_ns = definition->time_ns,
				     .start = key.start,
				     .end = key.end,
				     .bias = key.bias,
				     .path = key.texts + key.build_id_bytes,
				     .path_bytes = key.path_bytes,
				     .build_id = key.texts,
				     .build_id_bytes = key.build_id_bytes,
			     });
}

/* Lists have 64-bit elements. Returns the position behind those of 32 bits that it takes. */
static const uint8_t *put_list(struct xt_table *table, unsigned column, const uint8_t *from,
			       uint32_t count)
{
	uint64_t elements[XT_STACK_FRAMES_MAX];

	for (uint32_t i = 0; i < count; i++, from += sizeof(uint32_t)) {
		uint32_t element;

		memcpy(&element, from, sizeof(element));
		elements[i] = element;
	}
	xt_table_put_list(table, column, elements, count);
	return from;
}

void definition_put_stack(struct xt_table *table, const struct definition *definition)
{
	const uint8_t *at = definition->key;
	uint64_t frames[XT_STACK_FRAMES_MAX];
	struct stack_key key;

	memcpy(&key, at, sizeof(key));
	at += sizeof(key);
	memcpy(frames, at, key.native_count * sizeof(*frames));
	at += key.native_count * sizeof(*frames);
	xt_table_put(table, XT_STACK_ID, definition->id);
	xt_table_put(table, XT_STACK_FLAGS, key.flags);
	xt_table_put(table, XT_STACK_SEEN_NS, definition->time_ns);
	xt_table_put_list(table, XT_STACK_FRAMES, frames, key.native_count);
	at = put_list(table, XT_STACK_MODULES, at, key.native_count);
	at = put_list(table, XT_STACK_PYTHON, at, key.python_count);
	put_list(table, XT_STACK_PLACES, at, key.python_count);
	xt_table_end_row(table);
}

void definition_put_thread(struct xt_table *table, const struct definition *definition)
{
	struct thread_key key;

	memcpy(&key, definition->key, sizeof(key));
	xt_table_put(table, XT_THREAD_ID, key.id);
	xt_table_put(table, XT_THREAD_TID, (uint64_t)key.tid);
	xt_table_put_bytes(table, XT_THREAD_NAME, key.name, strnlen(key.name, sizeof(key.name)));
	xt_table_put(table, XT_THREAD_START_NS, key.start_ns);
	xt_table_end_row(table);
}
