/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/align.h"

#include <string.h>

#include "merge/merge.h"
#include "merge/ranks/communicators.h"
#include "merge/sums/exporter.h"

static bool is_of_host(const struct input *log, const struct input *other)
{
	return !strcmp(log->host, other->host) && log->shift_ns == other->shift_ns;
}

/* Changes the clocks of the logs. CPU logs follow a log of their host. */
static void apply(const struct alignment *alignment, struct inputs *inputs)
{
	for (size_t l = 0; l < inputs->all_count; l++) {
		size_t other = l;

		if (l >= inputs->count)
			for (other = 0; other < inputs->count; other++)
				if (is_of_host(&inputs->logs[l], &inputs->logs[other]))
					break;
		inputs->logs[l].aligned_ns =
			other < inputs->count ? alignment->shifts_ns[other] : 0;
	}
	for (size_t l = 0; l < inputs->all_count; l++) {
		struct input *log = &inputs->logs[l];
		int64_t start_ns;

		log->shift_ns += log->aligned_ns;
		start_ns = (int64_t)(log->header.start_monotonic_ns + (uint64_t)log->shift_ns);
		if (!l || start_ns < inputs->origin_ns)
			inputs->origin_ns = start_ns;
	}
}

void align_hosts(const struct options *options, struct inputs *inputs, struct report *report)
{
	struct options only = *options;
	struct alignment alignment = {0};
	struct report silent = {.quiet = true};

	if (!inputs->has_several_hosts || inputs->count < 2 ||
	    !options_have_use(options, USES_TIMELINE))
		return;
	only.outputs.count = 0;
	only.cluster = NULL;
	only.settings.wanted = (struct wanted){0};
	only.settings.is_redacted = false;
	only.alignment = &alignment;
	merge_run(&only, inputs, &silent);
	if (silent.status != STATUS_FAILED && alignment.shifts_ns) {
		apply(&alignment, inputs);
		for (size_t s = 0; s < alignment.count; s++)
			report_note(report, "%s", alignment.sentences[s]);
	}
	alignment_free(&alignment);
	report_free(&silent);
}
