/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses lines of "name=value".
 */
#include "merge/read/range_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/text.h"

#define EXACT_DIGITS_MAX 15 /* digits that a double, as in JavaScript, represents exactly */

static size_t skip_digits(const char *text, size_t length, size_t at)
{
	while (at < length && text[at] >= '0' && text[at] <= '9')
		at++;
	return at;
}

/* Treats long numbers as text: they are ids, which a double would change. */
static bool is_number(const char *text, size_t length)
{
	size_t first = length && text[0] == '-', end = skip_digits(text, length, first);

	if (end == first || (text[first] == '0' && end > first + 1) ||
	    end - first > EXACT_DIGITS_MAX)
		return false;
	if (end < length && text[end] == '.') {
		size_t fraction = skip_digits(text, length, end + 1);

		if (fraction == end + 1)
			return false;
		end = fraction;
	}
	if (end < length && text[end] == 'e') {
		size_t sign = end + 1 +
			      (end + 1 < length && (text[end + 1] == '-' || text[end + 1] == '+'));

		end = skip_digits(text, length, sign);
		if (end == sign)
			return false;
	}
	return end == length;
}

static void add_value(struct range_value *values, size_t *count, const struct range_value *value)
{
	for (size_t i = 0; i < *count; i++) {
		if (values[i].name.length != value->name.length ||
		    memcmp(values[i].name.data, value->name.data, value->name.length))
			continue;
		values[i] = *value;
		return;
	}
	if (*count < RANGE_VALUES_MAX)
		values[(*count)++] = *value;
}

static void add_lines(const struct model *model, uint32_t string, struct range_value *values,
		      size_t *count)
{
	size_t left;
	const char *line = names_text(
		&model->names,
		string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY, &left);

	while (left) {
		const char *end = memchr(line, '\n', left);
		size_t length = end ? (size_t)(end - line) : left;
		const char *equals = memchr(line, '=', length);
		size_t name_length = equals ? (size_t)(equals - line) : 0;

		if (name_length)
			add_value(values, count,
				  &(struct range_value){
					  .name = {line, name_length},
					  .value = {equals + 1, length - name_length - 1},
					  .is_number =
						  is_number(equals + 1, length - name_length - 1),
				  });
		line += length + (end != NULL);
		left -= length + (end != NULL);
	}
}

size_t range_values(const struct model *model, uint32_t begin, uint32_t end,
		    struct range_value values[RANGE_VALUES_MAX])
{
	size_t count = 0;

	if (begin)
		add_lines(model, begin, values, &count);
	if (end)
		add_lines(model, end, values, &count);
	return count;
}

static char *put_text(char *p, const struct xt_bytes *text)
{
	*p++ = '"';
	p += text_json(p, text->data, text->length);
	*p++ = '"';
	return p;
}

char *range_values_json(const struct model *model, uint32_t begin, uint32_t end)
{
	struct range_value values[RANGE_VALUES_MAX];
	size_t count = range_values(model, begin, end, values), room = 3;
	char *json, *p;

	for (size_t i = 0; i < count; i++)
		room += text_json_bound(values[i].name.length + values[i].value.length) + 6;
	p = json = xt_malloc(room);
	*p++ = '{';
	for (size_t i = 0; i < count; i++) {
		if (i)
			*p++ = ',';
		p = put_text(p, &values[i].name);
		*p++ = ':';
		if (values[i].is_number)
			p = text_copy(p, values[i].value.data, values[i].value.length);
		else
			p = put_text(p, &values[i].value);
	}
	*p++ = '}';
	*p = '\0';
	return json;
}
