/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data structures of an interpreter that runs nothing. Runs in the guard's only thread.
 */
#include "guard/interpreter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/python/python_runtime.h"

#define OUTER_FRAMES   7
#define CODES	       64
#define CODE_BYTES     4096 /* distance between code objects */
#define OBJECT_BYTES   256
#define FRAME_BYTES    136 /* including the function's own data */
#define FRAMES_BYTES   (INTERPRETER_FRAMES * FRAME_BYTES)
#define VERSION	       PYTHON_VERSION(3, 12)
#define STATE_ASCII    0xe4 /* a compact ASCII string */
#define LINE_TABLE     "\xf0\x00"
#define OWNER_THREAD   0
#define CFRAME_IN_LOOP 96 /* offset after the frame that ends a run */
#define NO_HASH	       UINT64_MAX
#define INSTRUCTION    40   /* bytes from a function's first instruction to its call */
#define LINES	       1800 /* lines that a function calls from: one for each instruction */

static struct {
	struct python_runtime runtime;
	uint8_t *codes, *objects, *frames;
	uintptr_t finalizing;
	uint8_t state[OBJECT_BYTES], interpreter[OBJECT_BYTES];
} python;

static void put(void *object, unsigned offset, uint64_t value, unsigned bytes)
{
	memcpy((uint8_t *)object + offset, &value, bytes);
}

static uintptr_t put_type(uint8_t *object, const char *name)
{
	put(object, python.runtime.layout.type_name, (uintptr_t)name, 8);
	return (uintptr_t)object;
}

static uintptr_t put_string(uint8_t *object, uintptr_t type, const char *text)
{
	const struct python_layout *layout = &python.runtime.layout;

	put(object, layout->object_type, type, 8);
	put(object, layout->str_length, strlen(text), 8);
	put(object, layout->str_length + 8, NO_HASH, 8);
	put(object, layout->str_state, STATE_ASCII, 4);
	memcpy(object + layout->str_ascii_bytes, text, strlen(text) + 1);
	return (uintptr_t)object;
}

static uintptr_t put_bytes(uint8_t *object, uintptr_t type, const char *bytes, size_t byte_count)
{
	const struct python_layout *layout = &python.runtime.layout;

	put(object, layout->object_type, type, 8);
	put(object, layout->bytes_size, byte_count, 8);
	memcpy(object + layout->bytes_data, bytes, byte_count);
	return (uintptr_t)object;
}

static void put_codes(void)
{
	const struct python_layout *layout = &python.runtime.layout;
	uint8_t *object = python.objects;
	uintptr_t code = put_type(object, "code"), str = put_type(object += OBJECT_BYTES, "str"),
		  bytes = put_type(object += OBJECT_BYTES, "bytes"),
		  name = put_string(object += OBJECT_BYTES, str, "forward"),
		  file = put_string(object += OBJECT_BYTES, str, "/usr/lib/python3/module.py"),
		  lines = put_bytes(object += OBJECT_BYTES, bytes, LINE_TABLE,
				    sizeof(LINE_TABLE) - 1);

	for (uint32_t i = 0; i < CODES; i++) {
		uint8_t *at = python.codes + i * CODE_BYTES;

		put(at, layout->object_type, code, 8);
		put(at, layout->code_name, name, 8);
		put(at, layout->code_file, file, 8);
		put(at, layout->code_first_line, 10 * i, 4);
		put(at, layout->code_line_table, lines, 8);
		put(at, layout->code_first_traceable, 1, 4);
		put(at, layout->code_version, 1000 + i, 4);
	}
}

static void *thread_state(void)
{
	return python.state;
}

int interpreter_begin(void)
{
	const struct python_layout *layout = &python.runtime.layout;
	char why[128];

	if (python_layout_find(VERSION, NULL, &python.runtime.layout, why, sizeof(why)))
		return -EINVAL;
	python.codes = aligned_alloc(CODE_BYTES, CODES * CODE_BYTES);
	python.objects = calloc(8, OBJECT_BYTES);
	python.frames = calloc(1, FRAMES_BYTES);
	if (!python.codes || !python.objects || !python.frames)
		return -ENOMEM;
	memset(python.codes, 0, CODES * CODE_BYTES);
	put_codes();
	put(python.state, layout->state_interpreter, (uintptr_t)python.interpreter, 8);
	put(python.state, layout->state_status, PYTHON_STATUS_GOOD, 4);
	put(python.interpreter, layout->interpreter_id, 1, 8);
	python.runtime.thread_state = thread_state;
	python.runtime.finalizing = &python.finalizing;
	python_runtime = &python.runtime;
	return 0;
}

/* Paths differ in the call sites of their two innermost functions. */
static uint32_t instruction_of(uint32_t frame, uint32_t path)
{
	uint32_t line = 0;

	if (frame == INTERPRETER_FRAMES - 1)
		line = path % LINES;
	else if (frame == INTERPRETER_FRAMES - 2)
		line = path / LINES % LINES;
	return INSTRUCTION + 2 * line;
}

void interpreter_enter(uint32_t path, void *loop)
{
	const struct python_layout *layout = &python.runtime.layout;
	uintptr_t previous = (uintptr_t)loop;

	memset(loop, 0, INTERPRETER_LOOP_BYTES);
	put(loop, layout->frame_owner, PYTHON_OWNER_SHIM, 1);
	for (uint32_t i = 0; i < INTERPRETER_FRAMES; i++) {
		uint8_t *frame = python.frames + i * FRAME_BYTES;
		uint32_t inner = OUTER_FRAMES + (path + 7 * i) % (CODES - OUTER_FRAMES);
		uintptr_t code =
			(uintptr_t)python.codes + (i < OUTER_FRAMES ? i : inner) * CODE_BYTES;

		put(frame, layout->frame_code, code, 8);
		put(frame, layout->frame_previous, previous, 8);
		put(frame, layout->frame_instruction,
		    code + layout->code_instructions + instruction_of(i, path), 8);
		put(frame, layout->frame_owner, OWNER_THREAD, 1);
		previous = (uintptr_t)frame;
	}
	put(loop, CFRAME_IN_LOOP + layout->cframe_frame, previous, 8);
	put(python.state, layout->state_cframe, (uintptr_t)loop + CFRAME_IN_LOOP, 8);
}
