/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the chain of frames, reads the code of each, and finds the native frame that executes it.
 *
 * Runs in the program's threads on the cold path. Reads only memory known to be readable, and
 * accepts an object only if it has the expected type.
 */
#include "inject/python/python_walk.h"

#include <errno.h>
#include <string.h>

#include "inject/memory/memory.h"
#include "inject/python/python_modules.h"
#include "inject/python/python_read.h"
#include "python/python_layout.h"

/*
 * The chain of frames of another thread, which may run meanwhile. Copies memory with system calls,
 * so that frames that are freed do no harm.
 */
#define FRAME_BYTES_MAX 128
#define STEPS_MAX	4096 /* frames of all kinds: memory that changes may look endless */
#define TEXT_BYTES	512

/* Finds where the chain of a state starts. False if it is unreadable. */
static bool python_chain_start(const struct python_runtime *python, uintptr_t state,
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

/* Reads no more than needed: the memory behind a frame may be unmapped. */
static size_t frame_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {layout->frame_previous + 8, layout->frame_code + 8,
				 layout->frame_instruction + 8, layout->frame_owner + 1};

	return python_end(ends, sizeof(ends) / sizeof(*ends), FRAME_BYTES_MAX);
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
	     at = python_member(frame, layout->frame_previous, 8)) {
		if (at % 8 || steps++ == STEPS_MAX || !read_memory(frame, at, bytes))
			return false;
		if (layout->division == PYTHON_BY_SHIM &&
		    python_member(frame, layout->frame_owner, 1) >= PYTHON_OWNER_SHIM)
			continue;
		chain->links[chain->count++] = (struct python_link){
			.code = python_member(frame, layout->frame_code, 8),
			.instruction = python_member(frame, layout->frame_instruction,
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
	length = python_member(head, layout->str_length, 8);
	bits = (uint32_t)python_member(head, layout->str_state, 4) >> layout->str_kind_bit;
	/* kind 1, compact, ASCII */
	if ((bits & 31) != (1u | 1u << 3 | 1u << 4) || length >= TEXT_BYTES ||
	    !read_memory(out, object + layout->str_ascii_bytes, length))
		return false;
	out[length] = '\0';
	*length_out = length;
	return true;
}

bool python_code_is(const struct python_runtime *python, uintptr_t code, const char *name,
		    const char *file_end)
{
	const struct python_layout *layout = &python->layout;
	uintptr_t name_object, file_object;
	char text[TEXT_BYTES];
	size_t length;

	if (code % 8 || !python_has_type(layout, code, "code") ||
	    !read_memory(&name_object, code + layout->code_name, sizeof(name_object)) ||
	    !read_memory(&file_object, code + layout->code_file, sizeof(file_object)))
		return false;
	if (!text_of(layout, name_object, text, &length) || strcmp(text, name) != 0)
		return false;
	return !file_end || (text_of(layout, file_object, text, &length) &&
			     python_ends_with(text, length, file_end));
}

#define PYTHON_FILE_BYTES_MAX 4096

#define OWNED_BY_GENERATOR 1

void python_walk_none(struct python_walk *walk)
{
	walk->frame_count = walk->code_count = walk->flags = walk->code_part_bytes = 0;
	walk->step_count = walk->input_count = walk->run_count = walk->copy_count = 0;
	walk->called_count = 0;
	walk->called_is_cut = false;
	walk->is_unreadable = walk->is_unplaced = walk->is_missing = false;
	walk->hash = 0;
	walk->inputs_complete = true;
}

enum step { STEP_ON, STEP_FULL, STEP_FAILED };

/* Opens the line table. Only the part that a line depends on becomes an input. */
static bool open_lines(struct python_walk *walk, struct python_code *code, bool is_input)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t object, bytes;

	if (!python_read(walk, code->address + layout->code_line_table, 8, is_input, &object) ||
	    !python_is_a(walk, object, "bytes") ||
	    !python_read(walk, object + layout->bytes_size, 8, is_input, &bytes))
		return false;
	code->lines = object + layout->bytes_data;
	code->lines_bytes = bytes;
	code->lines_noted_bytes = is_input ? 0 : SIZE_MAX;
	return true;
}

/*
 * Appends a new code object to the code part. Its version, if it has one, identifies the whole
 * object; versions repeat only after four billion.
 */
static enum step add_code(struct python_walk *walk, uintptr_t address, uint32_t version)
{
	const struct python_layout *layout = &walk->python->layout;
	struct xt_python_code *part = (void *)(walk->code_part + walk->code_part_bytes);
	struct python_code *code = &walk->codes[walk->code_count];
	uint64_t name, file, first_line;
	size_t bytes;
	bool is_input = !version;

	if (walk->code_count == XT_PYTHON_CODES_MAX ||
	    PYTHON_CODE_PART_BYTES - walk->code_part_bytes <
		    sizeof(*part) + PYTHON_NAME_BYTES_MAX + PYTHON_FILE_BYTES_MAX + 8)
		return STEP_FULL;
	*code = (struct python_code){.address = address};
	if (!python_read(walk, address + layout->code_first_line, 4, is_input, &first_line) ||
	    !python_read(walk, address + layout->code_name, 8, is_input, &name) ||
	    !python_read(walk, address + layout->code_file, 8, is_input, &file) ||
	    !open_lines(walk, code, is_input))
		return STEP_FAILED;
	code->first_line = (uint32_t)first_line;
	part->first_line = (uint32_t)first_line;
	if (!python_text(walk, name, PYTHON_KEEP_BEGINNING, is_input, part->text,
			 PYTHON_NAME_BYTES_MAX, &part->name_bytes) ||
	    !python_text(walk, file, PYTHON_KEEP_END, is_input, part->text + part->name_bytes,
			 PYTHON_FILE_BYTES_MAX, &part->file_bytes))
		return STEP_FAILED;
	code->calls_module = python_modules_is_call(walk, part);
	bytes = sizeof(*part) + part->name_bytes + part->file_bytes;
	while (bytes % 8)
		((uint8_t *)part)[bytes++] = 0;
	walk->code_part_bytes += (uint32_t)bytes;
	walk->code_count++;
	return STEP_ON;
}

/* Searches backwards: recursive code was added last. */
static enum step find_code(struct python_walk *walk, uintptr_t address, uint32_t version,
			   uint32_t *index_out)
{
	for (uint32_t i = walk->code_count; i-- > 0;)
		if (walk->codes[i].address == address) {
			*index_out = i;
			return STEP_ON;
		}
	*index_out = walk->code_count;
	return add_code(walk, address, version);
}

static bool line_of(struct python_walk *walk, struct python_code *code, int64_t offset,
		    uint32_t *line_out)
{
	size_t used = 0;

	/* A larger table is not a line table. */
	if (code->lines_bytes >> 30 || !python_can_read(walk, code->lines, code->lines_bytes))
		return false;
	*line_out = python_line(walk->python->layout.line_format, (const uint8_t *)code->lines,
				code->lines_bytes, code->first_line, offset, &used);
	if (code->lines_noted_bytes >= used)
		return true;
	code->lines_noted_bytes &= ~(size_t)7; /* from its last word on */
	if (!python_add_input_bytes(walk, code->lines + code->lines_noted_bytes,
				    used - code->lines_noted_bytes))
		return false;
	code->lines_noted_bytes = used;
	return true;
}

/*
 * Finds the start of a frame's instructions. Free-threaded builds since 3.14 may have a copy per
 * thread, in an array of pointers behind its length. A larger array may replace this one.
 */
static bool first_instruction(struct python_walk *walk, uintptr_t frame, uintptr_t code,
			      uint64_t *out)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t copies, still = 0, index;

	*out = code + layout->code_instructions;
	if (!layout->code_tlbc)
		return true;
	if (!python_read(walk, frame + layout->frame_tlbc_index, 4, false, &index))
		return false;
	do {
		if (!python_read(walk, code + layout->code_tlbc, 8, false, &copies) ||
		    !python_read(walk, copies + 8 + 8 * index, 8, false, out) ||
		    !python_read(walk, code + layout->code_tlbc, 8, false, &still))
			return false;
	} while (still != copies);
	return true;
}

