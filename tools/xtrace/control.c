/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace start, stop and snapshot: ask running processes to start or stop recording, or to save the
 * newest part of it. The request is a word in the crash buffer of each process. The tracer polls
 * it, and confirms in the same word.
 */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_dir.h"
#include "log/base/monotonic.h"
#include "log/base/number_format.h"
#include "log/write/compact.h"
#include "processes.h"

#define PID_DIGITS_MAX	   9
#define POLL_NS		   2000000
#define SEARCH_NS	   100000000
#define WAIT_NS		   UINT64_C(30000000000)
#define NS_PER_MS	   UINT64_C(1000000)
#define MS_MAX		   (uint64_t) UINT32_MAX
#define READ_TIMEOUT_MS	   1000	 /* the tracer looks every few ms */
#define CONFIRM_TIMEOUT_MS 5000	 /* a first start loads parts of CUPTI */
#define DRAIN_TIMEOUT_MS   30000 /* the GPU may be busy for long */

struct control_request {
	bool is_all;
	uint64_t delay_ns, duration_ns;
	uint64_t wait_ns; /* for CUDA to start */
	enum xt_crash_buffer_request request;
	const char *target; /* as the user named it */
};

#define TIME_EXPECTED "a time such as 10s or 500ms"

static const struct option_row common_rows[] = {
	{"all", .help = "All processes that carry xtrace and that you can inspect",
	 .apply = option_flag, .offset = offsetof(struct control_request, is_all)},
	{0},
};

static void list_common_options(struct option_list *list)
{
	option_list_add(list, common_rows);
}

static const struct option_row start_rows[] = {
	{"duration", .value = "TIME", .expected = TIME_EXPECTED,
	 .help = "Stop after TIME, and wait for that. Ctrl-C stops earlier", .apply = option_time,
	 .offset = offsetof(struct control_request, duration_ns)},
	{"delay", .value = "TIME", .expected = TIME_EXPECTED, .help = "Start TIME later",
	 .apply = option_time, .offset = offsetof(struct control_request, delay_ns)},
	{"wait", .value = "TIME", .expected = TIME_EXPECTED,
	 .help = "Wait up to TIME until CUDA starts (default: 30s)", .apply = option_time,
	 .offset = offsetof(struct control_request, wait_ns)},
	{0},
};

static volatile sig_atomic_t is_interrupted;

static void interrupted(int signal)
{
	(void)signal;
	is_interrupted = 1;
}

static void print_process_error(const struct traced_process *process, const char *what)
{
	if (process->pid)
		print_error("process %d: %s", process->pid, what);
	else
		print_error("'%s': %s", process->crash_buffer, what);
}

/* Why the request is not done; NULL: wait longer. */
static const char *why_not(const struct traced_process *process, enum request_progress progress,
			   uint64_t waited_ms, uint64_t timeout_ms)
{
	if (is_interrupted)
		return "interrupted";
	if (progress == REQUEST_REPLACED)
		return "another request came in between";
	if (progress == REQUEST_GONE)
		return "it has ended, or its trace was deleted";
	if (progress == REQUEST_UNREAD && waited_ms >= READ_TIMEOUT_MS)
		return process_is_alive(process)
			       ? "no answer; is it stopped by a signal? The request stays"
			       : "it has ended";
	if (waited_ms >= timeout_ms)
		return "still busy: its GPU work has not finished, or CUPTI does not answer";
	return NULL;
}

/* Why a request that is done has failed; NULL: it has not. */
static const char *failure(const struct process_status *status,
			   enum xt_crash_buffer_request request)
{
	if (request != XT_REQUEST_SNAPSHOT)
		return *status->problem ? status->problem : NULL;
	if (status->snapshot_error == ENODATA)
		return "nothing has been recorded yet, so there is no snapshot";
	if (status->snapshot_error)
		return strerror(status->snapshot_error);
	return status->snapshot_number ? NULL : "another request replaced this one";
}

/* Waits until the tracer confirms. Prints why it did not; then returns false. */
static bool wait_for(const struct traced_process *process, uint32_t word, uint64_t timeout_ms)
{
	uint64_t start_ms = monotonic_ns() / NS_PER_MS;
	enum request_progress progress;
	struct process_status status;
	const char *problem;

	while ((progress = process_progress(process, word)) != REQUEST_DONE) {
		const char *why = why_not(process, progress, monotonic_ns() / NS_PER_MS - start_ms,
					  timeout_ms);

		if (why) {
			print_process_error(process, why);
			return false;
		}
		nap_ns(POLL_NS);
	}
	/* The log of a process that ended meanwhile is complete, but it took no snapshot. */
	if (!process_status_read(process, &status))
		problem = failure(&status, word & XT_REQUEST_MASK);
	else
		problem = (word & XT_REQUEST_MASK) == XT_REQUEST_SNAPSHOT ? "it has ended" : NULL;
	if (problem)
		print_process_error(process, problem);
	return !problem;
}

