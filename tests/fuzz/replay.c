/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay [--random COUNT] FILE|FOLDER…: runs a fuzz target on saved inputs, without a fuzzer, and
 * on COUNT random ones, which are the same in every run.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_BYTES_MAX (1u << 20)

#define RANDOM_BYTES 64

static unsigned count;

/* Uses an exact-size copy, so that AddressSanitizer detects reads beyond its end. */
static int feed_copy(const uint8_t *buffer, size_t bytes)
{
	uint8_t *data = malloc(bytes ? bytes : 1);

	if (!data)
		return 1;
	memcpy(data, buffer, bytes);
	LLVMFuzzerTestOneInput(data, bytes);
	free(data);
	count++;
	return 0;
}

static int feed_random(unsigned inputs)
{
	uint8_t buffer[RANDOM_BYTES];
	uint64_t state = 1;
	int failed = 0;

	for (unsigned i = 0; i < inputs; i++) {
		for (size_t b = 0; b < sizeof(buffer); b++) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
			buffer[b] = (uint8_t)(state >> 56);
		}
		failed |= feed_copy(buffer, (state >> 32) % sizeof(buffer));
	}
	return failed;
}

static int feed_file(const char *path)
{
	static uint8_t buffer[INPUT_BYTES_MAX];
	FILE *file = fopen(path, "rb");
	size_t bytes;

	if (!file) {
		perror(path);
		return 1;
	}
	bytes = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	return feed_copy(buffer, bytes);
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
	int failed = 0, first = 1;

	if (argc > 2 && !strcmp(argv[1], "--random")) {
		failed = feed_random((unsigned)atoi(argv[2]));
		first = 3;
	}
	for (int i = first; i < argc; i++) {
		struct stat status;

		if (!stat(argv[i], &status) && S_ISDIR(status.st_mode))
			failed |= feed_folder(argv[i]);
		else
			failed |= feed_file(argv[i]);
	}
	printf("%u inputs\n", count);
	return failed || !count;
}
