/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds an interpreter, then the states of its threads, then the frames of a state. Threads start
 * and end while their list is read. So a state counts only if it names the interpreter it was
 * reached from, and a reader of its frames checks its thread once more. The first read of frames
 * follows pointers. The second one knows all addresses, so it takes one system call for many
 * frames.
 */
#include "sampler/python_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "sampler/process_read.h"

#define PUBLISHED_BYTES 1024 /* the table at the start of _PyRuntime, since 3.13 */

enum symbol { RUNTIME, VERSION, LOOP, COLD_LOOP, ONLY_SINCE_3_10, ONLY_SINCE_3_9, SYMBOLS };

static const char *const symbol_names[SYMBOLS] = {
	[RUNTIME] = "_PyRuntime",
	[VERSION] = "Py_Version", /* since 3.11 */
	[LOOP] = "_PyEval_EvalFrameDefault",
	[COLD_LOOP] = "_PyEval_EvalFrameDefault.cold",
	[ONLY_SINCE_3_10] = "PyIter_Send",
	[ONLY_SINCE_3_9] = "PyFrame_GetBack",
};

static bool find_symbols(const struct process_module *module, struct elf_symbol symbols[SYMBOLS])
{
	for (int s = 0; s < SYMBOLS; s++)
		symbols[s] = (struct elf_symbol){.name = symbol_names[s]};
	return elf_symbols_find(module->elf->fd, symbols, SYMBOLS) == 0 && symbols[RUNTIME].address;
}

static int use_module(struct python_place *out, const struct process_module *module,
		      const struct elf_symbol *symbols, char *why, size_t why_bytes)
{
	uint64_t published[PUBLISHED_BYTES / 8] = {0}, head, py_version = 0;
	uint32_t version;

	if (symbols[VERSION].address)
		process_memory_read(out->pid, &py_version, module->bias + symbols[VERSION].address,
				    sizeof(py_version));
	version = python_version_by_symbols((uint32_t)py_version, symbols[ONLY_SINCE_3_10].address,
					    symbols[ONLY_SINCE_3_9].address);

	snprintf(out->path, sizeof(out->path), "%s", module->path);
	python_version_name(version, out->version, sizeof(out->version));
	out->runtime = module->bias + symbols[RUNTIME].address;
	if (symbols[LOOP].address) {
		out->loop_start = module->bias + symbols[LOOP].address;
		out->loop_end = out->loop_start + symbols[LOOP].bytes;
	}
	if (symbols[COLD_LOOP].address) {
		out->cold_start = module->bias + symbols[COLD_LOOP].address;
		out->cold_end = out->cold_start + symbols[COLD_LOOP].bytes;
	}
	if (!process_memory_read_some(out->pid, published, out->runtime, sizeof(published))) {
		snprintf(why, why_bytes, "its memory cannot be read");
		return -EINVAL;
	}
	if (python_layout_find(version, published, &out->layout, why, why_bytes))
		return -EINVAL;
	if (!process_memory_read(out->pid, &head, out->runtime + out->layout.runtime_head,
				 sizeof(head)) ||
	    !head)
		return -EAGAIN;
	return 0;
}

int python_find_in(struct python_place *out, pid_t pid, const struct process_modules *modules,
		   char *why, size_t why_bytes)
{
	struct elf_symbol symbols[SYMBOLS];
	char program[PATH_MAX];

	*out = (struct python_place){.pid = pid};
	process_program(pid, program);
	out->is_program = python_has_name(program);
	for (size_t i = 0; i < modules->count; i++) {
		const struct process_module *module = &modules->list[i];
		bool is_program = !strcmp(module->path, program);

		/* A program of any name may contain an interpreter. */
		if (!is_program && !python_has_name(module->path))
			continue;
		if (find_symbols(module, symbols))
			return use_module(out, module, symbols, why, why_bytes);
	}
	return -ENOENT;
}

#define LIST_ENTRY_BYTES_MAX 256
#define STATES_MAX	     65536 /* a list that changes may look endless */
#define BATCH		     (PROCESS_MEMORY_PARTS_MAX / 2)

#if defined(__x86_64__)
#define DESCRIPTOR_TID 720
#else
#define DESCRIPTOR_TID		208
/* The kernel reads this from the list of robust mutexes: from a mutex's link to its word. */
#define DESCRIPTOR_FUTEX_OFFSET 232
#define DESCRIPTOR_FUTEX_VALUE	(-32)
#endif

