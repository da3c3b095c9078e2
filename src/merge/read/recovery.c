/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the recovery of src/log and reports its result.
 */
#include "merge/read/recovery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/recover/recover.h"

#define LIST_BYTES 256

/* Writes a list such as "12 calls, 3 kernels". */
static void list(char *out, const struct xt_recovered *recovered)
{
	const struct {
		const char *one, *many;
		uint64_t count;
	} rows[] = {
		{"call", "calls", recovered->calls},
		{"unfinished call", "unfinished calls", recovered->open_calls},
		{"kernel", "kernels", recovered->kernels},
		{"copy", "copies", recovered->copies},
		{"memset", "memsets", recovered->sets},
		{"allocation or free", "allocations and frees", recovered->memory},
		{"NVTX event", "NVTX events", recovered->ranges},
		{"graph node", "graph nodes", recovered->nodes},
	};
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].count && used < LIST_BYTES)
			used += (size_t)snprintf(out + used, LIST_BYTES - used, "%s%llu %s",
						 used ? ", " : "",
						 (unsigned long long)rows[i].count,
						 rows[i].count == 1 ? rows[i].one : rows[i].many);
}

static const char *describe_ending(const struct xt_recovered *recovered)
{
	switch (recovered->ending) {
	case XT_CRASH_BUFFER_WRITE_FAILED:
		return "its process could not write the end of the log";
	case XT_CRASH_BUFFER_UNFINISHED:
		return "its process ended before CUPTI had finished";
	default:
		return "its process was killed, or ended without closing the log";
	}
}

static void report_recovered(const char *path, const struct xt_recovered *recovered,
			     struct report *report)
{
	char what[LIST_BYTES];

	list(what, recovered);
	report_note(report, "%s: %s; %s%s", path, describe_ending(recovered),
		    what[0] ? "recovered from its recovery file: "
			    : "its recovery file has no further events",
		    what);
	if (recovered->log_is_cut)
		report_warn(report,
			    "%s: the end of the log was lost after it was written, and is not in "
			    "its recovery file",
			    path);
	if (recovered->areas_damaged)
		report_warn(report, "%s: skipped damaged parts of its recovery file: %llu", path,
			    (unsigned long long)recovered->areas_damaged);
	if (recovered->areas_unknown)
		report_warn(report,
			    "%s: skipped buffers of an unknown CUPTI version in its recovery file: "
			    "%llu",
			    path, (unsigned long long)recovered->areas_unknown);
}

static void recover(struct input *log, struct report *report)
{
	struct xt_recovered recovered;
	int error = xt_recover(log->path, &recovered);

	if (error == -EBUSY)
		return; /* the process is running: the reader reports it */
	if (error == -EBADMSG)
		report_warn(report,
			    "%s" XT_CRASH_BUFFER_SUFFIX
			    ": not the recovery file of this log; not used",
			    log->path);
	else if (error)
		report_warn(report, "%s" XT_CRASH_BUFFER_SUFFIX ": cannot recover events: %s%s",
			    log->path, strerror(-error),
			    error == -ENOSPC || error == -EDQUOT || error == -EFBIG
				    ? "; free disk space, or copy the directory to another "
				      "disk, and run this command again"
				    : "");
	else if (recovered.found)
		report_recovered(log->path, &recovered, report);
	if (!error)
		log->has_crash_buffer = false;
}

void recovery_run(struct inputs *inputs, struct report *report)
{
	struct xt_recovered nothing;

	for (size_t i = 0; i < inputs->unreadable_count; i++)
		xt_recover(inputs->unreadable[i].path, &nothing);
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->logs[i].has_crash_buffer)
			recover(&inputs->logs[i], report);
	/* Before they are read: a log that is closed meanwhile is not cut. */
	for (size_t i = inputs->count; i < inputs->all_count; i++)
		inputs->logs[i].is_sampled = xt_log_is_held(inputs->logs[i].path);
}