static const char *request_error(int64_t error)
{
	return error == -EBADMSG   ? "not a recovery file of xtrace"
	       : error == -ENOTSUP ? "it carries an older version of xtrace"
				   : strerror((int)-error);
}

static void note_running(const struct traced_process *process)
{
	struct process_status status;

	if (!process_status_read(process, &status) && status.state == XT_STATE_RECORDING)
		print_note("'%s' is being recorded already; this start replaces its end",
			   process->log);
}

/* A snapshot of a large log takes as long as the disk needs. */
static uint64_t timeout_of(enum xt_crash_buffer_request request)
{
	return request == XT_REQUEST_START  ? CONFIRM_TIMEOUT_MS
	       : request == XT_REQUEST_STOP ? DRAIN_TIMEOUT_MS
					    : UINT64_MAX / 2;
}

/* Removes processes that did not confirm from the list. Returns how many did. */
static size_t request_all(struct process_list *list, const struct control_request *control,
			  enum xt_crash_buffer_request request)
{
	bool is_start = request == XT_REQUEST_START;
	uint32_t delay_ms = is_start ? (uint32_t)(control->delay_ns / 1000000) : 0;
	uint32_t duration_ms = is_start ? (uint32_t)(control->duration_ns / 1000000) : 0;
	int64_t *words = calloc(list->count + 1, sizeof(*words));
	size_t kept = 0;

	for (size_t i = 0; is_start && i < list->count; i++)
		note_running(&list->rows[i]);
	for (size_t i = 0; words && i < list->count; i++)
		words[i] = process_request(&list->rows[i], request, delay_ms, duration_ms);
	for (size_t i = 0; words && i < list->count; i++) {
		const struct traced_process row = list->rows[i];

		if (words[i] < 0)
			print_process_error(&row, request_error(words[i]));
		if (words[i] < 0 ||
		    !wait_for(&row, (uint32_t)words[i], timeout_of(request) + delay_ms))
			continue;
		list->rows[i] = list->rows[kept];
		list->rows[kept++] = row;
	}
	free(words);
	return kept;
}

/* The tracers stop by themselves, even if this process ends. */
static bool is_any_recording(const struct process_list *list)
{
	struct process_status status;

	for (size_t i = 0; i < list->count; i++)
		if (process_is_alive(&list->rows[i]) &&
		    !process_status_read(&list->rows[i], &status) &&
		    (status.state == XT_STATE_RECORDING || status.state == XT_STATE_STOPPING ||
		     status.state == XT_STATE_YIELDED || status.state == XT_STATE_WAITING))
			return true;
	return false;
}