bool thread_descriptor_is_valid(const uint8_t bytes[THREAD_DESCRIPTOR_BYTES], uint64_t address)
{
#if defined(__x86_64__)
	/* It has its own address twice. */
	return python_member(bytes, 0, 8) == address && python_member(bytes, 16, 8) == address;
#else
	return address &&
	       (int64_t)python_member(bytes, DESCRIPTOR_FUTEX_OFFSET, 8) == DESCRIPTOR_FUTEX_VALUE;
#endif
}

int32_t thread_descriptor_tid(const uint8_t bytes[THREAD_DESCRIPTOR_BYTES])
{
	int32_t tid;

	memcpy(&tid, bytes + DESCRIPTOR_TID, sizeof(tid));
	return tid > 0 ? tid : 0;
}

/* From the links to the number of the thread. */
static size_t list_entry_bytes(const struct python_layout *layout)
{
	size_t end = layout->state_native_id ? layout->state_native_id : layout->state_pthread;

	return end + 8 < LIST_ENTRY_BYTES_MAX ? end + 8 : LIST_ENTRY_BYTES_MAX;
}

static void fill_state(struct python_state *out, uint64_t address,
		       const struct python_layout *layout, const uint8_t *bytes)
{
	*out = (struct python_state){.address = address,
				     .previous = python_member(bytes, 0, 8),
				     .next = python_member(bytes, 8, 8),
				     .interpreter = python_member(bytes, 16, 8),
				     .pthread = python_member(bytes, layout->state_pthread, 8)};
	if (layout->state_native_id && out->pthread)
		out->tid = (pid_t)python_member(bytes, layout->state_native_id, 8);
}

static void fill_tid(struct python_state *state, const uint8_t *pthread)
{
	if (!thread_descriptor_is_valid(pthread, state->pthread))
		return;
	state->has_tid_word = true;
	state->tid = thread_descriptor_tid(pthread);
}

static bool is_same_state(const struct python_state *a, const struct python_state *b)
{
	return a->address == b->address && a->previous == b->previous && a->next == b->next &&
	       a->interpreter == b->interpreter && a->pthread == b->pthread && a->tid == b->tid &&
	       a->has_tid_word == b->has_tid_word;
}

/* Whether these states are as they were. One system call for all. */
static bool batch_is_current(const struct python_state *states, size_t count,
			     const struct python_place *place)
{
	uint8_t state_copies[BATCH][LIST_ENTRY_BYTES_MAX],
		pthread_copies[BATCH][THREAD_DESCRIPTOR_BYTES];
	struct process_memory_part parts[PROCESS_MEMORY_PARTS_MAX];
	size_t part_count = 0;

	for (size_t i = 0; i < count; i++) {
		parts[part_count++] = (struct process_memory_part){
			state_copies[i], states[i].address, list_entry_bytes(&place->layout)};
		if (states[i].has_tid_word)
			parts[part_count++] = (struct process_memory_part){
				pthread_copies[i], states[i].pthread, THREAD_DESCRIPTOR_BYTES};
	}
	if (!process_memory_read_parts(place->pid, parts, part_count))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct python_state now;

		fill_state(&now, states[i].address, &place->layout, state_copies[i]);
		if (states[i].has_tid_word && now.pthread == states[i].pthread)
			fill_tid(&now, pthread_copies[i]);
		if (!is_same_state(&now, &states[i]))
			return false;
	}
	return true;
}

static bool read_interpreters(const struct python_place *place, struct python_interpreter *out,
			      uint32_t *count_out)
{
	const struct python_layout *layout = &place->layout;
	uint64_t at;

	*count_out = 0;
	if (!process_memory_read(place->pid, &at, place->runtime + layout->runtime_head,
				 sizeof(at)))
		return false;
	for (; at && *count_out < PYTHON_INTERPRETERS_MAX; at = out[(*count_out)++].next) {
		struct python_interpreter *next = &out[*count_out];
		const struct process_memory_part parts[] = {
			{&next->next, at + layout->interpreter_next, 8},
			{&next->threads, at + layout->interpreter_threads, 8}};

		next->address = at;
		if (at % 8 || !process_memory_read_parts(place->pid, parts, 2))
			return false;
	}
	return true;
}