/* The frame's current instruction, in bytes from the first instruction of its code. */
static bool instruction_offset(struct python_walk *walk, uintptr_t frame, uintptr_t code,
			       uint64_t instruction, int64_t *offset_out)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t first;

	if (layout->instruction_bytes) {
		*offset_out = (int64_t)(int32_t)instruction * layout->instruction_bytes;
		return true;
	}
	if (!first_instruction(walk, frame, code, &first))
		return false;
	*offset_out = (int64_t)(instruction - first);
	return true;
}

/*
 * A frame before its first traceable instruction has not started, as Python sees it: a garbage
 * collection may call from there. From 3.13 on, frames that construct objects always stay before
 * it.
 */
static bool is_complete(struct python_walk *walk, uintptr_t frame, uintptr_t code, int64_t offset,
			bool *complete_out)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t first, owner;

	*complete_out = true;
	if (!layout->code_first_traceable)
		return true;
	if (!python_read(walk, code + layout->code_first_traceable, 4, false, &first) ||
	    !python_read(walk, frame + layout->frame_owner, 1, false, &owner))
		return false;
	*complete_out = owner == OWNED_BY_GENERATOR || offset >= (int64_t)first * 2;
	return *complete_out ||
	       python_read(walk, code + layout->code_first_traceable, 4, true, &first);
}

