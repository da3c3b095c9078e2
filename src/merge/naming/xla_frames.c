/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/xla_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "merge/read/xla.h"

#define SCOPES_MAX 64 /* the log is untrusted: further scopes form one frame */

static struct xt_bytes without_start(struct xt_bytes text, size_t length)
{
	return (struct xt_bytes){text.data + length, text.length - length};
}

static bool is_equal(struct xt_bytes a, struct xt_bytes b)
{
	return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

bool xla_is_profiler(const char *function)
{
	return !strncmp(function, "tsl::profiler::", strlen("tsl::profiler::"));
}

/* Adds a child with a sanitised name of three parts. */
static uint32_t add_frame(struct paths *paths, uint32_t base, const char *before,
			  struct xt_bytes text, const char *after)
{
	size_t room = strlen(before) + text_clean_bound(text.length) + strlen(after);
	char *label = xt_malloc(room + 1), *end = label;
	uint32_t name;

	end = text_copy(end, before, strlen(before));
	if (text.length)
		end += text_clean(end, text.data, text.length, ';');
	end = text_copy(end, after, strlen(after));
	name = names_intern(&paths->names, label, (size_t)(end - label));
	free(label);
	return paths_child(paths, base, name);
}

/* The module jit_step is the function step under jax.jit. */
static uint32_t add_module(struct paths *paths, uint32_t base, struct xt_bytes name, bool is_root)
{
	struct xt_bytes function = name;

	if (name.length > strlen("jit_") && !memcmp(name.data, "jit_", strlen("jit_")))
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
		struct xla_range outer = xla_range_of(model, range);

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

/* Whether scopes end with an operation, such as dot_general, and not with jit(step) or jvp(). */
static bool names_operation(struct xt_bytes scopes)
{
	return scopes.length && scopes.data[scopes.length - 1] != ')';
}

/* The words before the name of a range that is one frame. */
static const char *const labels[XLA_KINDS] = {
	[XLA_COMPILE] = "[compile ",
	[XLA_PASS] = "[pass ",
	[XLA_TUNING] = "[autotune ",
};

uint32_t xla_add_frames(struct paths *paths, const struct model *model, uint32_t base,
			uint32_t range, bool is_root)
{
	struct xla_range xla = xla_range_of(model, range);
	struct xt_bytes scope;

	if (labels[xla.kind])
		return add_frame(paths, base, labels[xla.kind], xla.name, "]");
	if (xla.kind != XLA_OPERATION)
		return add_module(paths, base, xla.name, is_root);
	if (names_operation(xla.name))
		xla.operation.length = 0;
	skip_shown_scopes(model, range, &xla.name);
	for (int s = 0; s < SCOPES_MAX && xla_next_scope(&xla.name, &scope); s++)
		base = add_frame(paths, base, "", scope, "");
	if (xla.name.length)
		base = add_frame(paths, base, "", xla.name, "");
	if (!xla.operation.length)
		return base;
	return add_frame(paths, base, "[hlo ", xla.operation, "]");
}