static bool is_current(const struct python_states *states, const struct python_place *place,
		       const struct python_interpreter *interpreters, uint32_t interpreter_count)
{
	if (interpreter_count != states->interpreter_count ||
	    memcmp(interpreters, states->interpreters, interpreter_count * sizeof(*interpreters)))
		return false;
	for (size_t i = 0; i < states->count; i += BATCH) {
		size_t count = states->count - i < BATCH ? states->count - i : BATCH;

		if (!batch_is_current(&states->list[i], count, place))
			return false;
	}
	return true;
}

/* Follows the list of an interpreter. */
static int list_threads(struct python_states *out, const struct python_place *place,
			const struct python_interpreter *interpreter)
{
	uint64_t previous = 0, at = interpreter->threads;
	uint8_t bytes[LIST_ENTRY_BYTES_MAX], pthread[THREAD_DESCRIPTOR_BYTES];
	struct python_state state;
	int rc = 0;

	while (at && !rc) {
		if (at % 8 || out->count == STATES_MAX ||
		    !process_memory_read(place->pid, bytes, at, list_entry_bytes(&place->layout)))
			return -EAGAIN;
		fill_state(&state, at, &place->layout, bytes);
		if (state.interpreter != interpreter->address || state.previous != previous)
			return -EAGAIN;
		if (state.pthread &&
		    process_memory_read(place->pid, pthread, state.pthread, sizeof(pthread)))
			fill_tid(&state, pthread);
		rc = grow(out->list, out->capacity, out->count + 1);
		if (!rc)
			out->list[out->count++] = state;
		previous = at;
		at = state.next;
	}
	return rc;
}

COMPARE_BY(by_tid, struct python_state, UP(tid))

/* See struct _gil_runtime_state in CPython's pycore_gil.h. */
#define GIL_BYTES	 208
#define GIL_LAST_HOLDER	 8
#define GIL_LOCKED	 16
#define GIL_WAITED	 32 /* two pairs of a condition variable and a mutex, to the end */
#define GIL_MUTEX	 80
#define GIL_SWITCH_MUTEX 168
#define GIL_TRIES_MAX	 100
#define GIL_SEARCH_BYTES 16384
#define INTERVAL_MAX_US	 UINT64_C(100000000)
/* glibc's condition variables have this flag if they use the monotonic clock, as CPython's do. */
#define CLOCK_FLAG	2u
#define CLOCK_WORD	36
#define CLOCK_WORD_2_41 28
#define MUTEX_KIND	16

static bool looks_like_gil(const struct python_states *states, const uint8_t *at)
{
	uint64_t interval_us = python_member(at, 0, 8),
		 holder = python_member(at, GIL_LAST_HOLDER, 8),
		 flags = python_member(at, GIL_WAITED + CLOCK_WORD, 4) |
			 python_member(at, GIL_WAITED + CLOCK_WORD_2_41, 4);

	if (!interval_us || interval_us > INTERVAL_MAX_US || !(flags & CLOCK_FLAG) ||
	    python_member(at, GIL_LOCKED, 4) > 1 || python_member(at, GIL_MUTEX, 4) > 2 ||
	    python_member(at, GIL_SWITCH_MUTEX, 4) > 2 ||
	    python_member(at, GIL_MUTEX + MUTEX_KIND, 4) ||
	    python_member(at, GIL_SWITCH_MUTEX + MUTEX_KIND, 4))
		return false;
	for (size_t i = 0; i < states->count; i++)
		if (states->list[i].address == holder)
			return true;
	return false;
}

static uint64_t gil_base(const struct python_states *states, const struct python_place *place,
			 uint32_t interpreter)
{
	/* To 3.11 all interpreters share one lock. */
	return place->layout.runtime_interpreters ? place->runtime
						  : states->interpreters[interpreter].address;
}

/* The structure moved between releases, but its contents did not. */
static void find_gil(struct python_states *states, const struct python_place *place)
{
	static uint8_t bytes[GIL_SEARCH_BYTES];
	size_t byte_count;

	if (states->gil_offset || !states->interpreter_count ||
	    states->gil_tries++ == GIL_TRIES_MAX)
		return;
	byte_count = process_memory_read_some(
		place->pid, bytes, gil_base(states, place, states->interpreter_count - 1),
		sizeof(bytes));
	for (size_t at = 8; at + GIL_BYTES <= byte_count; at += 8)
		if (looks_like_gil(states, bytes + at)) {
			states->gil_offset = (uint32_t)at;
			return;
		}
}

