/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the command line of xtrace merge: one argument per line.
 */
#include "merge/options.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "merge/merge_command.h"

#define ARGUMENTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1), *rest = text;
	char *arguments[ARGUMENTS_MAX + 2] = {(char *)"xtrace-merge"};
	struct options options;
	int count = 1;

	if (!text)
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	while (rest && count <= ARGUMENTS_MAX)
		arguments[count++] = strsep(&rest, "\n");
	arguments[count] = NULL;
	options_parse(&options, &command_merge, count, arguments);
	free(text);
	return 0;
}
