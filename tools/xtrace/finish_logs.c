/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events of a log, and completes the logs after the run.
 */
#include "finish_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "data_dir.h"
#include "log/base/compare.h"
#include "log/base/monotonic.h"
#include "log/read/rows.h"
#include "log/recover/recover.h"
#include "xtrace/account.h"

#define KIND(kind) (UINT32_C(1) << (kind))

/* One entry per kind of loss in the log's account. A later row replaces an earlier one. */
#define LOSSES_MAX 64

struct losses {
	struct {
		char name[48];
		uint64_t count;
	} causes[LOSSES_MAX];
	size_t cause_count;
	bool is_flight_recorder;
	uint64_t calls_written; /* UINT64_MAX: the log has no account */
};

struct api_table {
	uint64_t *launch_ids;
	size_t count, room;
};

static bool bytes_equal(struct xt_bytes bytes, const char *text)
{
	return bytes.length == strlen(text) && memcmp(bytes.data, text, bytes.length) == 0;
}

static void note_loss(struct losses *losses, struct xt_bytes name, uint64_t count)
{
	char text[sizeof(losses->causes[0].name)];
	size_t i = 0;

	snprintf(text, sizeof(text), "%.*s", (int)name.length, name.data);
	while (i < losses->cause_count && strcmp(losses->causes[i].name, text) != 0)
		i++;
	if (i == LOSSES_MAX)
		return;
	if (i == losses->cause_count) {
		strcpy(losses->causes[i].name, text);
		losses->cause_count++;
	}
	losses->causes[i].count = count;
}

static void read_account(struct losses *losses, const struct xt_chunk *chunk)
{
	const struct xt_columns_account columns = xt_columns_account(chunk);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_account row = xt_read_account(&columns, r);

		if (bytes_equal(row.name, "calls.written"))
			losses->calls_written = row.value;
		if (xt_account_is_loss(row.name.data, row.name.length))
			note_loss(losses, row.name, row.value);
	}
}

static void read_meta(struct log_summary *summary, struct losses *losses,
		      const struct xt_chunk *chunk)
{
	const struct xt_columns_meta columns = xt_columns_meta(chunk);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_meta row = xt_read_meta(&columns, r);

		if (bytes_equal(row.key, "log.flight_recorder"))
			losses->is_flight_recorder = row.value.length > 0;
		if (bytes_equal(row.key, "log.kind"))
			summary->is_cpu = bytes_equal(row.value, "cpu");
		if (bytes_equal(row.key, "gpu.simulated"))
			summary->simulated = bytes_equal(row.value, "1");
		if (bytes_equal(row.key, "process.exe")) {
			free(summary->exe);
			summary->exe =
				strndup(row.value.data ? row.value.data : "", row.value.length);
		}
	}
}

static bool is_launch(const struct api_table *apis, uint64_t id)
{
	for (size_t i = 0; i < apis->count; i++)
		if (apis->launch_ids[i] == id)
			return true;
	return false;
}

static int read_apis(struct api_table *apis, const struct xt_chunk *chunk)
{
	const struct xt_columns_api columns = xt_columns_api(chunk);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_api row = xt_read_api(&columns, r);

		if (row.class != XT_API_LAUNCH && row.class != XT_API_GRAPH_LAUNCH)
			continue;
		/* A log may define an id more than once. */
		if (is_launch(apis, row.id))
			continue;
		if (apis->count == apis->room) {
			size_t room = apis->room ? 2 * apis->room : 16;
			uint64_t *grown = reallocarray(apis->launch_ids, room, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			apis->launch_ids = grown;
			apis->room = room;
		}
		apis->launch_ids[apis->count++] = row.id;
	}
	return 0;
}

static uint64_t count_launches(const struct api_table *apis, const struct xt_chunk *chunk)
{
	const struct xt_columns_call columns = xt_columns_call(chunk);
	uint64_t count = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		count += is_launch(apis, columns.api[r]);
	return count;
}

static uint64_t count_samples(const struct xt_chunk *chunk)
{
	const struct xt_columns_cpu_sample columns = xt_columns_cpu_sample(chunk);
	uint64_t sum = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
		sum += columns.count[r];
	return sum;
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

static uint64_t add_up(const struct losses *losses)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < losses->cause_count; i++) {
		const char *name = losses->causes[i].name;

		if (!losses->is_flight_recorder || !xt_account_is_beyond_size(name, strlen(name)))
			sum += losses->causes[i].count;
	}
	return sum;
}

/* A zombie is not running. */
static bool is_running(uint32_t pid)
{
	char path[32], line[512] = "", *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	state = strrchr(line, ')'); /* the name before it may contain any character */
	return state && state[1] && state[2] != 'Z' && state[2] != 'X';
}

/*
 * True if the process that wrote the log still has its lock. The pid may belong to another pid
 * namespace, so use it only if the file system has no locks.
 */
static bool is_held(const char *path, uint32_t pid)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool is_free = fd >= 0 && !flock(fd, LOCK_SH | LOCK_NB);
	bool is_locked = fd >= 0 && !is_free && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return is_locked || (!is_free && is_running(pid));
}

/*
 * Finds out whether the process is still writing and whether it closed the log. Call it before
 * appending to the log.
 */
static void summary_probe(const char *path, struct log_summary *summary)
{
	struct xt_reader *reader;
	char *crash_buffer = NULL;
	int error = open_log(path, &reader);

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
	summary->running = access(crash_buffer, F_OK) == 0 && is_held(path, summary->pid);
	free(crash_buffer);
}

/*
 * Counts launches and kernels, and takes the losses from the log's account. Returns 0 or -errno.
 * Call summary_clear() in both cases.
 */
