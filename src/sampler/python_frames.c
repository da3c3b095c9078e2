/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first read follows pointers. The second one knows all addresses, so it takes one system call
 * for many frames.
 */
#include "sampler/python_frames.h"

#include <string.h>

#include "log/base/monotonic.h"
#include "sampler/process_read.h"
#include "sampler/thread_descriptor.h"

#define STATE_BYTES_MAX	  512
#define STATUS_BOUND	  0x03u /* initialised and bound to a thread */
#define STATUS_BOUND_MASK 0x07u
#define MOMENTS_MAX	  8

static uint64_t member(const uint8_t *object, uint32_t offset, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, object + offset, bytes);
	return value;
}

static size_t largest(const uint16_t *ends, size_t count, size_t most)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes = ends[i] > bytes ? ends[i] : bytes;
	return bytes < most ? bytes : most;
}

static size_t state_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {24, layout->state_pthread + 8, layout->state_frame + 8,
				 layout->state_cframe + 8, layout->state_status + 4};

	return largest(ends, sizeof(ends) / sizeof(*ends), STATE_BYTES_MAX);
}

/* Reads no more than needed: the memory behind a frame may be unmapped. */
static size_t frame_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {layout->frame_previous + 8,	layout->frame_code + 8,
				 layout->frame_instruction + 8, layout->frame_owner + 1,
				 layout->frame_is_entry + 1,	layout->frame_tlbc_index + 4};

	return largest(ends, sizeof(ends) / sizeof(*ends), PYTHON_FRAME_BYTES_MAX);
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
		parts[count++] = (struct process_memory_part){
			&copy->tid, state->pthread + THREAD_DESCRIPTOR_TID, 4};
	return count;
}

static void evaluate_start(const struct start_copy *copy, const struct python_layout *layout,
			   const struct python_state *state, struct python_start *out)
{
	uint32_t status = STATUS_BOUND;

	if (layout->state_status)
		status = (uint32_t)member(copy->state, layout->state_status, 4);
	out->is_of_thread = member(copy->state, 16, 8) == state->interpreter &&
			    member(copy->state, layout->state_pthread, 8) == state->pthread &&
			    (!state->has_tid_word || copy->tid == state->tid) &&
			    (status & STATUS_BOUND_MASK) == STATUS_BOUND;
	out->is_finalizing = copy->finalizing && copy->finalizing != state->address;
	out->is_active = status & PYTHON_STATUS_ACTIVE;
	if (layout->state_cframe)
		out->cframe = member(copy->state, layout->state_cframe, 8);
	if (layout->state_frame)
		out->innermost = member(copy->state, layout->state_frame, 8);
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
	window->end = page + PYTHON_WINDOW_PAGE_BYTES;
	if (address + bytes > window->end)
		window->end = address + bytes;
	if (process_memory_read(place->pid, window->bytes, page, window->end - page))
		return window->bytes + (address - page);
	window->start = window->end = 0;
	return NULL;
}

static void fill_link(struct python_link *link, uint64_t address,
		      const struct python_layout *layout, const uint8_t *frame)
{
	*link = (struct python_link){.address = address,
				     .previous = member(frame, layout->frame_previous, 8),
				     .code = member(frame, layout->frame_code, 8),
				     .instruction = member(frame, layout->frame_instruction,
							   layout->instruction_bytes ? 4 : 8)};
	if (layout->frame_owner)
		link->owner = (uint32_t)member(frame, layout->frame_owner, 1);
	if (layout->frame_tlbc_index)
		link->tlbc_index = (uint32_t)member(frame, layout->frame_tlbc_index, 4);
	link->is_shim = layout->division == PYTHON_BY_SHIM && link->owner >= PYTHON_OWNER_SHIM;
}

/* Whether an activation's struct _PyCFrame belongs to the frame. */
static bool is_marked(const struct python_layout *layout, const uint8_t *frame)
{
	return layout->division == PYTHON_EACH_MARKED ||
	       (layout->division == PYTHON_BY_FLAG && member(frame, layout->frame_is_entry, 1));
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
		cframe = link->cframe_previous = member(frame, 0, 8);
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

static bool is_same(const struct python_link *link, bool is_innermost,
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
		if (!is_same(&links[i], &links[i] == innermost, layout, copies[i], cframes[i]))
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
