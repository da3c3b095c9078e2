/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events of a log, and completes the logs after the run.
 */
#include "finish_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "live/totals.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "log/read/rows.h"
#include "log/recover/recover.h"
#include "sampler/process_read.h"
#include "xtrace/account.h"

#define KIND(kind)    (UINT32_C(1) << (kind))
#define CALLS_WRITTEN "calls.written"

/* The state of a reading that fills in a summary. */
struct reading {
	struct log_summary *summary;
	struct live_accounts accounts;
	uint64_t *launch_ids; /* of functions that launch; owned */
	size_t launch_id_count, launch_id_capacity;
	uint64_t call_count;
};

/* A later row replaces an earlier one. */
static int add_account(struct live_accounts *accounts, const struct xt_row_account *row)
{
	struct live_account *account = live_account(accounts, row->name);

	if (account)
		account->value = row->value;
	return 0;
}
XT_DEFINE_ROWS_READER(read_accounts, account, struct live_accounts, add_account)

static int add_meta(struct reading *reading, const struct xt_row_meta *row)
{
	struct log_summary *summary = reading->summary;

	if (xt_bytes_are(row->key, "log.flight_recorder"))
		reading->accounts.is_flight_recorder = row->value.length > 0;
	if (xt_bytes_are(row->key, "log.kind"))
		summary->is_cpu = xt_bytes_are(row->value, "cpu");
	if (xt_bytes_are(row->key, "gpu.simulated"))
		summary->simulated = xt_bytes_are(row->value, "1");
	if (xt_bytes_are(row->key, "process.exe")) {
		free(summary->exe);
		summary->exe = strndup(row->value.data ? row->value.data : "", row->value.length);
	}
	return 0;
}
XT_DEFINE_ROWS_READER(read_metas, meta, struct reading, add_meta)

static bool is_launch(const struct reading *reading, uint64_t id)
{
	for (size_t i = 0; i < reading->launch_id_count; i++)
		if (reading->launch_ids[i] == id)
			return true;
	return false;
}

/* A log may define an id more than once. */
static int add_api(struct reading *reading, const struct xt_row_api *row)
{
	if ((row->class != XT_API_LAUNCH && row->class != XT_API_GRAPH_LAUNCH) ||
	    is_launch(reading, row->id))
		return 0;
	if (grow(reading->launch_ids, reading->launch_id_capacity, reading->launch_id_count + 1))
		return -ENOMEM;
	reading->launch_ids[reading->launch_id_count++] = row->id;
	return 0;
}
XT_DEFINE_ROWS_READER(read_apis, api, struct reading, add_api)

static int finish_logs_add_call(struct reading *reading, const struct xt_row_call *row)
{
	reading->summary->launch_count += is_launch(reading, row->api);
	reading->call_count++;
	return 0;
}
XT_DEFINE_ROWS_READER(read_calls, call, struct reading, finish_logs_add_call)

static int add_sample(struct reading *reading, const struct xt_row_cpu_sample *row)
{
	reading->summary->sample_count += row->count;
	return 0;
}
XT_DEFINE_ROWS_READER(read_samples, cpu_sample, struct reading, add_sample)

static int read_chunk(struct reading *reading, const struct xt_chunk *chunk)
{
	switch (xt_chunk_kind(chunk)) {
	case XT_KIND_META:
		return read_metas(reading, chunk);
	case XT_KIND_ACCOUNT:
		return read_accounts(&reading->accounts, chunk);
	case XT_KIND_API:
		return read_apis(reading, chunk);
	case XT_KIND_CALL:
		return read_calls(reading, chunk);
	case XT_KIND_CPU_SAMPLE:
		return read_samples(reading, chunk);
	case XT_KIND_KERNEL:
		reading->summary->kernel_count += xt_chunk_rows(chunk);
		return 0;
	default:
		return 0;
	}
}

/* Returns 0, -ENODATA if the log is empty, or another -errno. */
static int open_log(const char *path, struct xt_reader **reader_out)
{
	switch (xt_reader_open(path, reader_out)) {
	case XT_OPEN_OK:
		return 0;
	case XT_OPEN_ERRNO:
		return -errno;
	case XT_OPEN_EMPTY:
		return -ENODATA;
	default:
		return -EINVAL;
	}
}

