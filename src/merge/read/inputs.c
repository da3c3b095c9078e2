/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the logs in the arguments, and reads host and clock of each before the merge. Runs the
 * recovery of src/log and reports its result.
 */
#include "merge/read/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/script_name.h"
#include "log/read/rows.h"
#include "log/recover/recover.h"

#define INPUTS_DEFAULT "xtrace.data"

#define LOG_SUFFIX ".xtr"

/*
 * Logs of one host share their monotonic clock unless the host was restarted in between. After a
 * restart the shifts differ by far more than any correction of the wall clock.
 */
#define SAME_BOOT_NS (INT64_C(60) * 1000 * 1000 * 1000)

#define INPUT_RANKS	6
#define RANK_DIGITS_MAX 9

/* Sampler and tracer read the start of a process in different ways. */
#define SAME_START_CS 2

#define CLOCK_PAIRS_MAX 65536 /* per log, for the median; more would not improve it */

/* Whether xtrace record wrote to the directory, whose path ends at `end`; NULL: the current one. */
static bool has_info(const char *path, const char *end, struct stat *status_out)
{
	char info[PATH_MAX];

	return snprintf(info, sizeof(info), "%.*s%sinfo.json", end ? (int)(end - path) : 0, path,
			end ? "/" : "") < PATH_MAX &&
	       !stat(info, status_out);
}

/* Takes ownership of path. Adds a log once, even if it is named twice. */
static void add_path(struct inputs *inputs, char *path, struct report *report)
{
	struct stat status = {0};
	struct input *log;

	if (!stat(path, &status)) {
		for (size_t i = 0; i < inputs->count; i++) {
			if (inputs->logs[i].device == status.st_dev &&
			    inputs->logs[i].inode == status.st_ino) {
				free(path);
				return;
			}
		}
	}
	log = xt_new(inputs->logs, inputs->count, inputs->capacity);
	*log = (struct input){.path = path, .device = status.st_dev, .inode = status.st_ino};
	if (has_info(path, strrchr(path, '/'), &status)) {
		log->recording_device = status.st_dev;
		log->recording = status.st_ino;
	}
	if (!report->is_redacted)
		return;
	snprintf(log->alias, sizeof(log->alias), "log-%zu" LOG_SUFFIX, inputs->count);
	report_rename(report, path, log->alias);
}

static int log_filter(const struct dirent *entry)
{
	return has_ending(entry->d_name, LOG_SUFFIX);
}

static void add_directory(struct inputs *inputs, const char *directory, struct report *report)
{
	size_t length = strlen(directory);
	const char *slash = length && directory[length - 1] == '/' ? "" : "/";
	struct dirent **entries;
	int count = scandir(directory, &entries, log_filter, versionsort);
	struct stat status;

	if (count < 0) {
		report_error(report, STATUS_INCOMPLETE, "%s: %s", directory, strerror(errno));
		return;
	}
	if (!count)
		report_error(report, STATUS_INCOMPLETE,
			     has_info(directory, directory + length, &status)
				     ? "%s: the recording is empty: no process used CUDA"
				     : "%s: no logs (*" LOG_SUFFIX ") in this directory",
			     directory);
	for (int i = 0; i < count; i++) {
		add_path(inputs, xt_asprintf("%s%s%s", directory, slash, entries[i]->d_name),
			 report);
		free(entries[i]);
	}
	free(entries);
}

static void add_argument(struct inputs *inputs, const char *argument, struct report *report)
{
	struct stat status;

	if (report->is_redacted)
		report_rename(report, argument, "the input");
	if (stat(argument, &status) < 0) {
		report_error(report, STATUS_INCOMPLETE, "cannot read %s: %s%s", argument,
			     strerror(errno),
			     errno == ENOENT && !strcmp(argument, INPUTS_DEFAULT)
				     ? "; 'xtrace record COMMAND' creates it"
				     : "");
		return;
	}
	if (S_ISDIR(status.st_mode)) {
		add_directory(inputs, argument, report);
		return;
	}
	add_path(inputs, xt_strdup(argument), report);
}

