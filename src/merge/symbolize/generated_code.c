/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/generated_code.h"

#include <string.h>

#define HASH_CHARACTERS 51
#define LINES_TO_CALL	8 /* assignments between the comments and the call */
#define COMMENT_HANDLE	"# [Provenance debug handles] "
#define COMMENT_ATEN	"Original ATen: ["

bool generated_code_is_file(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t length;

	if (!name || name - path < 3 || name[-3] != '/')
		return false;
	length = strlen(++name);
	return name[0] == 'c' && length == 1 + HASH_CHARACTERS + 3 &&
	       !strcmp(name + 1 + HASH_CHARACTERS, ".py") &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == 1 + HASH_CHARACTERS &&
	       !strncmp(name + 1, name - 3, 2);
}

static bool starts_with(const char *text, size_t length, const char *start)
{
	return length >= strlen(start) && !memcmp(text, start, strlen(start));
}

/* Returns the list of source nodes in a comment, or NULL. They are not always sorted. */
static const char *node_list(const char *text, size_t length)
{
	static const char *const starts[] = {
		"# Topologically Sorted Source Nodes: [",
		"# Unsorted Source Nodes: [",
		"# Source Nodes: [",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (starts_with(text, length, starts[i]))
			return text + strlen(starts[i]);
	return NULL;
}

static void copy(char *out, const char *text, size_t length)
{
	if (length >= GENERATED_TEXT_BYTES)
		length = GENERATED_TEXT_BYTES - 1;
	memcpy(out, text, length);
	out[length] = '\0';
}

/* Copies the list that begins at text, up to its ']'. */
static void copy_list(char *out, const char *text, const char *end)
{
	const char *close = memchr(text, ']', (size_t)(end - text));

	copy(out, text, close ? (size_t)(close - text) : 0);
}

/* Work that has no named source node is described by its operators. */
static void read_nodes(struct generated_code *code, const char *list, const char *end)
{
	const char *aten = memmem(list, (size_t)(end - list), COMMENT_ATEN, strlen(COMMENT_ATEN));

	code->handle[0] = '\0';
	copy_list(code->nodes, list, end);
	if (!code->nodes[strspn(code->nodes, " ,")] && aten)
		copy_list(code->nodes, aten + strlen(COMMENT_ATEN), end);
	code->lines_left = LINES_TO_CALL;
}

static void read_comment(struct generated_code *code, const char *text, size_t length)
{
	const char *list = node_list(text, length);

	if (list) {
		read_nodes(code, list, text + length);
	} else if (starts_with(text, length, COMMENT_HANDLE)) {
		if (!code->lines_left)
			code->nodes[0] = '\0';
		copy(code->handle, text + strlen(COMMENT_HANDLE), length - strlen(COMMENT_HANDLE));
		code->lines_left = LINES_TO_CALL;
	}
}

/* "extern_kernels.addmm(" or "triton_poi_fused_gelu_1.run(" */
static bool calls(const char *text, size_t length, const char *name, size_t name_length)
{
	const char *end = text + length, *at = text;

	while ((at = memmem(at, (size_t)(end - at), name, name_length)) != NULL) {
		at += name_length;
		if (at < end && (*at == '(' || starts_with(at, (size_t)(end - at), ".run(")))
			return true;
	}
	return false;
}

/* Without a handle, accept a call that is neither preparation nor the definition of a kernel. */
static bool is_call(const struct generated_code *code, const char *text, size_t length)
{
	static const char *const others[] = {"get_raw_stream(", "empty_strided", "async_compile.",
					     "reinterpret_tensor(buf"};
	const char *colon = strrchr(code->handle, ':');

	if (colon)
		return calls(text, length, code->handle, (size_t)(colon - code->handle));
	if (calls(text, length, ".run", 4) || memmem(text, length, "extern_kernels.", 15))
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (memmem(text, length, others[i], strlen(others[i])))
			return false;
	return !starts_with(text, length, "del ") && memchr(text, '(', length);
}

bool generated_code_next(struct generated_code *code, const char *text, size_t length)
{
	bool is_found;

	code->line++;
	while (length && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	while (length && (text[length - 1] == '\r' || text[length - 1] == ' '))
		length--;
	if (length && *text == '#') {
		read_comment(code, text, length);
		return false;
	}
	if (!code->lines_left)
		return false;
	if (!length || memmem(text, length, "async_compile.", 14)) {
		code->lines_left = 0;
		return false;
	}
	is_found = is_call(code, text, length);
	code->lines_left = is_found ? 0 : code->lines_left - 1;
	return is_found;
}
