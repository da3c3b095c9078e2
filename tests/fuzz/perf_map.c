/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the lines of a perf map. Skips the checks of the file's identity.
 */
#include "merge/symbolize/addresses.c"

#include "fuzz.h"

#define ADDRESSES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct address list[ADDRESSES] = {0};
	struct wanted wanted[ADDRESSES];
	struct report report = {.quiet = true};
	struct model model = {0};
	FILE *map = bytes ? fmemopen((void *)(uintptr_t)data, bytes, "r") : NULL;

	if (!map)
		return 0;
	names_init(&model.names);
	for (uint32_t i = 0; i < ADDRESSES; i++)
		wanted[i] = (struct wanted){0x1000 + i * 0x100, &list[i], false};
	read_map(map, &model, wanted, ADDRESSES);
	drop_ambiguous(wanted, ADDRESSES, &report, "log");
	names_free(&model.names);
	report_free(&report);
	fclose(map);
	return 0;
}