int python_states_refresh(struct python_states *states, const struct python_place *place)
{
	struct python_states fresh = *states;
	int rc = 0;

	if (!read_interpreters(place, fresh.interpreters, &fresh.interpreter_count))
		return -EAGAIN;
	if (!is_current(states, place, fresh.interpreters, fresh.interpreter_count)) {
		fresh.list = NULL;
		fresh.count = fresh.capacity = 0;
		for (uint32_t i = 0; i < fresh.interpreter_count && !rc; i++)
			rc = list_threads(&fresh, place, &fresh.interpreters[i]);
		if (rc) {
			free(fresh.list);
			return rc;
		}
		qsort(fresh.list, fresh.count, sizeof(*fresh.list), by_tid);
		free(states->list);
		*states = fresh;
	}
	find_gil(states, place);
	return 0;
}

const struct python_state *python_states_of(const struct python_states *states, pid_t tid,
					    size_t *count_out)
{
	size_t end, low = FIRST_NOT(i, 0, states->count, states->list[i].tid < tid);

	for (end = low; end < states->count && states->list[end].tid == tid;)
		end++;
	*count_out = end - low;
	return end > low ? &states->list[low] : NULL;
}

bool python_states_is_gil(const struct python_states *states, const struct python_place *place,
			  uint64_t futex_address)
{
	for (uint32_t i = 0; i < states->interpreter_count && states->gil_offset; i++) {
		uint64_t gil = gil_base(states, place, i) + states->gil_offset;

		if (futex_address - (gil + GIL_WAITED) < GIL_BYTES - GIL_WAITED)
			return true;
	}
	return false;
}

/* The thread of a state; 0: unknown. */
static pid_t tid_of(const struct python_states *states, uint64_t address)
{
	for (size_t i = 0; i < states->count; i++)
		if (states->list[i].address == address)
			return states->list[i].tid;
	return 0;
}

pid_t python_states_gil_holder(const struct python_states *states, const struct python_place *place)
{
	uint8_t gil[GIL_LOCKED + 4];

	/* The main interpreter first. */
	for (uint32_t i = states->interpreter_count; i-- > 0 && states->gil_offset;) {
		if (process_memory_read(place->pid, gil,
					gil_base(states, place, i) + states->gil_offset,
					sizeof(gil)) &&
		    python_member(gil, GIL_LOCKED, 4) == 1 &&
		    python_member(gil, GIL_LAST_HOLDER, 8))
			return tid_of(states, python_member(gil, GIL_LAST_HOLDER, 8));
	}
	return 0;
}

void python_states_free(struct python_states *states)
{
	free(states->list);
	*states = (struct python_states){0};
}

#define PYTHON_MOMENT_NS 20000 /* the times of samples are exact to half of this */

#define STATE_BYTES_MAX	  512
#define STATUS_BOUND	  0x03u /* initialised and bound to a thread */
#define STATUS_BOUND_MASK 0x07u
#define MOMENTS_MAX	  8

static size_t state_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {24, layout->state_pthread + 8, layout->state_frame + 8,
				 layout->state_cframe + 8, layout->state_status + 4};

	return python_end(ends, sizeof(ends) / sizeof(*ends), STATE_BYTES_MAX);
}

/* Reads no more than needed: the memory behind a frame may be unmapped. */
static size_t frame_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {layout->frame_previous + 8,	layout->frame_code + 8,
				 layout->frame_instruction + 8, layout->frame_owner + 1,
				 layout->frame_is_entry + 1,	layout->frame_tlbc_index + 4};

	return python_end(ends, sizeof(ends) / sizeof(*ends), PYTHON_FRAME_BYTES_MAX);
}

/* Memory that a start is read from. */
struct start_copy {
	uint8_t state[STATE_BYTES_MAX];
	uint64_t finalizing;
	int32_t tid;
};

static size_t start_parts(struct start_copy *copy, const struct python_place *place,
			  const struct python_state *state, struct process_memory_part *parts)
{
	size_t count = 0;

	parts[count++] = (struct process_memory_part){copy->state, state->address,
						      state_bytes(&place->layout)};
	parts[count++] = (struct process_memory_part){
		&copy->finalizing, place->runtime + place->layout.runtime_finalizing, 8};
	if (state->has_tid_word)
		parts[count++] = (struct process_memory_part){&copy->tid,
							      state->pthread + DESCRIPTOR_TID, 4};
	return count;
}

