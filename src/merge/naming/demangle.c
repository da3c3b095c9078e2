/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names come from untrusted files, and a few bytes can demangle to gigabytes. The demangler is
 * aborted if its output exceeds SHOWN_BYTES_MAX. The mangled name is then shown.
 *
 * To shorten a name, computes for each character how many template argument lists enclose it. The
 * text before a '<' decides its meaning:
 * - An argument list follows a name.
 * - "operator<" and "->" are not brackets.
 * - "<T as U>" of Rust is a bracket but not an argument list.
 */
#include "merge/naming/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "base/text.h"

#define DOTS	  "..."
#define DEPTH_MAX 64 /* of nested brackets; deeper names are only cut */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

static bool has_word(const char *text, size_t length, size_t at, const char *word)
{
	size_t word_length = strlen(word);

	return length - at >= word_length && !memcmp(text + at, word, word_length);
}

/* Removes anonymous namespaces. */
static size_t drop_anonymous(char *text, size_t length)
{
	static const char *const scopes[] = {"(anonymous namespace)::", "{anonymous}::"};
	size_t out = 0;

	for (size_t i = 0; i < length;) {
		size_t skip = 0;

		for (size_t s = 0; s < sizeof(scopes) / sizeof(scopes[0]); s++)
			if (has_word(text, length, i, scopes[s]))
				skip = strlen(scopes[s]);
		/* nvcc names an anonymous namespace _INTERNAL_<hash>_<length>_<file>. */
		if ((!i || !is_word(text[i - 1])) && has_word(text, length, i, "_INTERNAL_")) {
			size_t end = i;

			while (end < length && is_word(text[end]))
				end++;
			if (has_word(text, length, end, "::"))
				skip = end + 2 - i;
		}
		if (skip)
			i += skip;
		else if (text[i] == ' ' && i && i + 1 < length && text[i - 1] == '>' &&
			 text[i + 1] == '>')
			i++;
		else
			text[out++] = text[i++];
	}
	return out;
}

/* Returns the length of an operator name or arrow at this position, which has no brackets, or 0. */
static size_t no_brackets(const char *text, size_t length, size_t at)
{
	size_t end = at + strlen("operator");

	if (has_word(text, length, at, "->"))
		return 2;
	if (!has_word(text, length, at, "operator") || (at && is_word(text[at - 1])))
		return 0;
	while (end < length && end - at < strlen("operator<=>") && strchr("<>=-*", text[end]))
		end++;
	/* "operator<<int>": the last '<' before a name opens an argument list. */
	if (end < length && is_word(text[end]) && text[end - 1] == '<' &&
	    end - at > strlen("operator<"))
		end--;
	return end - at;
}

/* Returns whether the '<' begins an argument list. "operator<< <int>" has a space before it. */
static bool opens_list(const char *text, size_t at)
{
	if (at > 1 && text[at - 1] == ' ')
		at--;
	else if (at && is_word(text[at - 1]))
		return true;
	return at && strchr(":})]=<>-*", text[at - 1]);
}

/*
 * Sets the depth in argument lists of each character. Brackets belong to the outer depth. Returns
 * false if brackets do not match.
 */
static bool measure(const char *text, size_t length, uint8_t *depth)
{
	bool is_list[DEPTH_MAX];
	uint8_t lists = 0;
	int open = 0;

	for (size_t i = 0; i < length; i++) {
		size_t skip = no_brackets(text, length, i);

		if (skip) {
			memset(depth + i, lists, skip);
			i += skip - 1;
			continue;
		}
		if (text[i] == '>') {
			if (!open)
				return false;
			lists = (uint8_t)(lists - is_list[--open]);
		}
		depth[i] = lists;
		if (text[i] != '<')
			continue;
		if (open == DEPTH_MAX)
			return false;
		is_list[open] = opens_list(text, i);
		lists = (uint8_t)(lists + is_list[open++]);
	}
	return !open;
}

/* Returns the length of the bracketed group at from, with its brackets; 0 if it does not end. */
static size_t group_length(const char *text, size_t length, size_t from, char open, char close)
{
	size_t depth = 0;

	for (size_t i = from; i < length; i++) {
		depth += text[i] == open;
		if (text[i] == close && !--depth)
			return i + 1 - from;
	}
	return 0;
}

/*
 * Returns the length of the text at this position that only leads to a lambda: parameters of the
 * function around it, "::operator()", or outer lambdas.
 */
