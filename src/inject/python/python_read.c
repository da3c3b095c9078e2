/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a page is readable before reading it. Inputs are stored as they were read. Runs in
 * the program's threads on the cold path.
 */
#include "inject/python/python_read.h"

#include <string.h>

#include "inject/runtime/read_memory.h"

/* Reads the aligned word that contains `address`; false if not readable. */
static bool word_at(struct python_walk *walk, uintptr_t address, uint64_t *out)
{
	const uintptr_t page = address & ~(uintptr_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1);
	uintptr_t *known = &walk->readable_pages[address / XT_CRASH_BUFFER_PAGE_BYTES % 16];

	/* The other thread may unmap it meanwhile. */
	if (walk->is_of_other_thread) {
		if (read_memory(out, address & ~(uintptr_t)7, sizeof(*out)))
			return true;
		walk->is_unreadable = true;
		return false;
	}
	if (*known != page) {
		if (!page || !stack_walk_can_read(page)) {
			walk->is_unreadable = true;
			walk->inputs_complete = false;
			return false;
		}
		*known = page;
	}
	*out = __atomic_load_n((const uint64_t *)(address & ~(uintptr_t)7), __ATOMIC_RELAXED);
	return true;
}

bool python_read(struct python_walk *walk, uintptr_t address, unsigned bytes, bool as_input,
		 uint64_t *out)
{
	unsigned shift = address % 8 * 8;
	uint64_t mask = bytes == 8 ? UINT64_MAX : ((UINT64_C(1) << bytes * 8) - 1) << shift;
	uint64_t word;

	if (!word_at(walk, address, &word))
		return false;
	if (as_input)
		python_add_input(walk, address, mask, word);
	*out = (word & mask) >> shift;
	return true;
}

void python_add_input(struct python_walk *walk, uintptr_t address, uint64_t mask, uint64_t word)
{
	if (walk->input_count == PYTHON_INPUTS_MAX) {
		walk->inputs_complete = false;
		return;
	}
	walk->inputs[walk->input_count++] = (struct python_input){
		.word = (const uint64_t *)(address & ~(uintptr_t)7),
		.mask = mask,
		.value = word & mask,
	};
}

static bool note_run(struct python_walk *walk, uintptr_t address, uint32_t count)
{
	uint64_t *copy = walk->copies + walk->copy_count;

	if (!count)
		return true;
	if (walk->run_count == PYTHON_RUNS_MAX ||
	    count > PYTHON_COPY_WORDS_MAX - walk->copy_count) {
		walk->inputs_complete = false;
		return true;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!word_at(walk, address + i * 8, &copy[i]))
			return false;
	walk->runs[walk->run_count++] =
		(struct python_run){(const uint64_t *)address, count, walk->copy_count};
	walk->copy_count += count;
	return true;
}

bool python_add_input_bytes(struct python_walk *walk, uintptr_t address, size_t bytes)
{
	uint64_t mask = (UINT64_C(1) << bytes % 8 * 8) - 1, last;

	if (!note_run(walk, address, (uint32_t)(bytes / 8)))
		return false;
	if (!mask)
		return true;
	if (!word_at(walk, address + (bytes & ~(size_t)7), &last))
		return false;
	python_add_input(walk, address + (bytes & ~(size_t)7), mask, last);
	return true;
}

bool python_can_read(struct python_walk *walk, uintptr_t address, size_t bytes)
{
	uint64_t word;

	for (uintptr_t at = address & ~(uintptr_t)7; at < address + bytes;
	     at = (at | (XT_CRASH_BUFFER_PAGE_BYTES - 1)) + 1)
		if (!word_at(walk, at, &word))
			return false;
	return true;
}

bool python_is_a(struct python_walk *walk, uintptr_t object, const char *type_name)
{
	const struct python_layout *layout = &walk->python->layout;
	size_t bytes = strlen(type_name) + 1;
	uint64_t type, name;

	if (object % 8 || !python_read(walk, object + layout->object_type, 8, false, &type) ||
	    type % 8 || !python_read(walk, type + layout->type_name, 8, false, &name) ||
	    !python_can_read(walk, name, bytes))
		return false;
	if (!memcmp((const void *)name, type_name, bytes))
		return true;
	walk->is_unreadable = true;
	walk->inputs_complete = false;
	return false;
}
