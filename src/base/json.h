/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a JSON document as a stream, so its size is unlimited. Errors are kept in the output
 * (output.h). key is NULL for the elements of arrays.
 */
#ifndef XT_BASE_JSON_H
#define XT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/output.h"

struct json {
	struct output *out;
	unsigned depth;
	unsigned lines_depth; /* values down to this depth start a new line */
	bool is_first;	      /* in its object or array */
	size_t rows_max;      /* of each table; 0: its default */
};

/* For a new document, set out and zero the rest. */
void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

/* Accepts any bytes: invalid UTF-8 becomes U+FFFD. */
void json_text(struct json *json, const char *key, const char *text, size_t length);
void json_string(struct json *json, const char *key, const char *text);
/* An array of strings. */
void json_strings(struct json *json, const char *key, const char *const *list, size_t count);
void json_u64(struct json *json, const char *key, uint64_t value);
void json_i64(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value); /* null if not finite */
void json_rounded(struct json *json, const char *key, double value,
		  int digits); /* null if not finite */
/* With 15 digits if they are exact up to rounding, else 17. null if not finite. */
void json_number(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

#endif
