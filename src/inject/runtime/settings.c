/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/runtime/settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *passed; /* NULL: read the environment */

void settings_use(const char *block)
{
	passed = block;
}

bool settings_are_attached(void)
{
	return passed != NULL;
}

const char *setting(const char *name)
{
	size_t length = strlen(name);

	if (!passed)
		return getenv(name);
	for (const char *entry = passed; *entry; entry += strlen(entry) + 1)
		if (!strncmp(entry, name, length) && entry[length] == '=')
			return entry + length + 1;
	return NULL;
}
