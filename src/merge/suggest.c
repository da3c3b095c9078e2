/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near misses.
 */
#include "merge/suggest.h"

#include <stdint.h>
#include <string.h>

#define SUGGEST_BYTES_MAX 32

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions and changes that make b of a (Levenshtein). */
static size_t edit_distance(const char *a, size_t a_length, const char *b)
{
	size_t row[SUGGEST_BYTES_MAX + 1], b_length = strlen(b);

	if (a_length > SUGGEST_BYTES_MAX || b_length > SUGGEST_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = smaller(changed, smaller(row[j] + 1, row[j - 1] + 1));
		}
	}
	return row[b_length];
}

void suggest_consider(struct suggestion *suggestion, const char *candidate)
{
	size_t distance = edit_distance(suggestion->name, suggestion->length, candidate);

	if (distance > SUGGEST_DISTANCE_MAX || distance >= suggestion->length)
		return;
	if (suggestion->best && distance >= suggestion->distance)
		return;
	suggestion->distance = distance;
	suggestion->best = candidate;
}
