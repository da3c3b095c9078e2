/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay FILE|FOLDER…: runs a fuzz target on saved inputs, without a fuzzer.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_BYTES_MAX (1u << 20)

static unsigned count;

static int feed_file(const char *path)
{
	static uint8_t buffer[INPUT_BYTES_MAX];
	FILE *file = fopen(path, "rb");
	uint8_t *data;
	size_t bytes;

	if (!file) {
		perror(path);
		return 1;
	}
	bytes = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	/* Use an exact-size copy, so that AddressSanitizer detects reads beyond its end. */
	data = malloc(bytes ? bytes : 1);
	if (!data)
		return 1;
	memcpy(data, buffer, bytes);
	LLVMFuzzerTestOneInput(data, bytes);
	free(data);
	count++;
	return 0;
}

static int feed_folder(const char *path)
{
	struct dirent **entries;
	int entry_count = scandir(path, &entries, NULL, alphasort);
	int failed = entry_count < 0;

	for (int i = 0; i < entry_count; i++) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			failed |= feed_file(name);
		free(entries[i]);
	}
	if (entry_count >= 0)
		free(entries);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		struct stat status;

		if (!stat(argv[i], &status) && S_ISDIR(status.st_mode))
			failed |= feed_folder(argv[i]);
		else
			failed |= feed_file(argv[i]);
	}
	printf("%u inputs\n", count);
	return failed || !count;
}
