/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of rules, from files and by default.
 */
#include "diff/rules/rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const char *const rules_default_lines[] = {
	"gpu-time > 1%",     "path(*) > 1%", "each path([GPU_Memcpy*).count > 0",
	"call(*).count > 0", NULL,
};

int rules_add(struct rules *rules, const char *text, const char *origin, struct problems *problems)
{
	struct rule rule;
	int error;

	while (isspace((unsigned char)*text))
		text++;
	if (!*text || *text == '#')
		return 0;
	xt_grow(&rules->list, &rules->capacity, rules->count + 1, sizeof(*rules->list));
	error = rule_parse(&rule, text, origin, problems);
	if (!error)
		rules->list[rules->count++] = rule;
	return error;
}

void rules_free(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		rule_free(&rules->list[i]);
	free(rules->list);
	*rules = (struct rules){0};
}

/* Appends lines that are known to be right. Returns the index of the first in *first_out. */
static void add_lines(struct rules *rules, const char *const *lines, const char *origin,
		      size_t *first_out)
{
	struct problems none = {0};

	*first_out = rules->count;
	for (size_t i = 0; lines[i]; i++)
		rules_add(rules, lines[i], origin, &none);
	problems_free(&none);
}

void rules_add_default(struct rules *rules)
{
	size_t first;

	add_lines(rules, rules_default_lines, "default", &first);
	for (size_t r = first; r < rules->count; r++)
		rules->list[r].is_soft = true;
}

size_t rules_keep_exceptions(struct rules *rules)
{
	size_t kept = 0, count = rules->count;

	for (size_t r = 0; r < rules->count; r++) {
		struct rule *rule = &rules->list[r];

		if (rule->kind == RULE_ALLOW || rule->kind == RULE_IGNORE)
			rules->list[kept++] = *rule;
		else
			rule_free(rule);
	}
	rules->count = kept;
	return count - kept;
}

void rules_add_counting(struct rules *rules)
{
	static const char *const lines[] = {
		"launches > 0",	       "copies > 0",	    "bytes > 0", "waits > 0",
		"kernel(*).count > 0", "call(*).count > 0", NULL,
	};
	size_t first;

	add_lines(rules, lines, "--only-counts", &first);
	/* A program may have no copies or waits. */
	for (size_t r = first; r < rules->count; r++)
		rules->list[r].is_counting = rules->list[r].is_soft = true;
}

int rules_read(struct rules *rules, const char *path, struct problems *problems)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, origin[4200];
	size_t room = 0, number = 0;
	ssize_t length;
	int result = 0;

	if (!file) {
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	while ((length = getline(&line, &room, file)) >= 0) {
		int error;

		while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
			line[--length] = '\0';
		snprintf(origin, sizeof(origin), "%s:%zu", path, ++number);
		error = rules_add(rules, line, origin, problems);
		result = result ? result : error;
	}
	if (ferror(file)) {
		problems_add(problems, "cannot read %s: %s", path, strerror(errno));
		result = -EINVAL;
	}
	free(line);
	fclose(file);
	return result;
}
