/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "log/base/monotonic.h"

#define FIRST_NS    UINT64_C(1000000000) /* shorter work needs no line */
#define STEP_NS	    UINT64_C(100000000)
#define BAR_COLUMNS 30

void progress_begin(struct progress *progress, bool is_quiet)
{
	const char *term = getenv("TERM");

	*progress = (struct progress){
		.is_on = !is_quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb"),
		.start_ns = monotonic_ns(),
	};
	progress->next_ns = progress->start_ns + FIRST_NS;
}

void progress_expect(struct progress *progress, uint64_t bytes)
{
	progress->total_bytes += bytes;
}

static void draw(struct progress *progress, uint64_t done_bytes, uint64_t ns)
{
	double part = (double)done_bytes / (double)progress->total_bytes;
	double passed_s = (double)(ns - progress->start_ns) / 1e9;
	char bar[BAR_COLUMNS + 1];

	part = part > 1 ? 1 : part;
	for (int c = 0; c < BAR_COLUMNS; c++)
		bar[c] = c < (int)(part * BAR_COLUMNS) ? '#' : '.';
	bar[BAR_COLUMNS] = '\0';
	fprintf(stderr, "\r\033[K%s: reading [%s] %3.0f %%", message_name(), bar, part * 100);
	if (part > 0.01)
		fprintf(stderr, ", %.0f s left", passed_s / part - passed_s);
	fflush(stderr);
	progress->is_shown = true;
}

void progress_at(struct progress *progress, uint64_t bytes)
{
	uint64_t ns;

	if (!progress->is_on || !progress->total_bytes)
		return;
	ns = monotonic_ns();
	if (ns < progress->next_ns)
		return;
	progress->next_ns = ns + STEP_NS;
	draw(progress, progress->done_bytes + bytes, ns);
}

void progress_done(struct progress *progress, uint64_t bytes)
{
	progress->done_bytes += bytes;
	progress_at(progress, 0);
}

void progress_clear(struct progress *progress)
{
	if (!progress->is_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->is_shown = false;
}
