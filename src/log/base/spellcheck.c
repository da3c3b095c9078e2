/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/spellcheck.h"

#include <stdint.h>
#include <string.h>

#include "log/base/compare.h"

#define SUGGEST_BYTES_MAX 64 /* kernel names can be long */
#define LETTERS_PER_EDIT  3

/* Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours. */
static size_t edit_distance(const char *a, size_t a_length, const char *b)
{
	size_t rows[3][SUGGEST_BYTES_MAX + 1], b_length = strlen(b);
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	if (a_length > SUGGEST_BYTES_MAX || b_length > SUGGEST_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *oldest = before;

		before = last;
		last = row;
		row = oldest;
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = smaller(last[j - 1] + (a[i - 1] != b[j - 1]),
					 smaller(last[j] + 1, row[j - 1] + 1));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], before[j - 2] + 1);
		}
	}
	return row[b_length];
}

void suggest_consider(struct suggestion *suggestion, const char *candidate)
{
	size_t distance = edit_distance(suggestion->name, suggestion->length, candidate);

	if (distance > suggestion->length / LETTERS_PER_EDIT)
		return;
	if (suggestion->best && distance >= suggestion->distance)
		return;
	suggestion->distance = distance;
	suggestion->best = candidate;
}
