/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quoting for a POSIX shell.
 */
#include "shell_quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN                                                                                      \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"_@%+=:,./-"

char *shell_quote(const char *name)
{
	const char *start = *name == '-' ? "./" : "";
	char *word, *at;

	if (name[strspn(name, PLAIN)] == '\0' && *name)
		return asprintf(&word, "%s%s", start, name) < 0 ? NULL : word;
	/* Within single quotes only the quote is special. Write it as '\''. */
	word = malloc(4 * strlen(name) + strlen(start) + 3);
	if (!word)
		return NULL;
	at = word + sprintf(word, "'%s", start);
	for (; *name; name++)
		if (*name == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *name;
	strcpy(at, "'");
	return word;
}