struct xt_reader *inputs_open(const char *path, struct report *report)
{
	static const char *const what[] = {
		[XT_OPEN_EMPTY] = "the log is empty: its process ended before it began to write",
		[XT_OPEN_NOT_A_LOG] = "not an xtrace log",
		[XT_OPEN_NEWER] = "written by a newer version of xtrace; update xtrace to read it",
		[XT_OPEN_BAD_HEADER] = "the header of the log is damaged",
		[XT_OPEN_BYTE_ORDER] = "written on a big-endian processor, which xtrace cannot "
				       "read; record on a little-endian one",
		[XT_OPEN_MACHINE] = "written on a processor that this version does not know; "
				    "update xtrace to read it",
	};
	struct xt_reader *reader;
	enum xt_open_error error = xt_reader_open(path, &reader);

	if (error == XT_OPEN_OK)
		return reader;
	if (error == XT_OPEN_ERRNO && errno == ENOMEM)
		xt_out_of_memory(0);
	if (error == XT_OPEN_EMPTY)
		report_note(report, "%s: %s", path, what[error]);
	else if (error != XT_OPEN_ERRNO)
		report_error(report, STATUS_INCOMPLETE, "%s: %s", path, what[error]);
	else if (errno == ESPIPE)
		report_error(report, STATUS_INCOMPLETE,
			     "%s: not an xtrace log: it is a device or a pipe, not a file", path);
	else
		report_error(report, STATUS_INCOMPLETE, "%s: %s", path, strerror(errno));
	return NULL;
}

static int compare_shifts(const void *a, const void *b)
{
	return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

struct clock_pairs {
	LIST(int64_t);
};

static void add_pair(struct clock_pairs *pairs, uint64_t monotonic_ns, uint64_t realtime_ns)
{
	if (pairs->count >= CLOCK_PAIRS_MAX)
		return;
	list_append(*pairs, (int64_t)(realtime_ns - monotonic_ns));
}

/*
 * Keys of ranks. If a log has several, the first in this list counts: launchers nest in this order.
 */
static const struct rank_key {
	const char *key;
	size_t offset; /* of the number in the log */
} rank_keys[INPUT_RANKS] = {
	{"env.RANK", offsetof(struct input, rank)},
	{"env.OMPI_COMM_WORLD_RANK", offsetof(struct input, rank)},
	{"env.PMI_RANK", offsetof(struct input, rank)},
	{"env.SLURM_PROCID", offsetof(struct input, rank)},
	{"env.LOCAL_RANK", offsetof(struct input, local_rank)},
	{"env.WORLD_SIZE", offsetof(struct input, world_size)},
};

/* Reads a decimal number of at most 9 digits. Returns RANK_UNKNOWN for any other text. */
static uint32_t parse_rank(struct xt_bytes text)
{
	uint32_t number = 0;

	if (!text.length || text.length > RANK_DIGITS_MAX)
		return RANK_UNKNOWN;
	for (size_t i = 0; i < text.length; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return RANK_UNKNOWN;
		number = number * 10 + (uint32_t)(text.data[i] - '0');
	}
	return number;
}

static void read_ranks(uint32_t ranks[INPUT_RANKS], struct xt_bytes name, struct xt_bytes value)
{
	for (size_t k = 0; k < INPUT_RANKS; k++)
		if (xt_bytes_are(name, rank_keys[k].key))
			ranks[k] = parse_rank(value);
}

static void set_ranks(struct input *input, const uint32_t ranks[INPUT_RANKS])
{
	input->rank = input->local_rank = input->world_size = RANK_UNKNOWN;
	for (size_t k = 0; k < INPUT_RANKS; k++) {
		uint32_t *number = (uint32_t *)((char *)input + rank_keys[k].offset);

		if (*number == RANK_UNKNOWN)
			*number = ranks[k];
	}
}

void input_rank_text(const struct input *log, char out[INPUT_RANK_BYTES])
{
	out[0] = '\0';
	if (log->rank == RANK_UNKNOWN && log->local_rank != RANK_UNKNOWN)
		snprintf(out, INPUT_RANK_BYTES, "local rank %u", log->local_rank);
	else if (log->local_rank != RANK_UNKNOWN && log->local_rank != log->rank)
		snprintf(out, INPUT_RANK_BYTES, "rank %u, local %u", log->rank, log->local_rank);
	else if (log->rank != RANK_UNKNOWN)
		snprintf(out, INPUT_RANK_BYTES, "rank %u", log->rank);
}

/* Parses seconds with hundredths, such as "1764085432.07". */
static uint64_t parse_hundredths(struct xt_bytes value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*s", (int)value.length,
		 value.length ? (const char *)value.data : "");
	return (uint64_t)(strtod(text, NULL) * 100 + 0.5);
}

