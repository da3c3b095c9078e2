/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of rules: of files, and those that hold by default; and which rows a pattern fits.
 */
#include "diff/rules/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rules_default_lines[] = {
	"gpu-time > 1%",     "path(*) > 1%", "each path([GPU_Memcpy*).count > 0",
	"call(*).count > 0", NULL,
};

int rules_add_default(struct rules *rules)
{
	struct problems none = {0};
	int error = 0;

	for (size_t i = 0; rules_default_lines[i] && !error; i++) {
		error = rules_add(rules, rules_default_lines[i], "default", &none);
		if (!error)
			rules->list[rules->count - 1].is_soft = true;
	}
	problems_free(&none);
	return error;
}

int rules_read(struct rules *rules, const char *path, struct problems *problems)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, origin[4200];
	size_t room = 0, number = 0;
	ssize_t length;
	int result = 0;

	if (!file) {
		problems_add(problems, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	while ((length = getline(&line, &room, file)) >= 0) {
		int error;

		while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
			line[--length] = '\0';
		snprintf(origin, sizeof(origin), "%s:%zu", path, ++number);
		error = rules_add(rules, line, origin, problems);
		result = result ? result : error;
	}
	if (ferror(file)) {
		problems_add(problems, "%s: %s", path, strerror(errno));
		result = -EINVAL;
	}
	free(line);
	fclose(file);
	return result;
}

/* '*' is any text, '?' any character. */
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

/* A kernel's name without what says that it is one, which nobody sees. */
static const char *plain(const char *frame)
{
	static const char mark[] = "[GPU_Kernel]";

	if (!strncmp(frame, mark, strlen(mark)))
		frame += strlen(mark);
	return frame + strspn(frame, " ");
}

/* Does a part of a pattern fit a frame? With '*' it has to fit all of it, else to be in it. */
static bool fits(const char *part, const char *frame)
{
	if (!strpbrk(part, "*?"))
		return strstr(frame, part) != NULL;
	return glob(part, frame) || glob(part, plain(frame));
}

bool rule_matches(const char *pattern, const char *key, bool to_end)
{
	char *parts = strdup(pattern), *frames = strdup(key), *next_part = parts, *part = NULL;
	char *next_frame = frames, *frame;
	bool is_left;

	if (parts && frames)
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
