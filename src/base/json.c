/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PIECE_BYTES (OUTPUT_BUFFER_BYTES / 8) /* text escaped at a time */
#define INDENT_MAX  64

static void put_line(struct json *json)
{
	char *p = output_room(json->out, INDENT_MAX + 1);

	*p++ = '\n';
	for (unsigned d = 0; d < json->depth && d < INDENT_MAX; d++)
		*p++ = '\t';
	output_advance(json->out, p);
}

/* Escapes text in pieces. Never splits a character: no piece starts with a continuation byte. */
static void put_escaped(struct output *out, const char *text, size_t length)
{
	while (length) {
		size_t piece = length < PIECE_BYTES ? length : PIECE_BYTES;
		char *p;

		for (int i = 0; i < 3 && piece < length && ((uint8_t)text[piece] & 0xc0) == 0x80;
		     i++)
			piece--;
		p = output_room(out, text_json_bound(piece));
		output_advance(out, p + text_json(p, text, piece));
		text += piece;
		length -= piece;
	}
}

static void begin_value(struct json *json, const char *key)
{
	if (!json->is_first && json->depth)
		output_text(json->out, ",", 1);
	json->is_first = false;
	if (json->depth && json->depth <= json->lines_depth)
		put_line(json);
	if (!key)
		return;
	output_text(json->out, "\"", 1);
	put_escaped(json->out, key, strlen(key));
	output_text(json->out, "\":", 2);
}

static void json_begin(struct json *json, const char *key, const char *bracket)
{
	begin_value(json, key);
	output_text(json->out, bracket, 1);
	json->depth++;
	json->is_first = true;
}

static void json_end(struct json *json, const char *bracket)
{
	json->depth--;
	if (!json->is_first && json->depth < json->lines_depth)
		put_line(json);
	output_text(json->out, bracket, 1);
	json->is_first = false;
	if (!json->depth)
		output_text(json->out, "\n", 1);
}

void json_begin_object(struct json *json, const char *key)
{
	json_begin(json, key, "{");
}

void json_end_object(struct json *json)
{
	json_end(json, "}");
}

void json_begin_array(struct json *json, const char *key)
{
	json_begin(json, key, "[");
}

void json_end_array(struct json *json)
{
	json_end(json, "]");
}

void json_text(struct json *json, const char *key, const char *text, size_t length)
{
	begin_value(json, key);
	output_text(json->out, "\"", 1);
	put_escaped(json->out, text, length);
	output_text(json->out, "\"", 1);
}

void json_string(struct json *json, const char *key, const char *text)
{
	json_text(json, key, text, strlen(text));
}

void json_strings(struct json *json, const char *key, const char *const *list, size_t count)
{
	json_begin_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_string(json, NULL, list[i]);
	json_end_array(json);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	output_advance(json->out, text_u64(output_room(json->out, TEXT_U64_BYTES_MAX), value));
}

void json_i64(struct json *json, const char *key, int64_t value)
{
	char *p;

	begin_value(json, key);
	p = output_room(json->out, TEXT_U64_BYTES_MAX + 1);
	if (value < 0)
		*p++ = '-';
	output_advance(json->out, text_u64(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value));
}

void json_double(struct json *json, const char *key, double value)
{
	json_rounded(json, key, value, 17);
}

void json_rounded(struct json *json, const char *key, double value, int digits)
{
	begin_value(json, key);
	if (__builtin_isfinite(value))
		output_format(json->out, "%.*g", digits, value);
	else
		output_text(json->out, "null", strlen("null"));
}

void json_number(struct json *json, const char *key, double value)
{
	char text[32];
	double read, larger;

	snprintf(text, sizeof(text), "%.15g", value);
	read = strtod(text, NULL);
	larger = fabs(read) > fabs(value) ? fabs(read) : fabs(value);
	json_rounded(json, key, value, fabs(read - value) <= larger * DBL_EPSILON ? 15 : 17);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	output_text(json->out, value ? "true" : "false", value ? 4 : 5);
}
