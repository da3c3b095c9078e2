/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the frames of a call path that tell a reader where it is.
 */
#include "diff/compare/source_places.h"

#include <string.h>

/* The file of "f (file.c:12)", and its length; NULL if the frame has no line. */
static const char *file_of(const char *frame, size_t *length_out)
{
	size_t length = strlen(frame), end = length;
	const char *open;

	if (length < 5 || frame[length - 1] != ')')
		return NULL;
	for (end = length - 2; end && frame[end] >= '0' && frame[end] <= '9'; end--)
		;
	if (end == length - 2 || frame[end] != ':')
		return NULL;
	open = memrchr(frame, '(', end);
	if (!open || open == frame || open[-1] != ' ')
		return NULL;
	*length_out = (size_t)(frame + end - open - 1);
	return open + 1;
}

/* Does the function of this frame occur elsewhere in the path? */
static bool is_repeated(const struct profile_entry *entry, uint32_t frame)
{
	size_t length = strcspn(entry->frames[frame], " ") + 1;

	for (uint32_t f = 0; f < entry->frame_count; f++)
		if (f != frame && !strncmp(entry->frames[f], entry->frames[frame], length))
			return true;
	return false;
}

/* Is the frame in the file of the outermost frame with a line? */
static bool is_own(const struct profile_entry *entry, uint32_t frame)
{
	size_t length, own_length = 0;
	const char *file = file_of(entry->frames[frame], &length), *own = NULL;

	for (uint32_t f = 0; f < entry->frame_count && !own; f++)
		own = file_of(entry->frames[f], &own_length);
	return file && length == own_length && !memcmp(file, own, length);
}

static size_t select_places(const struct profile_entry *entry, bool takes_repeated,
			    const char *places[SOURCE_PLACES_MAX])
{
	size_t count = 0, length;
	bool has_own = false;

	for (uint32_t f = entry->frame_count; f-- > 0 && count < SOURCE_PLACES_MAX;) {
		bool own = is_own(entry, f);

		if (!file_of(entry->frames[f], &length) ||
		    (!takes_repeated && is_repeated(entry, f)))
			continue;
		/* Keep the last place for a frame in the program's own file. */
		if (!own && !has_own && count == SOURCE_PLACES_MAX - 1)
			continue;
		has_own |= own;
		places[count++] = entry->frames[f];
	}
	return count;
}

/* CUDA and PyTorch internals, which are the same for every operation. */
static bool is_plumbing(const struct profile_entry *entry, const char *frame)
{
	static const char *const starts[] = {"cuda", "cuLaunch", "cuMem", "c10::impl::"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (entry->level == LEVEL_PATH && !strncmp(frame, starts[i], strlen(starts[i])))
			return true;
	return entry->level == LEVEL_PATH && strstr(frame, "gpu_kernel_impl");
}

/* PyTorch's backward threads have no frames of the user. This function names the operation. */
#define AUTOGRAD_MARK "torch::autograd::generated::"

/* Without lines: named functions, except those of the Python interpreter and the kernel. */
static size_t select_names(const struct profile_entry *entry, const char *places[SOURCE_PLACES_MAX])
{
	size_t count = 0;

	for (uint32_t f = entry->frame_count - 1; f-- > 0 && !count;)
		if (!strncmp(entry->frames[f], AUTOGRAD_MARK, strlen(AUTOGRAD_MARK)))
			places[count++] = entry->frames[f];
	for (uint32_t f = entry->frame_count - 1; f-- > 0 && count < SOURCE_PLACES_MAX;) {
		const char *frame = entry->frames[f];

		if (frame[0] != '[' && !is_plumbing(entry, frame) && !strstr(frame, "+0x") &&
		    strncmp(frame, "_Py", 3) && strncmp(frame, "Py", 2) && !is_repeated(entry, f) &&
		    (!count || frame != places[0]))
			places[count++] = frame;
	}
	return count;
}

size_t source_places(const struct profile_entry *entry, const char *places[SOURCE_PLACES_MAX])
{
	size_t count = select_places(entry, false, places);

	if (!count)
		count = select_places(entry, true, places);
	return count ? count : select_names(entry, places);
}

bool source_place_is_own(const struct profile_entry *entry, const char *place)
{
	for (uint32_t f = 0; f < entry->frame_count; f++)
		if (entry->frames[f] == place)
			return is_own(entry, f);
	return false;
}