static size_t lambda_way(const char *text, size_t length, size_t at)
{
	static const char call[] = "::operator()", constant[] = " const", sign[] = "operator";
	size_t skip = has_word(text, length, at, call) ? strlen(call) : 0;
	bool is_behind_name = at && (is_word(text[at - 1]) || text[at - 1] == '>') &&
			      (at < strlen(sign) || !has_word(text, at, at - strlen(sign), sign));

	if (at + skip < length && text[at + skip] == '(' && (skip || is_behind_name))
		skip += group_length(text, length, at + skip, '(', ')');
	if (skip && has_word(text, length, at + skip, constant))
		skip += strlen(constant);
	return skip;
}

#define LAMBDA "{lambda}"

/*
 * Shortens argument lists: removes the scopes of names, and writes a lambda in a function as
 * "f::{lambda}".
 */
static size_t simplify(char *text, size_t length, const uint8_t *depth)
{
	size_t out = 0;

	for (size_t i = 0; i < length;) {
		size_t end = i, skip = depth[i] ? lambda_way(text, length, i) : 0;

		if (!skip && depth[i] && has_word(text, length, i, "{lambda"))
			skip = group_length(text, length, i, '{', '}');
		if (skip && text[i] == '{') {
			if (out >= strlen(LAMBDA "::") && !memcmp(text + out - strlen(LAMBDA "::"),
								  LAMBDA "::", strlen(LAMBDA "::")))
				out -= strlen(LAMBDA "::");
			memcpy(text + out, LAMBDA, strlen(LAMBDA));
			out += strlen(LAMBDA);
		}
		i += skip;
		if (skip)
			continue;
		if (depth[i] && is_word(text[i]) && (!i || !is_word(text[i - 1])))
			while (end < length && is_word(text[end]))
				end++;
		if (end > i && end + 2 < length && has_word(text, length, end, "::") &&
		    is_word(text[end + 2]))
			i = end + 2;
		else
			text[out++] = text[i++];
	}
	return out;
}

/* Replaces text nested in more than that many lists by dots. */
static size_t drop_deep(char *text, size_t length, const uint8_t *depth, uint8_t lists)
{
	size_t out = 0;

	for (size_t i = 0; i < length; i++) {
		if (depth[i] <= lists) {
			text[out++] = text[i];
			continue;
		}
		if (i && depth[i - 1] > lists)
			continue;
		/* Keep text that is not longer than the dots. */
		if (i + 2 < length && depth[i + 1] > lists && depth[i + 2] > lists) {
			memcpy(text + out, DOTS, strlen(DOTS));
			out += strlen(DOTS);
		} else {
			for (; i < length && depth[i] > lists; i++)
				text[out++] = text[i];
			i--;
		}
	}
	return out;
}

/* Removes arguments from the end of the last outermost list, as many as needed. */
static size_t drop_last(char *text, size_t length, const uint8_t *depth)
{
	size_t close = length, open, cut = 0;

	while (close &&
	       !(depth[close - 1] == 0 && text[close - 1] == '>' && close > 1 && depth[close - 2]))
		close--;
	if (!close)
		return length;
	for (open = --close; open && depth[open - 1]; open--)
		;
	for (size_t i = open; i < close; i++)
		if (depth[i] == 1 && has_word(text, close, i, ", ") &&
		    i + strlen(", " DOTS) + length - close <= SHORT_NAME_BYTES_MAX)
			cut = i + 2;
	if (!cut)
		cut = open;
	if (cut + strlen(DOTS) >= close)
		return length;
	memcpy(text + cut, DOTS, strlen(DOTS));
	memmove(text + cut + strlen(DOTS), text + close, length - close);
	return cut + strlen(DOTS) + length - close;
}

size_t name_cut_middle(char *text, size_t length, size_t bytes_max, size_t tail)
{
	size_t head = bytes_max - tail - strlen(DOTS);

	if (length <= bytes_max)
		return length;
	/* Do not cut inside a UTF-8 character. */
	while (head && (text[head] & 0xc0) == 0x80)
		head--;
	while (tail && (text[length - tail] & 0xc0) == 0x80)
		tail--;
	memcpy(text + head, DOTS, strlen(DOTS));
	memmove(text + head + strlen(DOTS), text + length - tail, tail);
	return head + strlen(DOTS) + tail;
}

