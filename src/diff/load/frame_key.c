/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the parts of a frame's name that change from build to build.
 */
#include "diff/load/frame_key.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Length without a place, "f (file.c:12)" or "f (file.py)". A file name contains a dot. */
static size_t without_place(const char *frame, size_t length)
{
	size_t open = length;

	if (!length || frame[length - 1] != ')')
		return length;
	while (open > 0 && frame[open - 1] != '(')
		open--;
	if (open < 2 || frame[open - 2] != ' ' || !memchr(frame + open, '.', length - open))
		return length;
	return open - 2;
}

/* Length without suffixes of compiler clones, which may end with a number. */
static size_t without_clones(const char *name, size_t length)
{
	static const char *const suffixes[] = {".isra", ".constprop", ".part",	    ".cold",
					       ".llvm", ".lto_priv",  ".localalias"};
	bool found = true;

	while (found) {
		size_t end = length;

		found = false;
		while (end > 0 && isdigit((unsigned char)name[end - 1]))
			end--;
		if (end > 0 && end < length && name[end - 1] == '.')
			end--;
		else
			end = length;
		for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && !found; i++) {
			size_t bytes = strlen(suffixes[i]);

			if (end > bytes && !memcmp(name + end - bytes, suffixes[i], bytes)) {
				length = end - bytes;
				found = true;
			}
		}
	}
	return length;
}

/* Length without the hash at the end of a Rust name, "::h0123456789abcdef". */
static size_t without_hash(const char *name, size_t length)
{
	if (length < 19 || memcmp(name + length - 19, "::h", 3) != 0)
		return length;
	for (size_t i = length - 16; i < length; i++)
		if (!isxdigit((unsigned char)name[i]))
			return length;
	return length - 19;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Length of the text to replace at this position, and its replacement. 0: keep the text. */
static size_t replaced(const char *text, const char **by)
{
	static const struct {
		const char *begin;
		char end;
		const char *by;
	} rules[] = {
		{"{lambda", '}', "{lambda}"},
		{"'lambda", '\'', "{lambda}"},
		{"<lambda", '>', "{lambda}"},
		{"{{closure", '}', "{closure}"},
		{"{closure", '}', "{closure}"},
		{"$_", '\0', "{lambda}"},
		{"[clone ", ']', ""},
		{"+0x", '\0', "+?"},
		{"0x", '\0', "?"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		size_t length = strlen(rules[i].begin), depth = 1;

		if (!begins(text, rules[i].begin))
			continue;
		*by = rules[i].by;
		if (!rules[i].end) {
			while (isxdigit((unsigned char)text[length]))
				length++;
			return length;
		}
		if (rules[i].begin[0] == '\'') {
			const char *end = strchr(text + 1, '\'');

			return end ? (size_t)(end - text) + 1 : 0;
		}
		for (size_t at = 1; text[at]; at++) {
			depth += text[at] == rules[i].begin[0];
			depth -= text[at] == rules[i].end;
			if (!depth)
				return at + 1 +
				       (begins(rules[i].begin, "{{") && text[at + 1] == '}');
		}
	}
	return 0;
}

static bool has_counted_name(const char *name)
{
	return strstr(name, "triton_") || begins(name, "[NVTX ");
}

size_t frame_key(char *out, const char *frame)
{
	size_t length = without_place(frame, strlen(frame)), used = 0;
	bool counts = !has_counted_name(frame);

	length = without_hash(frame, length);
	for (size_t i = 0; i < length;) {
		const char *by = NULL;
		size_t bytes = replaced(frame + i, &by);

		if (bytes && i + bytes <= length) {
			memcpy(out + used, by, strlen(by));
			used += strlen(by);
			i += bytes;
		} else if (!counts && isdigit((unsigned char)frame[i])) {
			if (!used || out[used - 1] != '#')
				out[used++] = '#';
			i++;
		} else {
			out[used++] = frame[i++];
		}
	}
	used = without_clones(out, used);
	while (used && out[used - 1] == ' ')
		used--;
	out[used] = '\0';
	return used;
}

size_t frame_stem(char *out, const char *key)
{
	size_t used = 0;
	int depth = 0;

	for (const char *c = key; *c; c++) {
		bool is_operator = used >= 8 && !strncmp(out + used - 8, "operator", 8);

		if ((*c == '<' || *c == '(') && used && !is_operator)
			depth++;
		if (!depth)
			out[used++] = *c;
		if ((*c == '>' || *c == ')') && depth)
			depth--;
	}
	out[used] = '\0';
	return used;
}
