/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/xla_ranges.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"

#define SCOPES_MAX 64 /* the log is untrusted: further scopes form one frame */

static bool begins(struct xt_bytes text, const char *start)
{
	size_t length = strlen(start);

	return text.length >= length && !memcmp(text.data, start, length);
}

static struct xt_bytes without_start(struct xt_bytes text, size_t length)
{
	return (struct xt_bytes){text.data + length, text.length - length};
}

static bool is_equal(struct xt_bytes a, struct xt_bytes b)
{
	return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

/* Returns the text behind the last occurrence of a key, or an empty one. */
static struct xt_bytes behind_key(struct xt_bytes text, const char *key)
{
	for (size_t at = text.length; at-- > 0;) {
		struct xt_bytes rest = without_start(text, at);

		if ((rest.data[0] == ',' || rest.data[0] == '#') &&
		    begins(without_start(rest, 1), key))
			return without_start(rest, 1 + strlen(key));
	}
	return (struct xt_bytes){0};
}

/* Returns the text up to the first ',' or '#'. */
static struct xt_bytes value_of(struct xt_bytes text)
{
	size_t length = 0;

	while (length < text.length && text.data[length] != ',' && text.data[length] != '#')
		length++;
	return (struct xt_bytes){text.data, length};
}

/* Scopes may have commas: they end at the next key, or at the final '#'. */
static struct xt_bytes scopes_of(struct xt_bytes text)
{
	struct xt_bytes operation = behind_key(text, "hlo_op=");
	struct xt_bytes scopes = {0};

	if (!begins(text, "#name="))
		return scopes;
	scopes = without_start(text, strlen("#name="));
	if (operation.data)
		scopes.length -= operation.length + strlen(",hlo_op=");
	else if (scopes.length && scopes.data[scopes.length - 1] == '#')
		scopes.length--;
	return scopes;
}

struct xla_range xla_range_parse(struct xt_bytes domain, struct xt_bytes text)
{
	struct xla_range range = {.kind = XLA_NONE};

	if (domain.length != strlen("TSL") || !begins(domain, "TSL"))
		return range;
	if (begins(text, "XlaModule:#")) {
		text = without_start(text, strlen("XlaModule:"));
		range.kind = behind_key(text, "program_id=").length ? XLA_PROGRAM : XLA_TRIAL;
		range.name = value_of(behind_key(text, "hlo_module="));
		if (!range.name.length)
			range.kind = XLA_NONE;
	} else if (begins(text, "Thunk:#")) {
		text = without_start(text, strlen("Thunk:"));
		range.kind = XLA_OPERATION;
		range.name = scopes_of(text);
		range.operation = value_of(behind_key(text, "hlo_op="));
		if (!range.name.length && !range.operation.length)
			range.kind = XLA_NONE;
	}
	return range;
}

static struct xt_bytes text_of(const struct model *model, uint32_t string)
{
	struct xt_bytes bytes;

	bytes.data = names_text(&model->names, model_string(model, string), &bytes.length);
	return bytes;
}

static struct xla_range parse_node(const struct model *model, uint32_t range)
{
	const struct range_node *node = &model->ranges.nodes[range];

	return xla_range_parse(text_of(model, node->domain), text_of(model, node->text));
}

enum xla_kind xla_range_kind(const struct model *model, uint32_t range)
{
	return parse_node(model, range).kind;
}

bool xla_next_scope(struct xt_bytes *path, struct xt_bytes *scope_out)
{
	size_t length = 0, depth = 0;

	while (begins(*path, "/"))
		*path = without_start(*path, 1);
	for (; length < path->length && (depth || path->data[length] != '/'); length++) {
		if (path->data[length] == '(')
			depth++;
		else if (path->data[length] == ')' && depth)
			depth--;
	}
	*scope_out = (struct xt_bytes){path->data, length};
	*path = without_start(*path, length);
	return length;
}

/* What remains of a name without characters that XLA replaces by '_'. */
static size_t skip_replaced(struct xt_bytes text, size_t at)
{
	while (at < text.length && !isalnum((unsigned char)text.data[at]) && text.data[at] != '.')
		at++;
	return at;
}

bool xla_is_module_of(struct xt_bytes module, struct xt_bytes scope)
{
	size_t m = skip_replaced(module, 0), s = skip_replaced(scope, 0);

	while (m < module.length && s < scope.length && module.data[m] == scope.data[s]) {
		m = skip_replaced(module, m + 1);
		s = skip_replaced(scope, s + 1);
	}
	return m == module.length && s == scope.length;
}

/* Adds a child with a sanitised name of three parts. */
static uint32_t add_frame(struct paths *paths, uint32_t base, const char *before,
			  struct xt_bytes text, const char *after)
{
	size_t room = strlen(before) + text_clean_bound(text.length) + strlen(after);
	char *label = malloc(room + 1), *end = label;
	uint32_t name;

	if (!label)
		return PATH_FAILED;
	end = text_copy(end, before, strlen(before));
	if (text.length)
		end += text_clean(end, text.data, text.length, ';');
	end = text_copy(end, after, strlen(after));
	name = names_intern(&paths->names, label, (size_t)(end - label));
	free(label);
	return name == NAME_FAILED ? PATH_FAILED : paths_child(paths, base, name);
}

/* The module jit_step is the function step under jax.jit. */
static uint32_t add_module(struct paths *paths, uint32_t base, struct xt_bytes name, bool is_root)
{
	struct xt_bytes function = name;

	if (begins(name, "jit_"))
		function = without_start(name, strlen("jit_"));
	if (is_root)
		return add_frame(paths, base, function.length < name.length ? "[jit " : "[xla ",
				 function, "]");
	if (function.length < name.length)
		return add_frame(paths, base, "jit(", function, ")");
	return add_frame(paths, base, "[xla ", name, "]");
}

/* Leaves out scopes that a range around the operation has shown. */
static void skip_shown_scopes(const struct model *model, uint32_t range, struct xt_bytes *scopes)
{
	struct xt_bytes outer_scope, scope, rest = *scopes;

	while ((range = model->ranges.nodes[range].parent) != RANGE_NONE) {
		struct xla_range outer = parse_node(model, range);

		if (outer.kind == XLA_PROGRAM || outer.kind == XLA_TRIAL) {
			if (xla_next_scope(&rest, &scope) && xla_is_module_of(outer.name, scope))
				*scopes = rest;
			return;
		}
		if (outer.kind != XLA_OPERATION || !outer.name.length)
			continue;
		while (xla_next_scope(&rest, &scope) && xla_next_scope(&outer.name, &outer_scope) &&
		       is_equal(scope, outer_scope))
			*scopes = rest;
		return;
	}
}

uint32_t xla_add_frames(struct paths *paths, const struct model *model, uint32_t base,
			uint32_t range, bool is_root)
{
	struct xla_range xla = parse_node(model, range);
	struct xt_bytes scope;

	if (xla.kind != XLA_OPERATION)
		return add_module(paths, base, xla.name, is_root);
	skip_shown_scopes(model, range, &xla.name);
	for (int s = 0; s < SCOPES_MAX && base != PATH_FAILED && xla_next_scope(&xla.name, &scope);
	     s++)
		base = add_frame(paths, base, "", scope, "");
	if (base != PATH_FAILED && xla.name.length)
		base = add_frame(paths, base, "", xla.name, "");
	if (base == PATH_FAILED || !xla.operation.length)
		return base;
	return add_frame(paths, base, "[hlo ", xla.operation, "]");
}