static void read_facts(struct input *input, uint32_t ranks[INPUT_RANKS],
		       const struct xt_chunk *chunk)
{
	const struct {
		const char *key;
		char *out;
		size_t out_bytes;
	} facts[] = {
		{"host.name", input->host, sizeof(input->host)},
		{"host.boot", input->boot, sizeof(input->boot)},
		{"process.exe", input->program, sizeof(input->program)},
		{"process.cmdline", input->command, sizeof(input->command)},
		{"process.identity", input->identity, sizeof(input->identity)},
		{"process.pid_namespace", input->pid_namespace, sizeof(input->pid_namespace)},
		{"env.TORCHELASTIC_RUN_ID", input->run, sizeof(input->run)},
		{"env.SLURM_JOB_ID", input->batch_job, sizeof(input->batch_job)},
	};

	const struct xt_columns_meta columns = xt_columns_meta(chunk);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_meta row = xt_read_meta(&columns, r);

		read_ranks(ranks, row.key, row.value);
		if (xt_bytes_are(row.key, "log.kind"))
			input->is_cpu = xt_bytes_are(row.value, "cpu");
		if (xt_bytes_are(row.key, "process.started"))
			input->started_cs = parse_hundredths(row.value);
		for (size_t f = 0; f < sizeof(facts) / sizeof(facts[0]); f++)
			if (xt_bytes_are(row.key, facts[f].key))
				snprintf(facts[f].out, facts[f].out_bytes, "%.*s",
					 (int)row.value.length,
					 row.value.length ? row.value.data : "");
	}
}

/* Reads host and clock. Returns 0, or -ENOENT after a report if the log cannot be read. */
static int probe(struct input *input, struct report *report)
{
	struct xt_reader *reader = inputs_open(input->path, report);
	struct clock_pairs pairs = {0};
	const struct xt_chunk *chunk;
	uint32_t ranks[INPUT_RANKS];
	char why[XT_REFUSAL_BYTES];
	uint64_t done_bytes;
	char *crash_buffer;
	int error = 0;

	if (!reader)
		return -ENOENT;
	memset(ranks, 0xff, sizeof(ranks)); /* RANK_UNKNOWN */
	input->header = *xt_reader_header(reader);
	xt_reader_position(reader, &done_bytes, &input->file_bytes);
	add_pair(&pairs, input->header.start_monotonic_ns, input->header.start_realtime_ns);
	while ((chunk = xt_reader_next(reader, 1u << XT_KIND_META | 1u << XT_KIND_CLOCK))) {
		const struct xt_columns_clock clock = xt_columns_clock(chunk);

		if (xt_chunk_kind(chunk) == XT_KIND_META) {
			read_facts(input, ranks, chunk);
			continue;
		}
		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++)
			add_pair(&pairs, clock.monotonic_ns[r], clock.realtime_ns[r]);
	}
	if (xt_reader_refused(reader, why)) {
		report_error(report, STATUS_INCOMPLETE, "cannot read %s: %s", input->path, why);
		error = -ENOENT;
	}
	xt_reader_close(reader);
	set_ranks(input, ranks);
	qsort(pairs.list, pairs.count, sizeof(*pairs.list), compare_shifts);
	input->realtime_shift_ns = pairs.list[pairs.count / 2];
	free(pairs.list);
	crash_buffer = xt_asprintf("%s" XT_CRASH_BUFFER_SUFFIX, input->path);
	input->has_crash_buffer = !access(crash_buffer, F_OK);
	free(crash_buffer);
	return error;
}

