/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/chrome/chrome_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/read/range_values.h"

#define NUMBER_BYTES 64

struct text chrome_json(const char *text, size_t length)
{
	struct text json = {.data = xt_malloc(text_json_bound(length) + 1)};

	json.length = text_json(json.data, text, length);
	json.data[json.length] = '\0';
	return json;
}

const struct text *chrome_add_name(struct chrome *c, uint32_t name)
{
	size_t length;
	const char *text = names_text(&c->tracks.process->paths->names, name, &length);

	xt_grow(&c->names, &c->name_capacity, (size_t)name + 1, sizeof(*c->names));
	c->names[name] = chrome_json(text, length);
	return &c->names[name];
}

void chrome_make_pieces(struct chrome *c)
{
	for (int k = 0; k < ARG_KEYS; k++)
		c->keys[k].length =
			(uint32_t)snprintf(c->keys[k].text, PIECE_BYTES, "\"%s\":", track_args[k]);
	for (int i = 0; i < CATEGORIES; i++)
		c->heads[i].length = (uint32_t)snprintf(c->heads[i].text, PIECE_BYTES,
							EVENT "{\"ph\":\"X\",\"cat\":\"%s\"",
							track_categories[i]);
}

static void append(struct chrome *c, const char *text, size_t length)
{
	xt_grow(&c->buffer.data, &c->buffer_capacity, c->buffer.length + length, 1);
	memcpy(c->buffer.data + c->buffer.length, text, length);
	c->buffer.length += length;
}

static void append_quoted(struct chrome *c, const char *text, size_t length)
{
	append(c, "\"", 1);
	append(c, text, length);
	append(c, "\"", 1);
}

static void append_pairs(struct chrome *c, const struct track_arg *arg)
{
	char *json = range_values_json(c->tracks.process->model, arg->pairs.begin, arg->pairs.end);

	if (!json)
		xt_out_of_memory(0);
	append(c, json, strlen(json));
	free(json);
}

/* Formats an argument that is a few numbers. Returns its length. */
static int format_numbers(char *out, const struct track_arg *arg)
{
	switch ((enum track_arg_type)arg->type) {
	case ARG_NUMBER:
		return (int)(text_u64(out, arg->number) - out);
	case ARG_THOUSANDTHS:
		return (int)(text_us(out, (int64_t)(arg->number & INT64_MAX)) - out);
	case ARG_SIGNED:
		return snprintf(out, NUMBER_BYTES, "%lld", (long long)arg->number);
	case ARG_REAL:
		return __builtin_isfinite(arg->real)
			       ? snprintf(out, NUMBER_BYTES, "%.*g", arg->digits, arg->real)
			       : snprintf(out, NUMBER_BYTES, "null");
	case ARG_SIZES:
		return snprintf(out, NUMBER_BYTES, "[%u,%u,%u]", arg->sizes[0], arg->sizes[1],
				arg->sizes[2]);
	case ARG_ARGB:
		return snprintf(out, NUMBER_BYTES, "\"#%08x\"", (uint32_t)arg->number);
	default:
		return snprintf(out, NUMBER_BYTES, "%s", arg->number ? "true" : "false");
	}
}

static void append_arg(struct chrome *c, const struct track_arg *arg)
{
	char number[NUMBER_BYTES];
	const struct text *name;

	append(c, c->keys[arg->key].text, c->keys[arg->key].length);
	switch ((enum track_arg_type)arg->type) {
	case ARG_PAIRS:
		append_pairs(c, arg);
		break;
	case ARG_TEXT:
		append_quoted(c, arg->text, strlen(arg->text));
		break;
	case ARG_NAME:
		name = chrome_name(c, arg->name);
		append_quoted(c, name->data, name->length);
		break;
	default:
		append(c, number, (size_t)format_numbers(number, arg));
	}
	append(c, ",", 1);
}

const struct text *chrome_arg(struct chrome *c, const struct track_arg *arg)
{
	c->buffer.length = 0;
	append_arg(c, arg);
	return &c->buffer;
}

struct text chrome_args(struct chrome *c, const char *prefix, const struct track_arg *args,
			size_t count)
{
	struct text text;

	c->buffer.length = 0;
	append(c, prefix, strlen(prefix));
	for (size_t i = 0; i < count; i++)
		append_arg(c, &args[i]);
	text = (struct text){xt_malloc(c->buffer.length + 1), c->buffer.length};
	memcpy(text.data, c->buffer.data, text.length);
	return text;
}