static void evaluate_start(const struct start_copy *copy, const struct python_layout *layout,
			   const struct python_state *state, struct python_start *out)
{
	uint32_t status = STATUS_BOUND;

	if (layout->state_status)
		status = (uint32_t)python_member(copy->state, layout->state_status, 4);
	out->is_of_thread =
		python_member(copy->state, 16, 8) == state->interpreter &&
		python_member(copy->state, layout->state_pthread, 8) == state->pthread &&
		(!state->has_tid_word || copy->tid == state->tid) &&
		(status & STATUS_BOUND_MASK) == STATUS_BOUND;
	out->is_finalizing = copy->finalizing && copy->finalizing != state->address;
	out->is_active = status & PYTHON_STATUS_ACTIVE;
	if (layout->state_cframe)
		out->cframe = python_member(copy->state, layout->state_cframe, 8);
	if (layout->state_frame)
		out->innermost = python_member(copy->state, layout->state_frame, 8);
}

bool python_frames_start(const struct python_place *place, const struct python_state *state,
			 struct python_start *out)
{
	const struct python_layout *layout = &place->layout;
	struct process_memory_part parts[3];
	struct start_copy copy;

	*out = (struct python_start){0};
	if (!process_memory_read_parts(place->pid, parts, start_parts(&copy, place, state, parts)))
		return false;
	evaluate_start(&copy, layout, state, out);
	if (!out->is_of_thread || out->is_finalizing || layout->state_frame)
		return true;
	return process_memory_read(place->pid, &out->innermost, out->cframe + layout->cframe_frame,
				   8);
}

/*
 * Returns a copy of some bytes, or NULL. Valid until the next call. The address may be anything: a
 * frame that ended has other contents.
 */
static const uint8_t *bytes_at(struct python_frames *frames, const struct python_place *place,
			       uint64_t address, size_t bytes)
{
	const uint64_t page = address & ~(uint64_t)(PYTHON_WINDOW_PAGE_BYTES - 1);
	struct python_window *window;

	if (page > UINT64_MAX - sizeof(window->bytes))
		return NULL;
	for (int i = 0; i < PYTHON_WINDOWS; i++) {
		window = &frames->windows[i];
		if (address >= window->start && address + bytes <= window->end)
			return window->bytes + (address - window->start);
	}
	window = &frames->windows[frames->next_window++ % PYTHON_WINDOWS];
	window->start = page;
	window->end = larger(page + PYTHON_WINDOW_PAGE_BYTES, address + bytes);
	if (process_memory_read(place->pid, window->bytes, page, window->end - page))
		return window->bytes + (address - page);
	window->start = window->end = 0;
	return NULL;
}

static void fill_link(struct python_link *link, uint64_t address,
		      const struct python_layout *layout, const uint8_t *frame)
{
	*link = (struct python_link){.address = address,
				     .previous = python_member(frame, layout->frame_previous, 8),
				     .code = python_member(frame, layout->frame_code, 8),
				     .instruction =
					     python_member(frame, layout->frame_instruction,
							   layout->instruction_bytes ? 4 : 8)};
	if (layout->frame_owner)
		link->owner = (uint32_t)python_member(frame, layout->frame_owner, 1);
	if (layout->frame_tlbc_index)
		link->tlbc_index = (uint32_t)python_member(frame, layout->frame_tlbc_index, 4);
	link->is_shim = layout->division == PYTHON_BY_SHIM && link->owner >= PYTHON_OWNER_SHIM;
}

/* Whether an activation's struct _PyCFrame belongs to the frame. */
static bool is_marked(const struct python_layout *layout, const uint8_t *frame)
{
	return layout->division == PYTHON_EACH_MARKED ||
	       (layout->division == PYTHON_BY_FLAG &&
		python_member(frame, layout->frame_is_entry, 1));
}

