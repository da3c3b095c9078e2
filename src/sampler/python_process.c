/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target may run while its memory is read. So a read takes three steps: the chain of frames,
 * the code objects of these frames, and the chain again. If the chain was equal both times, its
 * frames kept their code objects alive in between.
 */
#include "sampler/python_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/monotonic.h"
#include "sampler/process_read.h"
#include "sampler/python_code.h"
#include "sampler/python_find.h"
#include "sampler/python_frames.h"
#include "sampler/python_states.h"

#define REFRESH_NS	   10000000
#define PAUSE_MIN_NS	   12000
#define PAUSE_RANGE_NS	   16384 /* a power of two */
#define PAUSED_READS	   2
#define READS_MAX	   3 /* of a chain that changes while it is read */
#define OWNED_BY_GENERATOR 1

struct python_process {
	struct python_place place;
	struct python_states states;
	struct python_codes codes;
	struct python_frames frames;
	struct python_frames again; /* a later read, if the chain changed */
	struct python_code *link_codes[PYTHON_LINKS_MAX];
	uint32_t first_frames[PYTHON_LINKS_MAX]; /* number of frames inside of each link */
	uint64_t refreshed_ns;
	uint64_t random;
};

int python_process_open(struct python_process **out, pid_t pid,
			const struct process_modules *modules, char *why, size_t why_bytes)
{
	struct python_process *process = calloc(1, sizeof(*process));
	int rc;

	*out = NULL;
	if (!process)
		return -ENOMEM;
	rc = python_find_in(&process->place, pid, modules, why, why_bytes);
	if (rc) {
		free(process);
		return rc;
	}
	process->random = monotonic_ns() | 1;
	python_process_refresh(process);
	*out = process;
	return 0;
}

void python_process_close(struct python_process *process)
{
	if (!process)
		return;
	python_states_free(&process->states);
	python_codes_free(&process->codes);
	free(process);
}

const char *python_process_version(const struct python_process *process)
{
	return process->place.version;
}

const char *python_process_path(const struct python_process *process)
{
	return process->place.path;
}

void python_process_refresh(struct python_process *process)
{
	uint64_t now = monotonic_ns();

	if (now - process->refreshed_ns < REFRESH_NS)
		return;
	process->refreshed_ns = now;
	python_states_refresh(&process->states, &process->place);
}

/*
 * A thread that entered several interpreters has several states with frames. From 3.12 on, the one
 * in which it runs is marked; it then holds the lock of that interpreter. Otherwise none is chosen.
 */
static enum python_read choose_state(struct python_process *process, pid_t tid,
				     struct python_state *out)
{
	size_t count, with_frames = 0;
	const struct python_state *states = python_states_of(&process->states, tid, &count);
	struct python_start start;
	bool has_active = false;

	if (!states)
		return PYTHON_READ_NONE;
	*out = states[0];
	for (size_t i = 0; i < count && count > 1; i++) {
		if (!python_frames_start(&process->place, &states[i], &start))
			return PYTHON_READ_FAILED;
		if (!start.is_of_thread || !start.innermost || (has_active && !start.is_active))
			continue;
		with_frames += !start.is_active;
		has_active |= start.is_active;
		*out = states[i];
	}
	return with_frames > 1 && !has_active ? PYTHON_READ_FAILED : PYTHON_READ_OK;
}

/* Tells the processor that this thread spins. */
static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

/*
 * Spins for a random time: a thread in a loop must not be read at the same place of the loop both
 * times.
 */
static void pause_briefly(struct python_process *process)
{
	uint64_t end;

	process->random ^= process->random << 13;
	process->random ^= process->random >> 7;
	process->random ^= process->random << 17;
	end = monotonic_ns() + PAUSE_MIN_NS + (process->random & (PAUSE_RANGE_NS - 1));
	while (monotonic_ns() < end)
		relax();
}

