/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of command lines. Quotes are unknown: the lines were joined with spaces.
 */
#include "diff/history/arguments.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MAX 512 /* the last word contains the rest */

struct words {
	struct word {
		const char *text;
		size_t bytes;
	} list[WORDS_MAX];
	size_t count;
};

struct buffer {
	char *text;
	size_t bytes, used;
};

static void split(struct words *words, const char *text)
{
	words->count = 0;
	while (*(text += strspn(text, " "))) {
		bool is_last = words->count + 1 == WORDS_MAX;
		size_t bytes = is_last ? strlen(text) : strcspn(text, " ");

		words->list[words->count++] = (struct word){text, bytes};
		text += bytes;
	}
}

static bool is_same(const struct word *a, const struct word *b)
{
	return a->bytes == b->bytes && !memcmp(a->text, b->text, a->bytes);
}

__attribute__((format(printf, 2, 3))) static void append(struct buffer *out, const char *format,
							 ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(out->text + out->used, out->bytes - out->used, format, arguments);
	va_end(arguments);
	if (length > 0)
		out->used += (size_t)length;
	if (out->used >= out->bytes)
		out->used = out->bytes - 1;
}

/* Words are separated by single spaces here. */
static void append_words(struct buffer *out, const struct words *words, size_t begin, size_t end)
{
	for (size_t w = begin; w < end; w++)
		append(out, "%s%.*s", w > begin ? " " : "", (int)words->list[w].bytes,
		       words->list[w].text);
}

/* Describes that a[begin..a_end) became b[begin..b_end). The words before are the same. */
static void append_change(struct buffer *out, const struct words *a, size_t a_end,
			  const struct words *b, size_t b_end, size_t begin)
{
	const struct word *option = begin ? &a->list[begin - 1] : NULL;

	if (out->used)
		append(out, ", ");
	if (a_end == begin || b_end == begin) {
		append_words(out, a_end == begin ? b : a, begin, a_end == begin ? b_end : a_end);
		append(out, a_end == begin ? " added" : " removed");
		return;
	}
	/* A changed value follows the name of its option. */
	if (option && option->text[0] == '-' && a->list[begin].text[0] != '-' &&
	    b->list[begin].text[0] != '-')
		append(out, "%.*s ", (int)option->bytes, option->text);
	append_words(out, a, begin, a_end);
	append(out, " -> ");
	append_words(out, b, begin, b_end);
}

const char *arguments_change(char *out, size_t out_bytes, const char *before, const char *after)
{
	struct words a, b;
	struct buffer buffer = {out, out_bytes, 0};
	size_t begin = 0, a_end, b_end;

	out[0] = '\0';
	split(&a, before);
	split(&b, after);
	if (a.count == b.count) {
		for (size_t w = 0; w < a.count; w++)
			if (!is_same(&a.list[w], &b.list[w]))
				append_change(&buffer, &a, w + 1, &b, w + 1, w);
		return out;
	}
	while (begin < a.count && begin < b.count && is_same(&a.list[begin], &b.list[begin]))
		begin++;
	for (a_end = a.count, b_end = b.count; a_end > begin && b_end > begin; a_end--, b_end--)
		if (!is_same(&a.list[a_end - 1], &b.list[b_end - 1]))
			break;
	append_change(&buffer, &a, a_end, &b, b_end, begin);
	return out;
}
