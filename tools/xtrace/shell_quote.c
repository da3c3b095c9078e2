/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quoting for a POSIX shell.
 */
#include "shell_quote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAIN                                                                                      \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"_@%+=:,./-"

/* Quotes start and text together. start needs no quotes. */
static char *quote(const char *start, const char *text)
{
	char *word, *at;

	if (text[strspn(text, PLAIN)] == '\0' && *text)
		return asprintf(&word, "%s%s", start, text) < 0 ? NULL : word;
	/* Within single quotes only the quote is special. Write it as '\\''. */
	word = malloc(4 * strlen(text) + strlen(start) + 3);
	if (!word)
		return NULL;
	at = word + sprintf(word, "'%s", start);
	for (; *text; text++)
		if (*text == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *text;
	strcpy(at, "'");
	return word;
}

char *shell_quote(const char *name)
{
	return quote(*name == '-' ? "./" : "", name);
}

char *shell_quote_argument(const char *text)
{
	return quote("", text);
}

static bool is_this_program(const char *path)
{
	struct stat found, own;

	return !stat(path, &found) && !stat("/proc/self/exe", &own) && found.st_dev == own.st_dev &&
	       found.st_ino == own.st_ino;
}

char *shell_own_name(void)
{
	const char *folders = getenv("PATH"), *end;

	for (; folders && *folders; folders = *end ? end + 1 : end) {
		char *path;
		bool is_first;

		end = strchrnul(folders, ':');
		if (asprintf(&path, "%.*s/%s", (int)(end - folders), folders,
			     program_invocation_short_name) < 0)
			return NULL;
		is_first = !access(path, X_OK);
		if (is_first && is_this_program(path)) {
			free(path);
			return strdup(program_invocation_short_name);
		}
		free(path);
		if (is_first)
			break;
	}
	return shell_quote(program_invocation_name);
}