/*
 * Gives logs of one host and one boot the same shift to the common clock. Their relative times then
 * stay exact even if the wall clock was corrected.
 */
static void align_clocks(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->all_count; i++) {
		struct input *log = &inputs->logs[i];
		int64_t start_ns;

		log->shift_ns = log->realtime_shift_ns;
		inputs->has_several_hosts |= strcmp(log->host, inputs->logs[0].host) != 0;
		for (size_t j = 0; j < i; j++) {
			const struct input *other = &inputs->logs[j];
			int64_t apart_ns = (int64_t)((uint64_t)log->realtime_shift_ns -
						     (uint64_t)other->realtime_shift_ns);

			if (!strcmp(log->host, other->host) && apart_ns < SAME_BOOT_NS &&
			    apart_ns > -SAME_BOOT_NS) {
				log->shift_ns = other->shift_ns;
				break;
			}
		}
		start_ns = (int64_t)(log->header.start_monotonic_ns + (uint64_t)log->shift_ns);
		if (!i || start_ns < inputs->origin_ns)
			inputs->origin_ns = start_ns;
	}
}

bool input_shares_pids(const struct input *a, const struct input *b)
{
	return !strcmp(a->host, b->host) && !strcmp(a->boot, b->boot) &&
	       !strcmp(a->pid_namespace, b->pid_namespace);
}

/* The sampler does not know the random identity of a process, but when it started. */
static bool is_cpu_log_of(const struct input *cpu, const struct input *log)
{
	uint64_t apart_cs = cpu->started_cs > log->started_cs ? cpu->started_cs - log->started_cs
							      : log->started_cs - cpu->started_cs;

	return cpu->header.pid == log->header.pid && apart_cs <= SAME_START_CS &&
	       input_shares_pids(cpu, log);
}

/* Logs of one process have the same identity. A log without one counts as its own process. */
static bool is_same_process(const struct input *a, const struct input *b)
{
	if (a->is_cpu != b->is_cpu)
		return a->is_cpu ? is_cpu_log_of(a, b) : is_cpu_log_of(b, a);
	return a == b || (a->identity[0] && !strcmp(a->identity, b->identity));
}

/* True if two processes have the same rank, or none, and the same title. */
static bool has_same_title(const struct input *a, const struct input *b)
{
	char a_title[INPUT_TITLE_BYTES], b_title[INPUT_TITLE_BYTES];

	if (a->rank != b->rank || a->local_rank != b->local_rank)
		return false;
	xt_script_title(a_title, sizeof(a_title), a->program, a->command);
	xt_script_title(b_title, sizeof(b_title), b->program, b->command);
	return !strcmp(a_title, b_title);
}

static bool has_same_pid(const struct input *a, const struct input *b)
{
	return a->header.pid == b->header.pid && !strcmp(a->host, b->host);
}

static bool is_before(const struct input *a, const struct input *b)
{
	int64_t a_ns = (int64_t)(a->header.start_monotonic_ns + (uint64_t)a->shift_ns);
	int64_t b_ns = (int64_t)(b->header.start_monotonic_ns + (uint64_t)b->shift_ns);

	return a_ns != b_ns ? a_ns < b_ns : a < b;
}

/* Finds the first log of each process. */
static void find_processes(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->all_count; i++) {
		inputs->logs[i].first = i;
		for (size_t j = 0; j < i; j++) {
			struct input *other = &inputs->logs[j];

			if (!is_same_process(&inputs->logs[i], other))
				continue;
			if (inputs->logs[i].is_cpu) {
				inputs->logs[i].first = other->first;
				break;
			}
			if (is_before(&inputs->logs[i], &inputs->logs[other->first]))
				other->first = i;
			inputs->logs[i].first = other->first;
		}
	}
}

/*
 * Makes equal labels unique, in this order: by pid and host, if a rank replaced them; by pid
 * namespace, for containers; by a number in the order in which processes started.
 */