bool python_frames_read(struct python_frames *frames, const struct python_place *place,
			const struct python_state *state, uint32_t code_count_max)
{
	const struct python_layout *layout = &place->layout;
	const size_t bytes = frame_bytes(layout);
	uint64_t at, cframe;

	frames->state = *state;
	frames->count = frames->code_count = 0;
	frames->is_whole = false;
	for (int i = 0; i < PYTHON_WINDOWS; i++)
		frames->windows[i].start = frames->windows[i].end = 0;
	if (!python_frames_start(place, state, &frames->start) || !frames->start.is_of_thread ||
	    frames->start.is_finalizing)
		return false;
	cframe = frames->start.cframe;
	for (at = frames->start.innermost; at; at = frames->links[frames->count++].previous) {
		struct python_link *link = &frames->links[frames->count];
		const uint8_t *frame;

		if (frames->count == PYTHON_LINKS_MAX || frames->code_count == code_count_max)
			break;
		frame = at % 8 ? NULL : bytes_at(frames, place, at, bytes);
		if (!frame)
			return false;
		fill_link(link, at, layout, frame);
		frames->code_count += !link->is_shim;
		if (!is_marked(layout, frame))
			continue;
		link->cframe = cframe;
		frame = bytes_at(frames, place, cframe + layout->cframe_previous, 8);
		if (!frame)
			return false;
		cframe = link->cframe_previous = python_member(frame, 0, 8);
	}
	frames->is_whole = !at;
	frames->time_ns = monotonic_ns();
	return true;
}

static bool start_is_current(const struct python_frames *frames, const struct python_place *place)
{
	struct python_start now;

	return python_frames_start(place, &frames->state, &now) && now.is_of_thread &&
	       !now.is_finalizing && now.innermost == frames->start.innermost &&
	       now.cframe == frames->start.cframe;
}

bool python_frames_note_time(struct python_frames *frames, const struct python_place *place)
{
	/* This thread may lose its CPU in between. */
	for (int i = 0; i < MOMENTS_MAX; i++) {
		uint64_t before_ns = monotonic_ns(), after_ns;

		if (!start_is_current(frames, place))
			return false;
		after_ns = monotonic_ns();
		frames->time_ns = before_ns + (after_ns - before_ns) / 2;
		if (after_ns - before_ns <= PYTHON_MOMENT_NS)
			return true;
	}
	return false;
}

uint32_t python_frames_common(const struct python_frames *a, const struct python_frames *b)
{
	uint32_t common = 0;

	if (!a->is_whole || !b->is_whole)
		return 0;
	while (common < a->count && common < b->count &&
	       !memcmp(&a->links[a->count - 1 - common], &b->links[b->count - 1 - common],
		       sizeof(*a->links)))
		common++;
	return common;
}

static bool is_same_link(const struct python_link *link, bool is_innermost,
			 const struct python_layout *layout, const uint8_t *frame,
			 uint64_t cframe_previous)
{
	struct python_link now;

	fill_link(&now, link->address, layout, frame);
	return now.previous == link->previous && now.code == link->code &&
	       (is_innermost || now.instruction == link->instruction) && now.owner == link->owner &&
	       now.tlbc_index == link->tlbc_index &&
	       is_marked(layout, frame) == (link->cframe != 0) &&
	       (!link->cframe || cframe_previous == link->cframe_previous);
}

/* Compares some links, with one system call. Returns their number, or 0 if one differs. */
static uint32_t compare_some(const struct python_link *links, uint32_t count,
			     const struct python_link *innermost, const struct python_place *place)
{
	uint8_t copies[PROCESS_MEMORY_PARTS_MAX][PYTHON_FRAME_BYTES_MAX];
	uint64_t cframes[PROCESS_MEMORY_PARTS_MAX] = {0};
	struct process_memory_part parts[PROCESS_MEMORY_PARTS_MAX];
	const struct python_layout *layout = &place->layout;
	size_t part_count = 0;
	uint32_t compared = 0;

	for (; compared < count && part_count + 2 <= PROCESS_MEMORY_PARTS_MAX; compared++) {
		const struct python_link *link = &links[compared];

		parts[part_count++] = (struct process_memory_part){copies[compared], link->address,
								   frame_bytes(layout)};
		if (link->cframe)
			parts[part_count++] = (struct process_memory_part){
				&cframes[compared], link->cframe + layout->cframe_previous, 8};
	}
	if (!process_memory_read_parts(place->pid, parts, part_count))
		return 0;
	for (uint32_t i = 0; i < compared; i++)
		if (!is_same_link(&links[i], &links[i] == innermost, layout, copies[i], cframes[i]))
			return 0;
	return compared;
}

bool python_frames_are_current(const struct python_frames *frames, const struct python_place *place)
{
	const struct python_link *innermost = frames->links;
	uint32_t compared;

	if (!start_is_current(frames, place))
		return false;
	while (innermost < frames->links + frames->count && innermost->is_shim)
		innermost++;
	for (uint32_t i = 0; i < frames->count; i += compared) {
		compared = compare_some(&frames->links[i], frames->count - i, innermost, place);
		if (!compared)
			return false;
	}
	return true;
}
