/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/python/python_chain.h"

#include <string.h>

#include "inject/python/python_steps.h"
#include "inject/runtime/read_memory.h"

#define FRAME_BYTES_MAX 128
#define STEPS_MAX	4096 /* frames of all kinds: memory that changes may look endless */
#define TEXT_BYTES	512

bool python_chain_start(const struct python_runtime *python, uintptr_t state,
			struct python_thread *thread)
{
	const struct python_layout *layout = &python->layout;

	*thread = (struct python_thread){.state = state};
	if (python_is_finalizing(python, state))
		return false;
	if (layout->state_cframe &&
	    !read_memory(&thread->cframe, state + layout->state_cframe, sizeof(thread->cframe)))
		return false;
	if (layout->state_frame)
		return read_memory(&thread->innermost, state + layout->state_frame,
				   sizeof(thread->innermost));
	return read_memory(&thread->innermost, thread->cframe + layout->cframe_frame,
			   sizeof(thread->innermost));
}

static uint64_t member(const uint8_t *object, uint32_t offset, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, object + offset, bytes);
	return value;
}

/* Reads no more than needed: the memory behind a frame may be unmapped. */
static size_t frame_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {layout->frame_previous + 8, layout->frame_code + 8,
				 layout->frame_instruction + 8, layout->frame_owner + 1};
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		bytes = ends[i] > bytes ? ends[i] : bytes;
	return bytes < FRAME_BYTES_MAX ? bytes : FRAME_BYTES_MAX;
}

bool python_chain_read(const struct python_runtime *python, uintptr_t state,
		       struct python_chain *chain)
{
	const struct python_layout *layout = &python->layout;
	struct python_thread thread;
	const size_t bytes = frame_bytes(layout);
	uint8_t frame[FRAME_BYTES_MAX];
	uint32_t steps = 0;
	uintptr_t at;

	chain->count = 0;
	chain->is_whole = false;
	if (!python_chain_start(python, state, &thread))
		return false;
	for (at = thread.innermost; at && chain->count < PYTHON_CHAIN_MAX;
	     at = member(frame, layout->frame_previous, 8)) {
		if (at % 8 || steps++ == STEPS_MAX || !read_memory(frame, at, bytes))
			return false;
		if (layout->division == PYTHON_BY_SHIM &&
		    member(frame, layout->frame_owner, 1) >= PYTHON_OWNER_SHIM)
			continue;
		chain->links[chain->count++] = (struct python_link){
			.code = member(frame, layout->frame_code, 8),
			.instruction = member(frame, layout->frame_instruction,
					      layout->instruction_bytes ? 4 : 8),
			.frame = at};
	}
	chain->is_whole = !at;
	return true;
}

/* A PyThreadState begins with these two links, in all versions. */
struct state_links {
	uintptr_t previous, next;
};

/* Follows one direction. Returns whether it reached the end of the list. */
static bool list_states(uintptr_t state, bool forward, uintptr_t *out, uint32_t max,
			uint32_t *count)
{
	while (state && !(state % 8) && *count < max) {
		struct state_links links;

		if (!read_memory(&links, state, sizeof(links)))
			return false;
		out[(*count)++] = state;
		state = forward ? links.next : links.previous;
	}
	return !state;
}

uint32_t python_chain_states(uintptr_t state, uintptr_t *out, uint32_t max, bool *is_whole_out)
{
	struct state_links links;
	uint32_t count = 0;

	*is_whole_out = read_memory(&links, state, sizeof(links)) &&
			list_states(state, true, out, max, &count) &&
			list_states(links.previous, false, out, max, &count);
	return count;
}

/* Reads ASCII strings only: the names to find have no other characters. */
static bool text_of(const struct python_layout *layout, uintptr_t object, char out[TEXT_BYTES],
		    size_t *length_out)
{
	uint8_t head[64];
	uint64_t length;
	uint32_t bits;

	if (object % 8 || !read_memory(head, object, sizeof(head)))
		return false;
	length = member(head, layout->str_length, 8);
	bits = (uint32_t)member(head, layout->str_state, 4) >> layout->str_kind_bit;
	/* kind 1, compact, ASCII */
	if ((bits & 31) != (1u | 1u << 3 | 1u << 4) || length >= TEXT_BYTES ||
	    !read_memory(out, object + layout->str_ascii_bytes, length))
		return false;
	out[length] = '\0';
	*length_out = length;
	return true;
}

static bool has_type(const struct python_layout *layout, uintptr_t object, const char *type_name)
{
	uintptr_t type, name;
	char text[16];

	return read_memory(&type, object + layout->object_type, sizeof(type)) &&
	       read_memory(&name, type + layout->type_name, sizeof(name)) &&
	       read_memory_text(text, sizeof(text), name) && !strcmp(text, type_name);
}

static bool ends(const char *text, size_t length, const char *end)
{
	size_t end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

bool python_code_is(const struct python_runtime *python, uintptr_t code, const char *name,
		    const char *file_end)
{
	const struct python_layout *layout = &python->layout;
	uintptr_t name_object, file_object;
	char text[TEXT_BYTES];
	size_t length;

	if (code % 8 || !has_type(layout, code, "code") ||
	    !read_memory(&name_object, code + layout->code_name, sizeof(name_object)) ||
	    !read_memory(&file_object, code + layout->code_file, sizeof(file_object)))
		return false;
	if (!text_of(layout, name_object, text, &length) || strcmp(text, name) != 0)
		return false;
	return !file_end ||
	       (text_of(layout, file_object, text, &length) && ends(text, length, file_end));
}