/* Reads what a step compares. */
static bool read_frame(struct python_walk *walk, uintptr_t frame, struct python_step *taken)
{
	const struct python_layout *layout = &walk->python->layout;

	return python_read(walk, frame + layout->frame_code, 8, false, &taken->code) &&
	       python_read(walk, frame + layout->frame_instruction,
			   layout->instruction_bytes ? 4 : 8, false, &taken->instruction);
}

static bool look_at_version(struct python_walk *walk, struct python_step *taken)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t version = 0;

	if (layout->code_version &&
	    !python_read(walk, python_code_of(taken) + layout->code_version, 4, false, &version))
		return false;
	taken->version = (uint32_t)version;
	return true;
}

static enum step add_frame(struct python_walk *walk, uintptr_t frame, struct python_step *taken)
{
	struct xt_python_frame *out = &walk->frames[walk->frame_count];
	uint32_t code_index;
	uintptr_t code;
	int64_t offset;
	bool complete;
	enum step step;

	if (walk->frame_count == XT_PYTHON_FRAMES_MAX)
		return STEP_FULL;
	code = python_code_of(taken);
	if (!python_is_a(walk, code, "code") || !look_at_version(walk, taken) ||
	    !instruction_offset(walk, frame, code, taken->instruction, &offset) ||
	    !is_complete(walk, frame, code, offset, &complete))
		return STEP_FAILED;
	if (!complete)
		return STEP_ON;
	step = find_code(walk, code, taken->version, &code_index);
	if (step != STEP_ON)
		return step;
	if (!line_of(walk, &walk->codes[code_index], offset, &out->line))
		return STEP_FAILED;
	out->code = (uint16_t)code_index;
	if (walk->codes[code_index].calls_module)
		python_modules_note(walk, frame, code);
	walk->frame_count++;
	return STEP_ON;
}

/* The index of the native frame that contains an address; the frame count if none does. */
static uint32_t native_place(const struct stack_walk *native, uint32_t first, uintptr_t address)
{
	for (uint32_t i = first; i + 1 < native->frame_count; i++)
		if (address >= native->stack_pointers[i] && address < native->stack_pointers[i + 1])
			return i;
	return native->frame_count;
}

/*
 * Assigns a run of frames to the native frame that contains `owned`, an object on the activation's
 * stack. An outer run may be beyond the known native frames. The innermost must be on this stack,
 * or else it belongs to another thread.
 */
static void place_run(struct python_walk *walk, const struct stack_walk *native, uintptr_t of_loop,
		      uint32_t *activations)
{
	bool is_truncated;
	uint32_t place;

	if (walk->is_of_other_thread) /* its native frames are not known */
		return;
	is_truncated = native->flags & XT_STACK_TRUNCATED;
	place = native_place(native, walk->place, of_loop);

	if (place < native->frame_count) {
		walk->place = place;
		(*activations)++;
	} else if (walk->first_unplaced < walk->frame_count) {
		bool is_beyond =
			is_truncated && of_loop - (uintptr_t)native->regs < walk->stack_bytes;

		walk->is_unplaced |= !is_truncated;
		walk->is_elsewhere |= !*activations && !is_beyond;
	}
	for (; walk->first_unplaced < walk->frame_count; walk->first_unplaced++)
		walk->frames[walk->first_unplaced].place = (uint16_t)place;
}

static bool is_in_loop(const struct python_runtime *python, uint64_t native_frame)
{
	uint64_t address = native_frame & XT_FRAME_VALUE_MASK;

	return address > python->loop_start && address <= python->loop_end;
}

static uint32_t count_loops(const struct python_runtime *python, const struct stack_walk *native)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < native->frame_count; i++)
		count += is_in_loop(python, native->frames[i]);
	return count;
}