static int summary_read(const char *path, struct log_summary *summary)
{
	const uint32_t kinds = KIND(XT_KIND_META) | KIND(XT_KIND_ACCOUNT) | KIND(XT_KIND_API) |
			       KIND(XT_KIND_CALL) | KIND(XT_KIND_KERNEL) | KIND(XT_KIND_CPU_SAMPLE);
	struct losses losses = {.calls_written = UINT64_MAX};
	const struct xt_damage *damage;
	struct api_table apis = {0};
	uint64_t call_count = 0;
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	uint64_t done_bytes;
	int error = open_log(path, &reader);

	if (error)
		return error;
	while (!error && (chunk = xt_reader_next(reader, kinds))) {
		switch (xt_chunk_kind(chunk)) {
		case XT_KIND_META:
			read_meta(summary, &losses, chunk);
			break;
		case XT_KIND_ACCOUNT:
			read_account(&losses, chunk);
			break;
		case XT_KIND_API:
			error = read_apis(&apis, chunk);
			break;
		case XT_KIND_CALL:
			summary->launch_count += count_launches(&apis, chunk);
			call_count += xt_chunk_rows(chunk);
			break;
		case XT_KIND_KERNEL:
			summary->kernel_count += xt_chunk_rows(chunk);
			break;
		case XT_KIND_CPU_SAMPLE:
			summary->sample_count += count_samples(chunk);
			break;
		default:
			break;
		}
	}
	summary->lost_count = add_up(&losses);
	damage = xt_reader_damage(reader);
	summary->incomplete = !damage->closed || damage->chunks_damaged || damage->chunks_missing ||
			      (!summary->is_cpu && call_count != losses.calls_written);
	xt_reader_position(reader, &done_bytes, &summary->log_bytes);
	xt_reader_close(reader);
	free(apis.launch_ids);
	return error;
}

/*
 * Allocations and NVTX events are also recorded during a pause. They do not count as content then.
 */
struct content {
	struct losses losses;
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

static void look_at_switches(struct content *content, const struct xt_chunk *chunk)
{
	const struct xt_columns_switch columns = xt_columns_switch(chunk);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_switch row = xt_read_switch(&columns, r);

		content->is_paused = !row.is_on;
		/* The rows of events may precede the row of the switch. */
		if (row.is_on && content->paused_ns > row.time_ns)
			content->found = true;
	}
}

static void look_at_account(struct content *content, const struct xt_chunk *chunk)
{
	const struct xt_columns_account columns = xt_columns_account(chunk);

	read_account(&content->losses, chunk);
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_account row = xt_read_account(&columns, r);

		content->found |= row.value && bytes_equal(row.name, "calls.seen");
	}
}

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
		look_at_account(content, chunk);
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

int summary_find_content(const char *path, enum summary_content *content_out)
{
	struct content content = {0};
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	int error = open_log(path, &reader);

	*content_out = error == -ENODATA ? SUMMARY_EMPTY : SUMMARY_DAMAGED;
	if (error)
		return error == -ENODATA ? 0 : error;
	/* Unpack chunks of all kinds. The reader does not check those it skips. */
	while (!content.found && (chunk = xt_reader_next(reader, 0)))
		look_at_chunk(&content, chunk);
	if (content.found || add_up(&content.losses))
		*content_out = SUMMARY_CONTENT;
	else if (is_whole(reader))
		*content_out = SUMMARY_EMPTY;
	xt_reader_close(reader);
	return 0;
}

static void summary_clear(struct log_summary *summary)
{
	free(summary->exe);
	summary->exe = NULL;
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

/* The caller frees it. NULL if memory ran out. */
static char *path_of(const struct finished *f, size_t index)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", f->data_dir, f->logs[index]) < 0 ? NULL : path;
}

/* Waits briefly for the process to end, and recovers its events. Skips logs still being written. */
static void settle_log(struct finished *f, size_t index)
{
	struct log_summary *summary = &f->summaries[index];
	char *path = path_of(f, index);

	summary->name = f->logs[index];
	if (!path)
		return;
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
	free(path);
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
		struct stat status = {0};
		char *path;

		if (!finish_is_cpu_log(f->logs[i]) || has_cuda_log(f, f->logs[i]))
			continue;
		path = path_of(f, i);
		if (path && stat(path, &status))
			status.st_size = 0;
		others[count++] = (struct sized_log){i, status.st_size};
		free(path);
	}
	if (count)
		qsort(others, count, sizeof(*others), by_bytes_descending);
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
	int status = 0;

	if (f->torch_trace) {
		arguments[first++] = "--torch-trace";
		arguments[first++] = f->torch_trace;
	}
	count = first;

	for (; *next < f->log_count && count < first + EMBED_LOGS_MAX; (*next)++) {
		const struct log_summary *summary = &f->summaries[*next];

		if (!summary->readable || summary->running || is_skipped[*next])
			continue;
		arguments[count] = path_of(f, *next);
		count += arguments[count] != NULL;
	}
	if (count > first)
		/* stdout belongs to the traced program. */
		status = subprocess_run("merge", arguments, STDERR_FILENO);
	while (count > first)
		free((char *)arguments[--count]);
	return status;
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

static void read_log(struct finished *f, size_t index)
{
	struct log_summary *summary = &f->summaries[index];
	char *path = path_of(f, index);

	if (summary->readable && (!path || summary_read(path, summary)))
		summary->readable = false;
	free(path);
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
		read_log(f, i);
	return 0;
}

void finish_free(struct finished *f)
{
	for (size_t i = 0; f->summaries && i < f->log_count; i++)
		summary_clear(&f->summaries[i]);
	free(f->summaries);
	free(f->torch_trace);
	data_dir_free_logs(f->logs, f->log_count);
	f->summaries = NULL;
	f->torch_trace = NULL;
	f->logs = NULL;
	f->log_count = 0;
}
