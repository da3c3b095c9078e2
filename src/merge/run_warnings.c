/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/run_warnings.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/sums/anomalies.h"
#include "merge/sums/sums.h"

static void report_missing(const struct run *run, struct report *report)
{
	bool is_empty = !run->sums->events.calls.launch_count &&
			!work_counts_all(&run->sums->events.work) && !run->cpu->logs->count;
	const char *logs = run->inputs->count == 1 ? "log" : "logs";
	char time[TIME_BYTES];

	if (is_empty && run->sums->recording.recorded_ns) {
		format_time(time, run->sums->recording.recorded_ns);
		report_note(report,
			    "no launches in the %s: recording was on for %s, and the program "
			    "launched nothing in that time",
			    logs, time);
	} else if (is_empty) {
		report_warn(report, "no launches in the %s%s", logs,
			    run->sums->recording.pause_count
				    ? ": recording had not been started with xtrace start"
				    : "");
	}
	if (run->sums->events.work.idle_unknown_ns) {
		format_time(time, run->sums->events.work.idle_unknown_ns);
		report_warn(report,
			    "%s between GPU work is not counted as idle: missing work may have run "
			    "in that time",
			    time);
	}
	for (size_t d = 0; d < ANOMALIES; d++)
		if (anomaly_count(run, &anomalies[d]))
			report_warn(report, anomalies[d].format,
				    (unsigned long long)anomaly_count(run, &anomalies[d]));
}

static bool begins_with_path(const char *text, const char *path)
{
	size_t length = strlen(path);

	return !strncmp(text, path, length) && text[length] == ':';
}

/* Returns whether a warning is about a log itself. */
static bool is_of_log(const struct inputs *inputs, const char *warning)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (begins_with_path(warning, input_shown(&inputs->logs[i])))
			return true;
	for (size_t i = 0; i < inputs->unreadable_count; i++)
		if (begins_with_path(warning, input_shown(&inputs->unreadable[i])))
			return true;
	return false;
}

/* Puts warnings about logs before those about names. */
static void order_warnings(const struct run *run)
{
	struct report *report = run->report;
	char **sorted = xt_calloc(report->warning_count + 1, sizeof(*sorted));
	size_t count = 0;

	for (int of_log = 1; of_log >= 0; of_log--)
		for (size_t w = 0; w < report->warning_count; w++)
			if (is_of_log(run->inputs, report->warnings[w]) == of_log)
				sorted[count++] = report->warnings[w];
	if (count)
		memcpy(report->warnings, sorted, count * sizeof(*sorted));
	free(sorted);
}

void run_warnings_finish(const struct run *run)
{
	report_missing(run, run->report);
	order_warnings(run);
}