/*
 * Up to 3.9, the state has no pointer into the thread's stack. But an activation that calls
 * something keeps its frame's address on its stack or in a register that its callees save. If no
 * native frame has it, another thread runs the state now.
 */
static bool is_run_here(struct python_walk *walk, const struct stack_walk *native, uintptr_t frame)
{
	const uintptr_t base = (uintptr_t)native->regs;
	uintptr_t end = base + walk->stack_bytes;
	uint64_t word;

	for (uint32_t i = 0; i + 1 < native->frame_count; i++)
		if (is_in_loop(walk->python, native->frames[i])) {
			end = native->stack_pointers[i + 1];
			break;
		}
	for (uintptr_t at = base; at < end && python_read(walk, at, 8, false, &word);
	     at += sizeof(word))
		if (word == frame)
			return true;
	return false;
}

/* Up to 3.9: assigns the n-th frame to the n-th activation, if their numbers are equal. */
static void place_each(struct python_walk *walk, const struct stack_walk *native)
{
	uint32_t loops = count_loops(walk->python, native), next = 0;
	bool is_truncated = native->flags & XT_STACK_TRUNCATED;
	bool is_known =
		!(walk->flags & XT_STACK_PYTHON_TRUNCATED)
			? loops == walk->frame_count || (is_truncated && loops < walk->frame_count)
			: loops >= walk->frame_count;

	walk->is_missing = !(walk->flags & XT_STACK_PYTHON_TRUNCATED) && loops > walk->frame_count;
	walk->is_unplaced = walk->frame_count && !is_known;
	for (uint32_t i = 0; i < native->frame_count && next < walk->frame_count && is_known; i++)
		if (is_in_loop(walk->python, native->frames[i]))
			walk->frames[next++].place = (uint16_t)i;
	for (; next < walk->frame_count; next++)
		walk->frames[next].place = (uint16_t)native->frame_count;
}

/* Marks the outermost frame of a run, or a frame without code. */
struct mark {
	uint32_t owner;
	bool is_shim;
	bool is_entry;
};

static bool read_mark(struct python_walk *walk, uintptr_t frame, struct mark *mark)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t value = 0;

	*mark = (struct mark){0};
	if (layout->division == PYTHON_BY_SHIM) {
		if (!python_read(walk, frame + layout->frame_owner, 1, false, &value))
			return false;
		mark->owner = (uint32_t)value;
		mark->is_shim = value >= PYTHON_OWNER_SHIM;
	} else if (layout->division == PYTHON_EACH_MARKED) {
		mark->is_entry = true;
	} else if (layout->division == PYTHON_BY_FLAG) {
		if (!python_read(walk, frame + layout->frame_is_entry, 1, false, &value))
			return false;
		mark->is_entry = value != 0;
	}
	return true;
}

/* Processes one frame of the chain, or a shim. */
static enum step take_step(struct python_walk *walk, uintptr_t frame, uintptr_t *cframe,
			   const struct stack_walk *native, uint32_t *activations)
{
	const struct python_layout *layout = &walk->python->layout;
	struct python_step *taken = &walk->steps[walk->step_count];
	enum step step = STEP_ON;
	struct mark mark;

	if (walk->step_count == PYTHON_STEPS_MAX)
		return STEP_FULL;
	*taken = (struct python_step){0};
	if (frame % 8 || !read_mark(walk, frame, &mark) || !read_frame(walk, frame, taken))
		return STEP_FAILED;
	taken->owner = mark.owner;
	if (layout->division == PYTHON_BY_SHIM)
		taken->frame = frame;
	if (!mark.is_shim)
		step = add_frame(walk, frame, taken);
	if (step != STEP_ON)
		return step;
	walk->step_count++;
	if (mark.is_entry)
		taken->anchor = *cframe;
	if (mark.is_shim || mark.is_entry)
		place_run(walk, native, mark.is_shim ? frame : *cframe, activations);
	if (mark.is_entry &&
	    !python_read(walk, *cframe + layout->cframe_previous, 8, false, cframe))
		return STEP_FAILED;
	return STEP_ON;
}

static enum step walk_frames(struct python_walk *walk, const struct stack_walk *native,
			     uint32_t *activations)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t frame = walk->thread.innermost, cframe = walk->thread.cframe;
	enum step step = STEP_ON;

	walk->is_elsewhere = layout->division == PYTHON_EACH_UNMARKED && frame &&
			     !walk->is_of_other_thread && !is_run_here(walk, native, frame);
	while (frame && step == STEP_ON && !walk->is_elsewhere &&
	       !python_is_finalizing(walk->python, walk->thread.state)) {
		step = take_step(walk, frame, &cframe, native, activations);
		if (step != STEP_ON)
			break;
		if (!python_read(walk, frame + layout->frame_previous, 8, false, &frame))
			step = STEP_FAILED;
	}
	if (step != STEP_ON) /* the steps do not reach the end of the chain */
		walk->inputs_complete = false;
	return step;
}

