/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/pair_stacks.h"

#include <string.h>

/* A return address may be the first of the next function. */
static bool is_loop_frame(const struct pair_input *in, uint32_t index)
{
	uint64_t frame = in->native->frames[index];
	uint64_t address = frame & XT_FRAME_VALUE_MASK;

	return in->is_loop(in->context,
			   frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN ? address - 1 : address);
}

static uint32_t count_loop_frames(const struct pair_input *in, uint32_t *innermost)
{
	uint32_t count = 0;

	*innermost = in->native->frame_count;
	for (uint32_t i = in->native->frame_count; i-- > 0;)
		if (is_loop_frame(in, i)) {
			count++;
			*innermost = i;
		}
	return count;
}

/*
 * The native frame that contains an address of the stack. The frame count if it is behind the
 * walked frames; -1 if it is below them, where no live frame is.
 */
static int64_t frame_of(const struct native_stack *native, uint64_t address)
{
	if (!native->frame_count || address < native->stack_pointers[0])
		return -1;
	for (uint32_t i = 1; i < native->frame_count; i++)
		if (address < native->stack_pointers[i])
			return i - 1;
	return native->frame_count;
}

/* Sets the places. False if a Python frame is in a native frame that cannot run it. */
static bool place(const struct pair_input *in, struct paired_stacks *out, uint32_t *anchor_count)
{
	const struct native_stack *native = in->native;
	uint64_t last_anchor = 0;
	uint32_t last = 0;

	*anchor_count = 0;
	for (uint32_t i = 0; i < in->python->frame_count; i++) {
		uint64_t anchor = in->python->frames[i].anchor;
		int64_t at = anchor ? frame_of(native, anchor) : native->frame_count;

		if (anchor && anchor != last_anchor)
			++*anchor_count;
		last_anchor = anchor;
		if (at < (int64_t)last)
			return false;
		if (at < native->frame_count && !is_loop_frame(in, (uint32_t)at))
			return false;
		out->places[i] = last = (uint32_t)at;
	}
	return true;
}

/*
 * While the loop runs a frame, or calls from it, a register or the stack from the loop's frame
 * inwards has the frame's address. If none has it, the Python frames are of another moment.
 */
static bool mentions_innermost(const struct pair_input *in, uint32_t innermost_loop)
{
	const struct native_stack *native = in->native;
	uint64_t address = in->python->innermost, end;
	const struct stack_copy *copy = in->copy;
	uint64_t word;

	for (int i = 0; i < THREAD_REGISTERS; i++)
		if (in->registers->known & 1u << i && in->registers->value[i] == address)
			return true;
	end = innermost_loop + 1 < native->frame_count ? native->stack_pointers[innermost_loop + 1]
						       : UINT64_MAX;
	for (size_t at = 0; at + sizeof(word) <= copy->byte_count; at += sizeof(word)) {
		if (copy->address + at >= end)
			return false;
		memcpy(&word, copy->bytes + at, sizeof(word));
		if (word == address)
			return true;
	}
	return false;
}

static bool fits(const struct pair_input *in, struct paired_stacks *out)
{
	uint32_t innermost_loop, anchor_count, loop_count;
	bool is_complete = !(in->native->flags & XT_STACK_TRUNCATED);

	loop_count = count_loop_frames(in, &innermost_loop);
	if (!place(in, out, &anchor_count))
		return false;
	if (is_complete && !in->python->is_truncated && anchor_count != loop_count)
		return false;
	/* Without a loop frame the walk ended before it, which must not hide what ran since. */
	return in->is_still || (loop_count && mentions_innermost(in, innermost_loop));
}

void pair_stacks(const struct pair_input *in, struct paired_stacks *out)
{
	uint32_t innermost_loop;

	out->flags = in->native ? 0 : XT_CPU_NO_NATIVE;
	out->has_native = in->native;
	out->has_python = (in->read == PYTHON_READ_OK || in->read == PYTHON_READ_CHANGED) &&
			  in->python->frame_count;
	out->python_changed = out->has_python && in->read == PYTHON_READ_CHANGED;
	if (out->python_changed) {
		/* Which native frames are inside of the known Python frames is unknown. */
		out->has_native = false;
		out->flags |= XT_CPU_NO_PYTHON | XT_CPU_NATIVE_DROPPED;
		memset(out->places, 0, in->python->frame_count * sizeof(out->places[0]));
		return;
	}
	if (!out->has_python) {
		bool is_missing = in->read == PYTHON_READ_CHANGED || in->read == PYTHON_READ_FAILED;

		if (is_missing && (!in->native || count_loop_frames(in, &innermost_loop)))
			out->flags |= XT_CPU_NO_PYTHON;
		return;
	}
	if (in->native && !fits(in, out)) {
		out->has_native = false;
		out->flags |= XT_CPU_NATIVE_DROPPED;
	}
	if (!out->has_native)
		memset(out->places, 0, in->python->frame_count * sizeof(out->places[0]));
}
