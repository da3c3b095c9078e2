/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the logs after the run.
 */
#include "finish_logs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "data_dir.h"
#include "log/base/monotonic.h"
#include "log/recover/recover.h"

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
		nanosleep(&(struct timespec){.tv_nsec = GRACE_STEP_NS}, NULL);
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
	size_t length = strlen(name), suffix = strlen(CPU_LOG_SUFFIX);

	return length > suffix && !strcmp(name + length - suffix, CPU_LOG_SUFFIX);
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

static int by_bytes_descending(const void *a, const void *b)
{
	const struct sized_log *left = a, *right = b;

	return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

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