static uint64_t hash_words(uint64_t hash, const void *data, size_t bytes)
{
	const uint64_t *words = data;

	for (size_t i = 0; i < bytes / sizeof(*words); i++) {
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

/* Computes python_walk.stack_bytes. */
static uint32_t stack_bytes_of(const struct python_runtime *python, const struct stack_walk *native)
{
	const bool is_truncated = native->flags & XT_STACK_TRUNCATED;
	const uintptr_t last = native->stack_pointers[native->frame_count - 1],
			base = (uintptr_t)native->regs;
	const uintptr_t bytes = is_truncated || last < base ? WALK_STACK_BYTES : last - base;
	bool is_passed = is_truncated || !python;

	for (uint32_t m = 1; m < native->module_count && !is_passed; m++)
		is_passed = (uintptr_t)python->thread_state >= native->modules[m].start &&
			    (uintptr_t)python->thread_state < native->modules[m].end;
	if (!is_passed)
		return 0;
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* Starts at the innermost frame. */
static void walk_and_place(struct python_walk *walk, const struct stack_walk *native)
{
	uint32_t activations = 0;
	enum step step = walk_frames(walk, native, &activations);

	if (step != STEP_ON)
		walk->flags |= XT_STACK_PYTHON_TRUNCATED;
	if (walk->python->layout.division == PYTHON_EACH_UNMARKED) {
		place_each(walk, native);
		return;
	}
	/* The last run has no known end. */
	for (; walk->first_unplaced < walk->frame_count; walk->first_unplaced++)
		walk->frames[walk->first_unplaced].place = (uint16_t)native->frame_count;
	walk->is_missing = step == STEP_ON && count_loops(walk->python, native) > activations;
}

static void begin_walk(struct python_walk *walk, const struct python_runtime *python,
		       const struct python_thread *thread)
{
	python_walk_none(walk);
	walk->python = python;
	walk->thread = *thread;
	memset(walk->readable_pages, 0, sizeof(walk->readable_pages));
	walk->noted_count = walk->first_unplaced = walk->place = 0;
	walk->is_elsewhere = walk->is_of_other_thread = false;
}

bool python_walk_other_thread(struct python_walk *walk, const struct python_runtime *python,
			      uintptr_t state, uintptr_t frame)
{
	const struct stack_walk *no_native = NULL;
	struct python_thread thread = {.state = state};
	int saved_errno = errno;
	uint32_t activations = 0;
	bool is_whole;

	begin_walk(walk, python, &thread);
	walk->is_of_other_thread = true;
	is_whole = python_chain_start(python, state, &walk->thread);
	walk->thread.innermost = frame;
	is_whole = is_whole && walk_frames(walk, no_native, &activations) == STEP_ON;
	for (uint32_t i = 0; i < walk->frame_count; i++)
		walk->frames[i].place = 0; /* beyond all native frames: there are none */
	errno = saved_errno;
	return is_whole;
}

void python_walk(struct python_walk *walk, const struct python_runtime *python,
		 const struct python_thread *thread, const struct stack_walk *native)
{
	int saved_errno = errno;

	begin_walk(walk, python, thread);
	walk->stack_bytes = stack_bytes_of(python, native);
	/* The native walk took long, so check again. */
	if (thread->state && walk->stack_bytes && !python_is_finalizing(python, thread->state) &&
	    python_enter(python, native->regs, walk->stack_bytes, &walk->thread)) {
		walk_and_place(walk, native);
	} else {
		walk->thread = (struct python_thread){0};
		walk->is_missing = python && count_loops(python, native);
	}
	if (walk->is_elsewhere) { /* not cached: walked again each time */
		python_walk_none(walk);
		walk->inputs_complete = false;
		walk->is_missing = count_loops(python, native);
	}
	walk->hash =
		hash_words(walk->flags, walk->frames, walk->frame_count * sizeof(*walk->frames));
	walk->hash = hash_words(walk->hash, walk->code_part, walk->code_part_bytes);
	if (walk->called_count)
		python_modules_add(walk);
	errno = saved_errno;
}
