/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns with '*' and '?', frame by frame.
 */
#include "diff/rules/rule_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* '*' matches any text, '?' any character. */
static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || (*pattern && *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* A frame without the kernel marker, which outputs do not show. */
static const char *plain(const char *frame)
{
	static const char mark[] = "[GPU_Kernel]";

	if (!strncmp(frame, mark, strlen(mark)))
		frame += strlen(mark);
	return frame + strspn(frame, " ");
}

/* A part with '*' or '?' must match the whole frame. Other parts match anywhere in it. */
static bool fits(const char *part, const char *frame)
{
	if (!strpbrk(part, "*?"))
		return strstr(frame, part) != NULL;
	return glob(part, frame) || glob(part, plain(frame));
}

bool rule_matches(const char *pattern, const char *key, bool to_end)
{
	char *parts = xt_strdup(pattern), *frames = xt_strdup(key), *next_part = parts,
	     *part = NULL;
	char *next_frame = frames, *frame;
	bool is_left;

	part = strsep(&next_part, "/");
	while (part && (frame = strsep(&next_frame, ";"))) {
		bool is_last_part = !next_part, is_last_frame = !next_frame;

		if (fits(part, frame) && (!to_end || !is_last_part || is_last_frame))
			part = strsep(&next_part, "/");
	}
	is_left = part || !parts || !frames;
	free(parts);
	free(frames);
	return !is_left;
}