size_t name_shorten(char *text, size_t length)
{
	uint8_t *depth;

	length = drop_anonymous(text, length);
	if (length <= SHORT_NAME_BYTES_MAX)
		return length;
	depth = malloc(length);
	if (depth && measure(text, length, depth)) {
		length = simplify(text, length, depth);
		for (uint8_t lists = 4; lists && length > SHORT_NAME_BYTES_MAX; lists--) {
			measure(text, length, depth);
			length = drop_deep(text, length, depth, lists);
		}
		measure(text, length, depth);
		if (length > SHORT_NAME_BYTES_MAX)
			length = drop_last(text, length, depth);
		measure(text, length, depth);
		if (length > SHORT_NAME_BYTES_MAX)
			length = drop_deep(text, length, depth, 0);
	}
	free(depth);
	return name_cut_middle(text, length, SHORT_NAME_BYTES_MAX, SHORT_NAME_BYTES_MAX / 4);
}

#define MANGLED_BYTES_MAX 32768
#define SHOWN_BYTES_MAX	  65536

struct result {
	char *text; /* SHOWN_BYTES_MAX bytes */
	size_t length;
	jmp_buf too_long;
};

/*
 * Demangler callback. Leaving it with longjmp() leaks nothing, because the callback interface does
 * not allocate.
 */
static void demangle_append(const char *text, size_t length, void *context)
{
	struct result *result = context;

	if (length > SHOWN_BYTES_MAX - result->length)
		longjmp(result->too_long, 1);
	memcpy(result->text + result->length, text, length);
	result->length += length;
}

static bool run_demangler(struct result *result, const char *mangled, enum demangle_style style)
{
	int options = style == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;

	if (setjmp(result->too_long))
		return false;
	if (rust_demangle_callback(mangled, options, demangle_append, result))
		return true;
	result->length = 0;
	return cplus_demangle_v3_callback(mangled, options, demangle_append, result);
}

size_t demangle_length(const char *name, size_t length)
{
	static const char *const suffixes[] = {".cold",	     ".part.", ".constprop.", ".isra.",
					       ".lto_priv.", ".llvm.", ".localalias"};
	const char *at = memchr(name, '@', length);
	const char *dot;

	if (at && at != name)
		length = (size_t)(at - name);
	dot = memchr(name, '.', length);
	for (; dot; dot = memchr(dot + 1, '.', length - (size_t)(dot + 1 - name)))
		for (size_t i = 0; dot != name && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
			if (!strncmp(dot, suffixes[i], strlen(suffixes[i])))
				return (size_t)(dot - name);
	return length;
}

/* Buffers: text for a copy of the name and the demangled name, clean for the printable result. */
static uint32_t show(struct demangle_cache *cache, const char *name, size_t length,
		     enum demangle_style style, char *text, char *clean)
{
	struct result result = {.text = text + length + 1};
	char *shown = text;

	memcpy(text, name, length);
	length = demangle_length(text, length);
	text[length] = '\0';
	if (length < MANGLED_BYTES_MAX && text[0] == '_' && run_demangler(&result, text, style)) {
		shown = result.text;
		length = result.length;
	}
	if (style == DEMANGLE_SHORT)
		length = name_shorten(shown, length);
	length = text_clean(clean, shown, length, ';');
	return names_try_intern(cache->shown, clean, length);
}

uint32_t demangle_try(struct demangle_cache *cache, uint32_t mangled, enum demangle_style style)
{
	uint32_t **known = &cache->known[style];
	uint32_t shown;
	size_t length;
	const char *name;
	char *text, *clean;

	if (mangled == NAME_EMPTY)
		return names_try_intern(cache->shown, "[no name]", strlen("[no name]"));
	if (grow(*known, cache->capacity[style], mangled + 1) < 0)
		return NAME_FAILED;
	if ((*known)[mangled])
		return (*known)[mangled] - 1;
	name = names_text(cache->mangled, mangled, &length);
	text = malloc(length + 1 + SHOWN_BYTES_MAX);
	clean = malloc(text_clean_bound(length + SHOWN_BYTES_MAX));
	shown = text && clean ? show(cache, name, length, style, text, clean) : NAME_FAILED;
	free_all(text, clean);
	if (shown != NAME_FAILED)
		(*known)[mangled] = shown + 1;
	return shown;
}

void demangle_cache_free(struct demangle_cache *cache)
{
	for (int style = 0; style < DEMANGLE_STYLES; style++)
		free(cache->known[style]);
	*cache = (struct demangle_cache){0};
}
