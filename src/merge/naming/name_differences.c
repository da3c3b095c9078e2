/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts names at brackets and scopes.
 */
#include "merge/naming/name_differences.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/naming/short_names.h"

#define PART_BYTES_MAX	96 /* of a difference */
#define PART_TAIL_BYTES 29
#define BRACKETS_MAX	8 /* restored at most; beyond that, brackets stay unpaired */

bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_$:#~", c)) || (c & 0x80);
}

/* Returns the start of the "{lambda(int)#1}" around at, else at. */
static size_t lambda_start(const char *text, size_t at)
{
	for (size_t i = at; i-- && text[i] != '}';)
		if (text[i] == '{')
			return i;
	return at;
}

/* Returns the end of the "{lambda(int)#1}" around at, else at. */
static size_t lambda_end(const char *text, size_t at)
{
	for (size_t i = at; text[i] && text[i] != '{'; i++)
		if (text[i] == '}')
			return i + 1;
	return at;
}

/* Returns the length of the part before the first unmatched closing bracket. */
static size_t balanced(const char *text, size_t length)
{
	int depth = 0;

	for (size_t i = 0; i < length; i++) {
		depth += text[i] && strchr("<({", text[i]);
		if (text[i] && strchr(">)}", text[i]) && depth-- == 0)
			return i;
	}
	return length;
}

void name_common_ends(const struct names *names, const uint32_t *list, size_t count,
		      size_t *head_out, size_t *tail_out)
{
	const char *first = names_text(names, list[0], NULL);
	size_t length = strlen(first), head = length, tail = count > 1 ? length : 0;

	for (size_t i = 1; i < count; i++) {
		const char *text = names_text(names, list[i], NULL);
		size_t other = strlen(text), same = 0, room;

		while (same < head && same < other && text[same] == first[same])
			same++;
		head = same;
		room = (other < length ? other : length) - head;
		for (same = 0; same < tail && same < room &&
			       text[other - 1 - same] == first[length - 1 - same];)
			same++;
		tail = same;
	}
	/* A shorter head found later only leaves more room, so head and tail never overlap. */
	while (head && is_name_char(first[head - 1]))
		head--;
	head = lambda_start(first, head);
	while (tail && is_name_char(first[length - tail]))
		tail--;
	tail = length - lambda_end(first, length - tail);
	*head_out = head;
	*tail_out = tail;
}

/* Removes the scopes "a::b::" from names. */
static size_t drop_scopes(char *text, size_t length)
{
	size_t out = 0, word = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == ':' && i + 2 < length && text[i + 1] == ':' && out > word &&
		    (isalnum((unsigned char)text[i + 2]) || text[i + 2] == '_')) {
			out = word;
			i++;
			continue;
		}
		text[out++] = text[i];
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			word = out;
	}
	return out;
}

/* Trims separators and a pair of brackets: "(int)", ", int", "::f". */
static void trim(const char **text, size_t *length)
{
	const char *part = *text, *end = part + *length;

	while (part < end && strchr(" ,:", *part))
		part++;
	while (end > part && strchr(" ,", end[-1]))
		end--;
	if (end - part > 2 && *part == '(' && end[-1] == ')' &&
	    balanced(part + 1, (size_t)(end - part) - 1) == (size_t)(end - part) - 2) {
		part++;
		end--;
	}
	*text = part;
	*length = (size_t)(end - part);
}

/*
 * Extends a difference until its brackets match: "float>, array<char" becomes "Functor<float>,
 * array<char>".
 */
static void pair_brackets(const char *text, size_t *head, size_t *end)
{
	size_t at = *head, length = strlen(text);
	int depth = 0;

	for (int i = 0; i < BRACKETS_MAX && balanced(text + at, *end - at) < *end - at; i++) {
		for (depth = 0; at; depth += strchr(">)}", text[at]) != NULL)
			if (strchr("<({", text[--at]) && depth-- == 0)
				break;
		while (at && is_name_char(text[at - 1]))
			at--;
	}
	if (balanced(text + at, *end - at) == *end - at)
		*head = at;
	depth = 0;
	for (at = *head; at < *end; at++)
		depth += !!strchr("<({", text[at]) - !!strchr(">)}", text[at]);
	for (at = *end; depth > 0 && at < length; at++)
		depth += !!strchr("<({", text[at]) - !!strchr(">)}", text[at]);
	if (!depth)
		*end = at;
}

char *name_difference(const char *text, size_t head, size_t end, bool is_first)
{
	const char *part;
	size_t length;
	char *room;

	if (!is_first)
		pair_brackets(text, &head, &end);
	room = xt_strndup(text + head, end - head);
	part = room;
	length = drop_scopes(room, strlen(room));
	if (is_first)
		length = balanced(part, length);
	trim(&part, &length);
	memmove(room, part, length);
	room[name_cut_middle(room, length, PART_BYTES_MAX, PART_TAIL_BYTES)] = '\0';
	return room;
}