static void set_label_suffix(const struct inputs *inputs, struct input *log)
{
	const struct input *first = &inputs->logs[log->first];
	bool needs_pid = false, needs_namespace = false, needs_number = false;
	bool has_rank = first->rank != RANK_UNKNOWN || first->local_rank != RANK_UNKNOWN;
	unsigned number = 1;
	size_t length = 0;

	for (size_t i = 0; i < inputs->all_count; i++) {
		const struct input *other = &inputs->logs[i];

		/* A process counts once, by its first log. */
		if (other->first != i || other == first || !has_same_title(first, other))
			continue;
		needs_pid |= has_rank;
		if (!has_same_pid(first, other))
			continue;
		if (strcmp(first->pid_namespace, other->pid_namespace) != 0) {
			needs_namespace = true;
			continue;
		}
		needs_number = true;
		number += is_before(other, first);
	}
	if (needs_pid)
		length =
			(size_t)snprintf(log->distinction, sizeof(log->distinction), ", %u%s%s",
					 first->header.pid, inputs->has_several_hosts ? " on " : "",
					 inputs->has_several_hosts ? first->host : "");
	if (needs_namespace && first->pid_namespace[0])
		length += (size_t)snprintf(log->distinction + length,
					   sizeof(log->distinction) - length, ", pid ns %s",
					   first->pid_namespace);
	if (needs_number)
		snprintf(log->distinction + length, sizeof(log->distinction) - length, ", #%u",
			 number);
}

void inputs_distinguish(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->all_count; i++) {
		inputs->logs[i].distinction[0] = '\0';
		set_label_suffix(inputs, &inputs->logs[i]);
	}
}

/*
 * Keeps a log at index kept or earlier. A copy of a log would count twice, so keeps the larger one:
 * it may have grown after the other was made.
 */
static size_t keep_unique(struct inputs *inputs, size_t kept, struct input *log,
			  struct report *report)
{
	for (size_t i = 0; i < kept; i++) {
		struct input *other = &inputs->logs[i], smaller = *log;

		if (other->header.log_id != log->header.log_id ||
		    other->header.pid != log->header.pid)
			continue;
		if (log->file_bytes > other->file_bytes) {
			smaller = *other;
			*other = *log;
		}
		report_note(report, "%s: skipped: copy of the log %s", smaller.path, other->path);
		free(smaller.path);
		return kept;
	}
	inputs->logs[kept] = *log;
	return kept + 1;
}

/* Puts the CPU logs behind the others, both in their order. */
static void move_cpu_logs(struct inputs *inputs)
{
	struct input *sorted = xt_calloc(inputs->all_count + 1, sizeof(*sorted));
	size_t count = 0;

	for (int is_cpu = 0; is_cpu <= 1; is_cpu++) {
		for (size_t i = 0; i < inputs->all_count; i++)
			if (inputs->logs[i].is_cpu == is_cpu)
				sorted[count++] = inputs->logs[i];
		if (!is_cpu)
			inputs->count = count;
	}
	if (count)
		memcpy(inputs->logs, sorted, count * sizeof(*sorted));
	free(sorted);
}

int inputs_find(struct inputs *inputs, char *const *arguments, size_t argument_count,
		struct report *report)
{
	size_t kept = 0;

	*inputs = (struct inputs){0};
	if (!argument_count)
		add_argument(inputs, INPUTS_DEFAULT, report);
	for (size_t i = 0; i < argument_count; i++)
		add_argument(inputs, arguments[i], report);
	for (size_t i = 0; i < inputs->count; i++) {
		if (probe(&inputs->logs[i], report))
			list_append(inputs->unreadable, inputs->logs[i]);
		else
			kept = keep_unique(inputs, kept, &inputs->logs[i], report);
	}
	inputs->count = inputs->all_count = kept;
	move_cpu_logs(inputs);
	align_clocks(inputs);
	find_processes(inputs);
	inputs_distinguish(inputs);
	/* An empty log is an error only if there are no others. */
	if (!kept && !report->status)
		report_error(report, STATUS_FAILED, "nothing to read: all logs are empty");
	if (!kept)
		report->status = STATUS_FAILED;
	return kept ? 0 : -ENOENT;
}