static bool is_still_current(struct python_process *process, bool has_pause)
{
	for (int i = 0; has_pause && i < PAUSED_READS - 1; i++) {
		pause_briefly(process);
		if (!python_frames_are_current(&process->frames, &process->place))
			return false;
	}
	if (has_pause)
		pause_briefly(process);
	return python_frames_are_current(&process->frames, &process->place);
}

/* The instruction in bytes from the first one of its code. See python_walk.c. */
static bool instruction_offset(const struct python_place *place, const struct python_link *link,
			       uint64_t code, int64_t *out)
{
	const struct python_layout *layout = &place->layout;
	uint64_t first = code + layout->code_instructions, copies;

	if (layout->instruction_bytes) {
		*out = (int64_t)(int32_t)link->instruction * layout->instruction_bytes;
		return true;
	}
	if (layout->code_tlbc &&
	    (!process_memory_read(place->pid, &copies, code + layout->code_tlbc, sizeof(copies)) ||
	     !process_memory_read(place->pid, &first, copies + 8 + 8 * (uint64_t)link->tlbc_index,
				  sizeof(first))))
		return false;
	*out = (int64_t)(link->instruction - first);
	return true;
}

static uint64_t code_of(const struct python_link *link)
{
	return link->code & ~UINT64_C(3);
}

/* Resolves the code of the frames from `first` on. */
static bool resolve_codes(struct python_process *process, uint32_t first)
{
	const struct python_frames *frames = &process->frames;
	/* Versions are unique within one interpreter that is not started again. */
	bool has_versions = process->place.layout.code_version && process->place.is_program &&
			    process->states.interpreter_count == 1;

	python_codes_begin(&process->codes);
	for (uint32_t i = first; i < frames->count; i++) {
		const struct python_link *link = &frames->links[i];

		if (link->is_shim)
			continue;
		process->link_codes[i] = python_codes_use(&process->codes, code_of(link));
		if (!process->link_codes[i])
			return false;
	}
	return python_codes_check(&process->codes, &process->place, has_versions);
}

/* Adds a frame unless it is incomplete: python_walk.c has the reasons. */
static bool add_frame(struct python_process *process, uint32_t index, struct python_stack *out)
{
	const struct python_link *link = &process->frames.links[index];
	struct python_code *code = process->link_codes[index];
	const struct python_layout *layout = &process->place.layout;
	int64_t offset;

	if (!instruction_offset(&process->place, link, code->address, &offset))
		return false;
	if (layout->code_first_traceable && link->owner != OWNED_BY_GENERATOR &&
	    offset < (int64_t)code->identity.first_traceable * 2)
		return true;
	out->frames[out->frame_count++] = (struct python_frame_read){
		.function = code->function, .line = python_code_line(code, layout, offset)};
	return true;
}

/* Frames since `first` belong to the activation whose native frame contains the anchor. */
static void set_anchors(struct python_stack *out, uint32_t first, uint64_t anchor)
{
	for (uint32_t i = first; i < out->frame_count; i++)
		out->frames[i].anchor = anchor;
}

/* Fills in the frames from the link `first` on. */
static bool fill_stack(struct python_process *process, uint32_t first, struct python_stack *out)
{
	const struct python_frames *frames = &process->frames;
	uint32_t without_anchor = 0;

	if (!resolve_codes(process, first))
		return false;
	for (uint32_t i = first; i < frames->count; i++) {
		const struct python_link *link = &frames->links[i];

		process->first_frames[i] = out->frame_count;
		if (!link->is_shim && !add_frame(process, i, out))
			return false;
		if (!link->is_shim && !link->cframe)
			continue;
		set_anchors(out, without_anchor, link->is_shim ? link->address : link->cframe);
		without_anchor = out->frame_count;
	}
	set_anchors(out, without_anchor, 0);
	out->innermost = first ? 0 : frames->start.innermost;
	out->is_truncated = !frames->is_whole;
	out->time_ns = frames->time_ns;
	return true;
}

/* A read that follows a frame which ends meanwhile fails; the next one may not. */
static bool read_chain(struct python_process *process, const struct python_state *state,
		       struct python_frames *frames)
{
	for (int i = 0; i < READS_MAX; i++) {
		if (python_frames_read(frames, &process->place, state, XT_PYTHON_FRAMES_MAX))
			return true;
		if (!frames->start.is_of_thread)
			return false;
	}
	return false;
}