static uint64_t lost_count(const struct live_accounts *accounts)
{
	return live_accounts_lost(accounts, xt_account_is_loss, false) +
	       live_accounts_lost(accounts, xt_account_is_loss, true);
}

/* A zombie is not running. */
static bool is_running(uint32_t pid)
{
	struct thread_stat stat;

	return !process_stat_read((pid_t)pid, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/*
 * Finds out whether the process is still writing and whether it closed the log. Call it before
 * appending to the log.
 */
static void summary_probe(const char *path, struct log_summary *summary)
{
	struct xt_reader *reader;
	char *crash_buffer = NULL;
	int lock, error = open_log(path, &reader);

	summary->readable = summary->running = false;
	summary->empty = error == -ENODATA;
	if (error)
		return;
	summary->readable = true;
	summary->pid = xt_reader_header(reader)->pid;
	while (xt_reader_next(reader, KIND(XT_KIND_END)))
		;
	summary->closed = xt_reader_damage(reader)->closed;
	xt_reader_close(reader);
	/* The crash buffer exists while the process runs, and after it was killed. */
	if (asprintf(&crash_buffer, "%s.spool", path) < 0)
		return;
	/*
	 * The pid may belong to another pid namespace, so use it only if the file system has no
	 * locks.
	 */
	lock = data_dir_log_lock(AT_FDCWD, path);
	summary->running = access(crash_buffer, F_OK) == 0 &&
			   (lock == 1 || (lock < 0 && is_running(summary->pid)));
	free(crash_buffer);
}

/*
 * Counts launches and kernels, and takes the losses from the log's account. Returns 0 or -errno.
 * summary->exe is owned in both cases.
 */
static int summary_read(const char *path, struct log_summary *summary)
{
	const uint32_t kinds = KIND(XT_KIND_META) | KIND(XT_KIND_ACCOUNT) | KIND(XT_KIND_API) |
			       KIND(XT_KIND_CALL) | KIND(XT_KIND_KERNEL) | KIND(XT_KIND_CPU_SAMPLE);
	struct reading reading = {.summary = summary};
	const struct xt_damage *damage;
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	uint64_t done_bytes;
	int error = open_log(path, &reader);

	if (error)
		return error;
	/* A log without this account is incomplete. */
	live_account(&reading.accounts, xt_text(CALLS_WRITTEN))->value = UINT64_MAX;
	while (!error && (chunk = xt_reader_next(reader, kinds)))
		error = read_chunk(&reading, chunk);
	summary->lost_count = lost_count(&reading.accounts);
	damage = xt_reader_damage(reader);
	summary->incomplete =
		!damage->closed || damage->chunks_damaged || damage->chunks_missing ||
		(!summary->is_cpu &&
		 reading.call_count != live_account_value(&reading.accounts, CALLS_WRITTEN));
	xt_reader_position(reader, &done_bytes, &summary->log_bytes);
	xt_reader_close(reader);
	free(reading.launch_ids);
	return error;
}

/*
 * Allocations and NVTX events are also recorded during a pause. They do not count as content then.
 */
struct content {
	struct live_accounts accounts;
	bool is_paused;
	uint64_t paused_ns; /* time of the latest row ignored because of a pause */
	bool found;
};

static void look_at_events(struct content *content, const struct xt_chunk *chunk,
			   const uint64_t *times)
{
	for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++) {
		if (!content->is_paused)
			content->found = true;
		else if (times[row] > content->paused_ns)
			content->paused_ns = times[row];
	}
}

static int look_at_switch(struct content *content, const struct xt_row_switch *row)
{
	content->is_paused = !row->is_on;
	/* The rows of events may precede the row of the switch. */
	if (row->is_on && content->paused_ns > row->time_ns)
		content->found = true;
	return 0;
}
XT_DEFINE_ROWS_READER(look_at_switches, switch, struct content, look_at_switch)

static void look_at_chunk(struct content *content, const struct xt_chunk *chunk)
{
	switch (xt_chunk_kind(chunk)) {
	case XT_KIND_CALL:
	case XT_KIND_KERNEL:
	case XT_KIND_COPY:
	case XT_KIND_SET:
	case XT_KIND_CPU_SAMPLE:
		content->found |= xt_chunk_rows(chunk) > 0;
		break;
	case XT_KIND_MEMORY:
		look_at_events(content, chunk, xt_columns_memory(chunk).time_ns);
		break;
	case XT_KIND_RANGE:
		look_at_events(content, chunk, xt_columns_range(chunk).time_ns);
		break;
	case XT_KIND_SWITCH:
		look_at_switches(content, chunk);
		break;
	case XT_KIND_ACCOUNT:
		read_accounts(&content->accounts, chunk);
		break;
	default:
		break;
	}
}

static bool is_whole(const struct xt_reader *reader)
{
	const struct xt_damage *damage = xt_reader_damage(reader);
	char why[XT_REFUSAL_BYTES];

	return damage->closed && !damage->truncated && !damage->chunks_damaged &&
	       !damage->chunks_missing && !damage->chunks_unknown && !damage->bytes_skipped &&
	       !xt_reader_refused(reader, why);
}

enum summary_content summary_find_content(const char *path)
{
	enum summary_content result = SUMMARY_DAMAGED;
	struct content content = {0};
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	int error = open_log(path, &reader);

	if (error)
		return error == -ENODATA ? SUMMARY_EMPTY : SUMMARY_DAMAGED;
	/* Unpack chunks of all kinds. The reader does not check those it skips. */
	while (!content.found && (chunk = xt_reader_next(reader, 0)))
		look_at_chunk(&content, chunk);
	if (content.found || live_account_value(&content.accounts, "calls.seen") ||
	    lost_count(&content.accounts))
		result = SUMMARY_CONTENT;
	else if (is_whole(reader))
		result = SUMMARY_EMPTY;
	xt_reader_close(reader);
	return result;
}

#define EMBED_LOGS_MAX	 1000 /* per merge process, to limit its argument list */
#define EMBED_OTHERS_MAX 32   /* CPU logs of processes without CUDA calls */
#define CPU_LOG_SUFFIX	 ".cpu" DATA_DIR_LOG_SUFFIX

struct sized_log {
	size_t index;
	off_t bytes;
};

/* Adds the crash buffer of a killed process to its log. */
static void recover(const char *log)
{
	struct xt_recovered recovered;
	int error = xt_recover(log, &recovered);

	if (error && error != -EBUSY)
		print_error("cannot recover '%s" XT_CRASH_BUFFER_SUFFIX "': %s", log,
			    error == -EBADMSG
				    ? "it is damaged, or not the recovery file of this log"
				    : strerror(-error));
	if (recovered.areas_damaged + recovered.areas_unknown)
		print_error(
			"cannot recover all of '%s" XT_CRASH_BUFFER_SUFFIX
			"': %llu parts are damaged or unknown",
			log,
			(unsigned long long)(recovered.areas_damaged + recovered.areas_unknown));
}

/* Waits briefly for the process to end, and recovers its events. Skips logs still being written. */
static void settle_log(struct finished *f, size_t index)
{
	struct log_summary *summary = &f->summaries[index];
	const char *path = f->logs[index];

	summary->name = base_name(path);
	summary_probe(path, summary);
	while (summary->running && monotonic_ns() - f->end_ns < GRACE_NS) {
		nap_ns(GRACE_STEP_NS);
		summary_probe(path, summary);
	}
	/*
	 * The crash buffer contains the events that an unclosed log lacks. Recovery checks the
	 * lock, so it skips the empty log of a running process.
	 */
	if ((summary->readable || summary->empty) && !summary->running)
		recover(path);
}

bool finish_is_cpu_log(const char *name)
{
	return has_ending(name, CPU_LOG_SUFFIX);
}

/* Length of the part that all logs of a process have in common: HOST.PID in HOST.PID-2.cpu.xtr. */
static size_t stem_length(const char *name)
{
	size_t end = strlen(name) -
		     strlen(finish_is_cpu_log(name) ? CPU_LOG_SUFFIX : DATA_DIR_LOG_SUFFIX);

	while (end && name[end - 1] != '.')
		end--;
	return end + strspn(name + end, "0123456789");
}

static bool has_cuda_log(const struct finished *f, const char *cpu_log)
{
	size_t length = stem_length(cpu_log);

	for (size_t i = 0; i < f->log_count; i++)
		if (!finish_is_cpu_log(f->logs[i]) && stem_length(f->logs[i]) == length &&
		    !memcmp(f->logs[i], cpu_log, length))
			return true;
	return false;
}

COMPARE_BY(by_bytes_descending, struct sized_log, DOWN(bytes))

/*
 * Marks the logs that get no symbols. It takes about 15 ms for each log, so a build script with
 * thousands of processes would end much later. The report can still resolve these symbols on this
 * machine. Logs with CUDA calls, and the CPU logs of these processes, always get symbols.
 */
static void skip_small_logs(const struct finished *f, bool *is_skipped)
{
	struct sized_log *others = calloc(f->log_count + 1, sizeof(*others));
	size_t count = 0;

	for (size_t i = 0; others && i < f->log_count; i++) {
		struct stat status;

		if (!finish_is_cpu_log(f->logs[i]) || has_cuda_log(f, f->logs[i]))
			continue;
		if (stat(f->logs[i], &status))
			status.st_size = 0;
		others[count++] = (struct sized_log){i, status.st_size};
	}
	SORT(others, count, by_bytes_descending);
	for (size_t i = EMBED_OTHERS_MAX; i < count; i++)
		is_skipped[others[i].index] = true;
	free(others);
}

/* Embed symbols into up to EMBED_LOGS_MAX logs, starting at *next. One process for many logs reads
 * each shared binary once. */
static int embed_some(const struct finished *f, const bool *is_skipped, size_t *next)
{
	const char *arguments[EMBED_LOGS_MAX + 6] = {"merge", "--embed-symbols", "--quiet"};
	size_t first = 3, count;

	if (f->torch_trace) {
		arguments[first++] = "--torch-trace";
		arguments[first++] = f->torch_trace;
	}
	count = first;

	for (; *next < f->log_count && count < first + EMBED_LOGS_MAX; (*next)++) {
		const struct log_summary *summary = &f->summaries[*next];

		if (!summary->readable || summary->running || is_skipped[*next])
			continue;
		arguments[count++] = f->logs[*next];
	}
	/* stdout belongs to the traced program. */
	return count > first ? subprocess_run("merge", arguments, STDERR_FILENO) : STATUS_OK;
}

static void embed_symbols(const struct finished *f)
{
	bool *is_skipped = calloc(f->log_count + 1, sizeof(*is_skipped));
	int worst = 0;

	if (!is_skipped) {
		print_error("cannot embed symbols: out of memory");
		return;
	}
	skip_small_logs(f, is_skipped);
	for (size_t next = 0; next < f->log_count;) {
		int status = embed_some(f, is_skipped, &next);

		worst = status > worst ? status : worst;
	}
	free(is_skipped);
	/* The report says if a log is damaged. */
	if (worst > STATUS_INCOMPLETE)
		print_error("cannot embed symbols in some logs of '%s'", f->data_dir);
}

/* A process that still runs may still compile, so its file stays. */
static void remove_torch_trace(const struct finished *f)
{
	if (!f->owns_torch_trace)
		return;
	for (size_t i = 0; i < f->log_count; i++)
		if (f->summaries[i].running)
			return;
	data_dir_remove_torch_trace(f->data_dir);
}

bool finish_has_content(const struct finished *f)
{
	for (size_t i = 0; i < f->log_count; i++)
		if (summary_find_content(f->logs[i]) == SUMMARY_CONTENT)
			return true;
	return false;
}

int finish_logs(struct finished *f)
{
	int error = data_dir_list_logs(f->data_dir, &f->logs, &f->log_count);

	if (error)
		return error;
	f->summaries = calloc(f->log_count + 1, sizeof(*f->summaries));
	if (!f->summaries) {
		finish_free(f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < f->log_count; i++)
		settle_log(f, i);
	embed_symbols(f);
	remove_torch_trace(f);
	for (size_t i = 0; i < f->log_count; i++)
		if (f->summaries[i].readable && summary_read(f->logs[i], &f->summaries[i]))
			f->summaries[i].readable = false;
	return 0;
}

void finish_free(struct finished *f)
{
	for (size_t i = 0; f->summaries && i < f->log_count; i++)
		free(f->summaries[i].exe);
	free_all(f->summaries, f->torch_trace);
	data_dir_free_logs(f->logs, f->log_count);
	f->summaries = NULL;
	f->torch_trace = NULL;
	f->logs = NULL;
	f->log_count = 0;
}