void control_handle_interrupts(void)
{
	const struct sigaction action = {.sa_handler = interrupted};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void stop_again(struct process_list *list, const struct control_request *control)
{
	is_interrupted = 0;
	request_all(list, control, XT_REQUEST_STOP);
}

/* The tracers stop after the duration. */
static void wait_for_end(struct process_list *list, const struct control_request *control)
{
	char time[TIME_BYTES];

	format_time(time, control->duration_ns);
	print_note("recording for %s; Ctrl-C stops earlier", time);
	while (!is_interrupted && is_any_recording(list))
		nap_ns(POLL_NS);
	if (is_interrupted)
		stop_again(list, control);
}

static void report_snapshot(const struct traced_process *process)
{
	char path[PATH_MAX], ending[XT_SNAPSHOT_ENDING_BYTES];
	struct process_status status;

	if (process_status_read(process, &status) || !status.snapshot_number)
		return;
	xt_snapshot_ending(ending, status.snapshot_number);
	if (xt_snapshot_path(process->log, ending, path, sizeof(path)))
		return;
	puts(path); /* for scripts */
	print_note("snapshot written; to see it: xtrace report '%s'", path);
}

static void report(const struct traced_process *process, const struct control_request *control)
{
	struct process_status status;

	if (process_status_read(process, &status)) {
		print_note("the process has ended; to see what it recorded: xtrace report '%s'",
			   process->log);
		return;
	}
	if (control->request == XT_REQUEST_SNAPSHOT)
		report_snapshot(process);
	else if (control->request == XT_REQUEST_START && !control->duration_ns)
		print_note("%s is recording; to end it: xtrace stop %s", process->log,
			   control->target);
	else if (status.state == XT_STATE_PAUSED)
		print_note("%s: recording paused", process->log);
	else if (status.state == XT_STATE_ARMED)
		print_note("%s: nothing has been recorded yet; to start: xtrace start %s",
			   process->log, control->target);
	else
		print_note("recording stopped; to see it: xtrace report '%s'", process->log);
}

static bool is_process(const struct control_request *control)
{
	const char *target = control->target;

	return !control->is_all && access(target, F_OK) && *target &&
	       strspn(target, "0123456789") == strlen(target);
}

/* Returns 0 or -errno. */
static int find_once(struct process_list *list, const struct control_request *control)
{
	if (control->is_all)
		return processes_find_all(list);
	if (!is_process(control))
		return processes_find_directory(list, control->target);
	return strlen(control->target) > PID_DIGITS_MAX
		       ? -ESRCH
		       : processes_find_tree(list, (pid_t)strtol(control->target, NULL, 10));
}

static bool is_used_by_recorder(const char *directory)
{
	int claim, error = data_dir_claim(directory, &claim);

	if (!error && claim >= 0)
		close(claim);
	return error == -EBUSY;
}

/* Whether CUDA may start there later. If it just did, the tracer may not take requests yet. */
static bool may_come(const struct process_list *list, const struct control_request *control,
		     int error)
{
	struct process_status status;

	for (size_t i = 0; i < list->count; i++)
		if (!process_status_read(&list->rows[i], &status) &&
		    status.state == XT_STATE_UNKNOWN)
			return true;
	if (control->is_all || list->count)
		return false;
	if (is_process(control))
		return error == -ENOENT &&
		       process_may_load_xtrace((pid_t)strtol(control->target, NULL, 10));
	return !error && is_used_by_recorder(control->target);
}

static void note_wait(const struct control_request *control)
{
	const char *quote = is_process(control) ? "" : "'";
	char time[TIME_BYTES];

	format_time(time, control->wait_ns);
	print_note("waiting up to %s until %s %s%s%s starts CUDA; Ctrl-C ends this", time,
		   is_process(control) ? "process" : "a process that records into", quote,
		   control->target, quote);
}

/* Waits until CUDA has started. Ctrl-C ends this process, as nothing was requested yet. */
static int find_or_wait(struct process_list *list, const struct control_request *control)
{
	uint64_t start_ns = monotonic_ns(), limit_ns = control->wait_ns;
	bool is_noted = false, is_found = false;
	int error;

	while (error = find_once(list, control), may_come(list, control, error)) {
		uint64_t now_ns = monotonic_ns();

		if (list->count && !is_found && limit_ns) {
			start_ns = now_ns;
			limit_ns = READ_TIMEOUT_MS * NS_PER_MS;
		}
		is_found |= list->count;
		if (now_ns - start_ns >= limit_ns)
			break;
		if (!is_found && !is_noted)
			note_wait(control);
		is_noted = true;
		processes_free(list);
		nap_ns(SEARCH_NS);
	}
	return error;
}

/* Returns the number of processes, or -1 after an error message. */
static int find_processes(struct process_list *list, const struct control_request *control)
{
	const char *target = control->target;
	int error = find_or_wait(list, control);

	if (error == -ESRCH)
		print_error("there is no process %s", target);
	else if (is_process(control) && (error == -EACCES || error == -EPERM))
		print_error("cannot inspect process %s: it belongs to another user, or has raised "
			    "privileges",
			    target);
	else if (error == -ESTALE)
		print_error("cannot control process %s: its trace directory was deleted, so it "
			    "records nothing; restart it to record it",
			    target);
	else if (error == -ENOENT && is_process(control))
		print_error("process %s does not carry xtrace, or has not started CUDA yet",
			    target);
	else if (error)
		print_error("cannot use '%s': %s; name a process or the directory of a recording",
			    target, strerror(-error));
	else if (!list->count)
		print_error(control->is_all ? "no running process carries xtrace"
					    : "no process that records into '%s' has started CUDA "
					      "yet, or all have ended",
			    target);
	return error || !list->count ? -1 : (int)list->count;
}

/* Returns how many processes did what was asked. */
static size_t control_all(struct process_list *list, const struct control_request *control)
{
	size_t count = list->count, confirmed;

	control_handle_interrupts();
	confirmed = request_all(list, control, control->request);
	if (is_interrupted && control->request == XT_REQUEST_START) {
		stop_again(list, control);
		return 0;
	}
	list->count = confirmed;
	if (control->request == XT_REQUEST_START && control->duration_ns && confirmed)
		wait_for_end(list, control);
	for (size_t i = 0; i < confirmed; i++)
		report(&list->rows[i], control);
	list->count = count;
	return confirmed;
}

bool control_start(struct process_list *list, const char *target, uint64_t duration_ns)
{
	const struct control_request control = {
		.request = XT_REQUEST_START, .duration_ns = duration_ns, .target = target};

	return control_all(list, &control) > 0;
}

static int run_request(const struct command *command, int argc, char **argv)
{
	struct control_request control = {
		.request = command == &command_start  ? XT_REQUEST_START
			   : command == &command_stop ? XT_REQUEST_STOP
						      : XT_REQUEST_SNAPSHOT,
		.target = DEFAULT_DATA_DIR,
		.wait_ns = command == &command_start ? WAIT_NS : 0,
	};
	struct process_list list = {0};
	struct option_list options;
	int status, count;
	size_t confirmed;

	status = command_parse(command, &options, &control, argc, argv, 1, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (count && control.is_all) {
		print_error("choose one of --all and '%s'", argv[1]);
		return STATUS_FAILED;
	}
	if (count)
		control.target = argv[1];
	if (control.is_all)
		control.target = "--all";
	if (control.delay_ns > MS_MAX * NS_PER_MS || control.duration_ns > MS_MAX * NS_PER_MS ||
	    (option_is_given(&options, "duration") && control.duration_ns < NS_PER_MS)) {
		print_error("cannot use this --%s: choose a time from 1ms to 49 days",
			    control.delay_ns > MS_MAX * NS_PER_MS ? "delay" : "duration");
		return STATUS_FAILED;
	}
	confirmed = find_processes(&list, &control) < 0 ? 0 : control_all(&list, &control);
	processes_free(&list);
	return confirmed ? STATUS_OK : STATUS_FAILED;
}

#define TARGET_DETAILS                                                                             \
	"PID names one process, DIR the trace directory of a recording (default: xtrace.data), "   \
	"whose\n"                                                                                  \
	"processes are all asked. 'xtrace ps' lists the processes. It works from any shell of "    \
	"the\n"                                                                                    \
	"same user, without signals and without a network port.\n\n"

static const char start_details[] = TARGET_DETAILS
	"  xtrace start --duration 10s 1234    record ten seconds, then print where they are\n\n"
	"Before CUDA has started in the process, or in any process that records into DIR, it\n"
	"waits for that. Ctrl-C ends the wait, with the status of a command that SIGINT ended\n"
	"(130 in a shell).\n\n"
	"Exit status: 0 if at least one process records, else 2.\n";

static const char stop_details[] = TARGET_DETAILS
	"It waits for GPU work that was recorded to finish. Afterwards the log is complete and\n"
	"can be read. A part of CUPTI's cost remains until the process ends: about 0.25 us for\n"
	"each kernel of a CUDA graph. With CUPTI before 13.0.1, or after 'xtrace record\n"
	"--paused', all of it remains.\n\n"
	"Exit status: 0 if at least one process confirmed, else 2.\n";

static const char snapshot_details[] = TARGET_DETAILS
	"It writes what the log has into the folder 'snapshots' of the trace directory, as a\n"
	"complete log. Recording continues. With 'xtrace record --flight-recorder 30s', that is\n"
	"the newest part.\n\n"
	"Exit status: 0 if at least one process wrote a snapshot, else 2.\n";

const struct command command_snapshot = {
	.name = "snapshot",
	.arguments = "[OPTION]... [DIR|PID]",
	.summary = "Save what running processes have recorded so far",
	.details = snapshot_details,
	.options = common_rows,
	.run = run_request,
};

const struct command command_start = {
	.name = "start",
	.arguments = "[OPTION]... [DIR|PID]",
	.summary = "Start recording in running processes",
	.details = start_details,
	.list_options = list_common_options,
	.options = start_rows,
	.run = run_request,
};

const struct command command_stop = {
	.name = "stop",
	.arguments = "[OPTION]... [DIR|PID]",
	.summary = "Stop recording in running processes",
	.details = stop_details,
	.options = common_rows,
	.run = run_request,
};
