/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/xla_ranges.h"

#include <ctype.h>
#include <string.h>

static bool begins(struct xt_bytes text, const char *start)
{
	size_t length = strlen(start);

	return text.length >= length && !memcmp(text.data, start, length);
}

static struct xt_bytes without_start(struct xt_bytes text, size_t length)
{
	return (struct xt_bytes){text.data + length, text.length - length};
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

static void parse_module(struct xla_range *range, struct xt_bytes text)
{
	if (!behind_key(text, "program_id=").length)
		range->kind = XLA_TRIAL;
	range->name = value_of(behind_key(text, "hlo_module="));
}

static void parse_operation(struct xla_range *range, struct xt_bytes text)
{
	range->name = scopes_of(text);
	range->operation = value_of(behind_key(text, "hlo_op="));
}

static void parse_compile(struct xla_range *range, struct xt_bytes text)
{
	range->name = value_of(behind_key(text, "module="));
}

static void parse_pass(struct xla_range *range, struct xt_bytes text)
{
	range->name = value_of(behind_key(text, "name="));
}

static const struct {
	const char *start; /* of the text */
	enum xla_kind kind;
	void (*parse)(struct xla_range *range, struct xt_bytes text);
} forms[] = {
	{"XlaModule:#", XLA_PROGRAM, parse_module},
	{"Thunk:#", XLA_OPERATION, parse_operation},
	{"XlaCompile:#", XLA_COMPILE, parse_compile},
	{"XlaPass:#name=config-assigner,", XLA_TUNING, parse_compile},
	{"XlaPass:#", XLA_PASS, parse_pass},
	{"XlaPassPipeline:#", XLA_PASS, parse_pass},
};

struct xla_range xla_range_parse(struct xt_bytes domain, struct xt_bytes text)
{
	struct xla_range range = {.kind = XLA_NONE};

	if (domain.length != strlen("TSL") || !begins(domain, "TSL"))
		return range;
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if (!begins(text, forms[f].start))
			continue;
		text = without_start(text, strcspn(forms[f].start, "#"));
		range.kind = forms[f].kind;
		forms[f].parse(&range, text);
		break;
	}
	if (!range.name.length && !range.operation.length)
		range.kind = XLA_NONE;
	return range;
}

static struct xt_bytes text_of(const struct model *model, uint32_t string)
{
	struct xt_bytes bytes;

	bytes.data = names_text(&model->names, model_string(model, string), &bytes.length);
	return bytes;
}

struct xla_range xla_range_of(const struct model *model, uint32_t range)
{
	const struct range_node *node = &model->ranges.nodes[range];

	return xla_range_parse(text_of(model, node->domain), text_of(model, node->text));
}

enum xla_kind xla_range_kind(const struct model *model, uint32_t range)
{
	return xla_range_of(model, range).kind;
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

/* Skips characters that XLA replaces by '_'. Returns the index of the next other one. */
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
