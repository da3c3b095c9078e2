/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for a shell; see paste.h.
 */
#include "paste.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN                                                                                      \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"_@%+=:,./-"

char *paste_file(const char *name)
{
	const char *start = *name == '-' ? "./" : "";
	char *word, *at;

	if (name[strspn(name, PLAIN)] == '\0' && *name)
		return asprintf(&word, "%s%s", start, name) < 0 ? NULL : word;
	/* In quotes all is plain but the quote itself: '\'' ends, says it, and begins anew. */
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

char *paste_program(const char *path)
{
	const char *called = program_invocation_name, *slash = strrchr(called, '/');
	const char *name = strrchr(path, '/') + 1;
	char *beside = NULL, *word;

	if (!slash)
		return strdup(name);
	if (asprintf(&beside, "%.*s/%s", (int)(slash - called), called, name) < 0)
		return NULL;
	/* Called through a link, there may be nothing beside it. */
	word = paste_file(access(beside, X_OK) ? path : beside);
	free(beside);
	return word;
}
