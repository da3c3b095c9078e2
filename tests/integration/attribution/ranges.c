/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX from functions that have returned when the range's work is done.
 */
#include "ranges.h"

const char *const domain_names[1 + DOMAINS] = {NULL, "net", "io"};

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

/* All that the thread has pushed, in some order of domains. */
FRAME_FUNCTION void ranges_close(struct job *job)
{
	ENTER();
	for (unsigned domain = 0; domain <= DOMAINS; domain++)
		while (job->open_ranges[domain])
			range_pop(job, domain);
	LEAVE();
}
