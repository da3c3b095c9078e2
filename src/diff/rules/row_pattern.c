/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The word of a level, and a pattern in parentheses.
 */
#include "diff/rules/row_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/rules/rule_match.h"

/* The level before the parenthesis, and the pattern inside. LEVELS if the text is malformed. */
static enum level split(const char *text, const char **name_out, size_t *length_out)
{
	size_t word = strcspn(text, "("), length = strlen(text);

	if (!text[word]) {
		*name_out = text;
		*length_out = length;
		return length && !strpbrk(text, ") ") ? LEVEL_TOTAL : LEVELS;
	}
	*name_out = text + word + 1;
	*length_out = length - word - 2;
	if (text[length - 1] != ')' || length < word + 3)
		return LEVELS;
	for (int level = 0; level < LEVELS; level++)
		if (strlen(level_specs[level].word) == word &&
		    !strncmp(level_specs[level].word, text, word))
			return (enum level)level;
	return LEVELS;
}

bool row_pattern_is_valid(const char *pattern)
{
	const char *name;
	size_t length;

	return split(pattern, &name, &length) != LEVELS;
}

bool row_pattern_matches(const char *pattern, enum level level, const char *key)
{
	const char *name;
	size_t length;
	char *copy;
	bool fits;

	if (!*pattern)
		return true;
	if (split(pattern, &name, &length) != level)
		return false;
	copy = xt_strndup(name, length);
	fits = level == LEVEL_TOTAL ? !strcmp(copy, key) : rule_matches(copy, key, false);
	free(copy);
	return fits;
}
