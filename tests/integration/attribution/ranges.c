/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX calls from functions that return before the range ends.
 */
#include "ranges.h"

const char *const domain_names[1 + LOOP_DOMAIN] = {NULL, "net", "io", "loop"};

const char *const range_texts[RANGE_TEXTS] = {
	"load",
	"forward",
	"backward",
	"step;0",
	"\xc3\xbc"
	"bung",
	"a-rather-long-name-of-a-range",
};
const wchar_t *const wide_range_texts[RANGE_TEXTS] = {
	L"load",
	L"forward",
	L"backward",
	L"step;0",
	L"\u00fc"
	L"bung",
	L"a-rather-long-name-of-a-range",
};

FRAME_FUNCTION void range_from_below(struct job *job)
{
	ENTER();
	range_step(job);
	LEAVE();
}

/* Pops all ranges of the thread, in a random order of domains. */
FRAME_FUNCTION void ranges_close(struct job *job)
{
	ENTER();
	for (unsigned domain = 0; domain <= DOMAINS; domain++)
		while (job->open_ranges[domain])
			range_pop(job, domain);
	LEAVE();
}