/* Removes the frames of the links before `first`. */
static void drop_inner(const struct python_process *process, uint32_t first,
		       struct python_stack *out)
{
	uint32_t dropped =
		first < process->frames.count ? process->first_frames[first] : out->frame_count;

	out->frame_count -= dropped;
	memmove(out->frames, out->frames + dropped, out->frame_count * sizeof(*out->frames));
}

/*
 * Reads the chain twice more. Frames at its outer end that are the same in all reads were alive all
 * the time, and so were their code objects.
 */
static void find_common_frames(struct python_process *process, const struct python_state *state,
			       struct python_stack *out)
{
	const struct python_frames *frames = &process->frames;
	uint32_t common, last;

	out->frame_count = 0;
	out->is_truncated = false;
	if (!frames->is_whole || !read_chain(process, state, &process->again))
		return;
	common = python_frames_common(frames, &process->again);
	if (!common || !fill_stack(process, frames->count - common, out) ||
	    !read_chain(process, state, &process->again)) {
		out->frame_count = 0;
		return;
	}
	last = python_frames_common(frames, &process->again);
	if (last < common)
		drop_inner(process, frames->count - last, out);
}

/* The first read may itself be torn between two moments. Then the next one is the first. */
static void keep_common_frames(struct python_process *process, const struct python_state *state,
			       struct python_stack *out)
{
	find_common_frames(process, state, out);
	for (int i = 1; i < READS_MAX && !out->frame_count; i++) {
		if (!read_chain(process, state, &process->frames))
			return;
		find_common_frames(process, state, out);
	}
}

enum python_read python_process_read(struct python_process *process, pid_t tid, bool has_pause,
				     struct python_stack *out)
{
	struct python_state state;
	enum python_read found;

	out->frame_count = 0;
	out->is_truncated = false;
	out->innermost = 0;
	found = choose_state(process, tid, &state);
	if (found == PYTHON_READ_NONE) {
		python_process_refresh(process);
		found = choose_state(process, tid, &state);
	}
	if (found != PYTHON_READ_OK)
		return found;
	if (!read_chain(process, &state, &process->frames)) {
		python_process_refresh(process);
		return process->frames.start.is_of_thread ? PYTHON_READ_CHANGED
							  : PYTHON_READ_FAILED;
	}
	if (!process->frames.count)
		return PYTHON_READ_NONE;
	if (!python_frames_note_time(&process->frames, &process->place)) {
		keep_common_frames(process, &state, out);
		return PYTHON_READ_CHANGED;
	}
	if (!fill_stack(process, 0, out)) {
		out->frame_count = 0;
		if (python_frames_are_current(&process->frames, &process->place))
			return PYTHON_READ_FAILED;
		keep_common_frames(process, &state, out);
		return PYTHON_READ_CHANGED;
	}
	if (!is_still_current(process, has_pause)) {
		keep_common_frames(process, &state, out);
		return PYTHON_READ_CHANGED;
	}
	return out->frame_count ? PYTHON_READ_OK : PYTHON_READ_NONE;
}

const struct python_function *python_process_function(const struct python_process *process,
						      uint32_t function)
{
	return function < process->codes.function_count ? process->codes.functions[function] : NULL;
}

bool python_process_is_gil(const struct python_process *process, uint64_t futex_address)
{
	return python_states_is_gil(&process->states, &process->place, futex_address);
}

pid_t python_process_gil_holder(const struct python_process *process)
{
	uint64_t state = python_states_gil_holder(&process->states, &process->place);

	return state ? python_states_tid(&process->states, state) : 0;
}

bool python_process_is_loop(const struct python_process *process, uint64_t address)
{
	const struct python_place *place = &process->place;

	return (address > place->loop_start && address <= place->loop_end) ||
	       (address > place->cold_start && address <= place->cold_end);
}
