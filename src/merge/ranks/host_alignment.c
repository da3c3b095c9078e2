/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/host_alignment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"

/* The offset of a clock in the middle of the job. */
static int64_t shift_ns(const struct collectives_report *report, const struct rank_clock *clock)
{
	/* By the clock itself. */
	double middle_ns = report->times.first_ns + report->times.job_ns / 2 - clock->offset_ns;

	return llround(clock->offset_ns + clock->drift * (middle_ns - clock->at_ns));
}

/* Says how well a host is aligned. The caller frees it. */
static char *host_text(const struct run *run, size_t host)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_clock *clock = &report->clocks.list[host];
	double drifted_ns = fabs(clock->drift) * report->times.job_ns / 2;
	int64_t by_ns = shift_ns(report, clock);
	char by[TIME_BYTES], within[TIME_BYTES], *text;

	if (!rank_clock_is_known(&report->clocks, host))
		return rank_clock_text(run, host);
	format_time(by, (uint64_t)llabs(by_ns));
	format_time(within, (uint64_t)(clock->error_ns + drifted_ns));
	text = xt_asprintf(
		"in timelines, the clock of %s is moved %s by %s, to that of %s. This is "
		"right to "
		"within %s.",
		clock->log->host, by_ns < 0 ? "back" : "forward", by,
		report->clocks.list[clock->reference].log->host, within);
	return text;
}

void alignment_keep(struct alignment *alignment, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct rank_clocks *clocks = &report->clocks;
	size_t log_count = run->inputs->count;

	alignment->shifts_ns = xt_calloc(log_count + 1, sizeof(*alignment->shifts_ns));
	alignment->sentences = xt_calloc(clocks->count + 1, sizeof(*alignment->sentences));
	for (size_t l = 0; l < log_count && report->communicators.count; l++)
		if (clocks->list[clocks->hosts[l]].is_aligned)
			alignment->shifts_ns[l] = shift_ns(report, &clocks->list[clocks->hosts[l]]);
	for (size_t h = 1; h < clocks->count && report->communicators.count; h++) {
		alignment->sentences[alignment->count] = host_text(run, h);
		alignment->count++;
	}
}

void alignment_free(struct alignment *alignment)
{
	for (size_t s = 0; s < alignment->count; s++)
		free(alignment->sentences[s]);
	free(alignment->sentences);
	free(alignment->shifts_ns);
}