void inputs_free(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count || i < inputs->all_count; i++)
		free(inputs->logs[i].path);
	for (size_t i = 0; i < inputs->unreadable.count; i++)
		free(inputs->unreadable.list[i].path);
	free_all(inputs->unreadable.list, inputs->logs);
	*inputs = (struct inputs){0};
}

void pack_argv(struct pack *pack, int *argc, char ***argv)
{
	int count = *argc;

	PACK(pack, count);
	pack_check(pack, count >= 0 && (size_t)count <= pack->bytes - pack->at);
	if (pack->is_reading) {
		*argc = 0;
		*argv = pack->error ? NULL : xt_calloc((size_t)count + 1, sizeof(**argv));
	}
	for (int i = 0; i < count && !pack->error; i++) {
		pack_text(pack, &(*argv)[i]);
		*argc = i + 1;
	}
}

void free_argv(int argc, char **argv)
{
	for (int i = 0; i < argc && argv; i++)
		free(argv[i]);
	free(argv);
}

/* Ends the texts of a log, however they came. */
static void end_texts(struct input *log)
{
	const struct {
		char *text;
		size_t bytes;
	} texts[] = {
		{log->alias, sizeof(log->alias)},
		{log->host, sizeof(log->host)},
		{log->program, sizeof(log->program)},
		{log->command, sizeof(log->command)},
		{log->identity, sizeof(log->identity)},
		{log->pid_namespace, sizeof(log->pid_namespace)},
		{log->boot, sizeof(log->boot)},
		{log->run, sizeof(log->run)},
		{log->batch_job, sizeof(log->batch_job)},
		{log->distinction, sizeof(log->distinction)},
	};

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		texts[t].text[texts[t].bytes - 1] = '\0';
}

void pack_inputs(struct pack *pack, struct inputs *inputs)
{
	size_t count = inputs->all_count;

	PACK(pack, inputs->count);
	pack_bool(pack, &inputs->has_several_hosts);
	PACK(pack, inputs->origin_ns);
	PACK_ARRAY(pack, inputs->logs, count, inputs->capacity, SIZE_MAX);
	for (size_t i = 0; i < count && pack->is_reading; i++)
		inputs->logs[i].path = NULL;
	if (pack->is_reading)
		inputs->all_count = count;
	for (size_t i = 0; i < count && !pack->error; i++) {
		struct input *log = &inputs->logs[i];

		pack_text(pack, &log->path);
		pack_check(pack, log->first < count);
		if (pack->is_reading)
			end_texts(log);
	}
	pack_check(pack, inputs->count <= count);
	if (pack->error && pack->is_reading && inputs->count > inputs->all_count)
		inputs->count = inputs->all_count;
}

#define LIST_BYTES 256

/* Writes a list such as "12 calls, 3 kernels". */
static void list(char *out, const struct xt_recovered *recovered)
{
	const struct {
		const char *one, *many;
		uint64_t count;
	} rows[] = {
		{"call", "calls", recovered->rows[XT_KIND_CALL]},
		{"unfinished call", "unfinished calls", recovered->open_calls},
		{"kernel", "kernels", recovered->rows[XT_KIND_KERNEL]},
		{"copy", "copies", recovered->rows[XT_KIND_COPY]},
		{"memset", "memsets", recovered->rows[XT_KIND_SET]},
		{"allocation or free", "allocations and frees", recovered->rows[XT_KIND_MEMORY]},
		{"NVTX event", "NVTX events", recovered->rows[XT_KIND_RANGE]},
		{"graph node", "graph nodes", recovered->rows[XT_KIND_GRAPH_NODE]},
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

	for (size_t i = 0; i < inputs->unreadable.count; i++)
		xt_recover(inputs->unreadable.list[i].path, &nothing);
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->logs[i].has_crash_buffer)
			recover(&inputs->logs[i], report);
	/* Before they are read: a log that is closed meanwhile is not cut. */
	for (size_t i = inputs->count; i < inputs->all_count; i++)
		inputs->logs[i].is_sampled = xt_log_is_held(inputs->logs[i].path);
}
