/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running processes that carry xtrace, and xtrace ps, which lists them.
 */
#include "processes.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "data_dir.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "log/base/number_format.h"
#include "sampler/process_read.h"

#define ENDING ".xtr.spool"

static int processes_add(struct process_list *list, pid_t pid, const char *crash_buffer,
			 const char *log)
{
	struct traced_process row = {pid, strdup(crash_buffer), strdup(log)};

	if (!row.crash_buffer || !row.log || grow(list->rows, list->capacity, list->count + 1)) {
		free_all(row.crash_buffer, row.log);
		return -ENOMEM;
	}
	list->rows[list->count++] = row;
	return 0;
}

void processes_free(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free_all(list->rows[i].crash_buffer, list->rows[i].log);
	free_all(list->rows, list->deleted);
	*list = (struct process_list){0};
}

/* Reads a field of the header. Returns 0, -EBADMSG or -errno. */
static int read_header(const char *path, int flags, struct xt_crash_buffer_header *header,
		       int *fd_out)
{
	int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    pread(fd, header, sizeof(*header), 0) != sizeof(*header) ||
	    memcmp(header->magic, XT_CRASH_BUFFER_MAGIC, sizeof(header->magic)) != 0)
		error = -EBADMSG;
	if (fd_out && !error)
		*fd_out = fd;
	else
		close(fd);
	return error;
}

/* The path of a crash buffer that a line of maps names, or NULL. */
static char *crash_buffer_in(char *line, bool *is_deleted)
{
	char *path = strchr(line, '/'), *end = path ? strstr(path, ENDING) : NULL;

	if (!end)
		return NULL;
	end += strlen(ENDING);
	*is_deleted = !strcmp(end, " (deleted)\n");
	if (*end != '\n' && !*is_deleted)
		return NULL;
	*end = '\0';
	return path;
}

/* Whether the process has this id in its PID namespace. A forked child has its parent's maps. */
static bool has_own_pid(pid_t pid, uint32_t own_pid)
{
	pid_t innermost = proc_innermost_id(PROC_PATH("%d/status", pid));

	return !innermost || innermost == (pid_t)own_pid; /* unknown: ids are the same everywhere */
}

/*
 * Whether a deleted crash buffer is that of this process, and not inherited from its parent. Its
 * name is HOST.PID.xtr.spool or HOST.PID-IMAGE.xtr.spool.
 */
static bool is_own_name(pid_t pid, char *path)
{
	const char *dot;

	path[strlen(path) - strlen(ENDING)] = '\0';
	dot = strrchr(path, '.');
	return dot && has_own_pid(pid, (uint32_t)strtoul(dot + 1, NULL, 10));
}

/* The file may be in another mount namespace. Returns -ENOENT if it is that of another process. */
static int add_mapped(struct process_list *list, pid_t pid, const char *path)
{
	char *log = strndup(path, strlen(path) - strlen(".spool")), *inside = NULL;
	struct xt_crash_buffer_header header;
	int error = -ENOMEM;

	if (log && asprintf(&inside, "/proc/%d/root%s", pid, path) > 0) {
		error = read_header(inside, O_RDONLY, &header, NULL);
		if (!error)
			error = has_own_pid(pid, header.pid) ? processes_add(list, pid, inside, log)
							     : -ENOENT;
	}
	free_all(inside, log);
	return error;
}

int processes_find_pid(struct process_list *list, pid_t pid)
{
	FILE *file = fopen(PROC_PATH("%d/maps", pid), "re");
	char *line = NULL, last[PATH_MAX] = "";
	int error = 0, found = -ENOENT;
	size_t line_bytes = 0;

	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!error && getline(&line, &line_bytes, file) > 0) {
		bool is_deleted;
		char *path = crash_buffer_in(line, &is_deleted);

		if (path && is_deleted && found == -ENOENT && is_own_name(pid, path))
			found = -ESTALE;
		if (!path || is_deleted || !strcmp(path, last) || strlen(path) >= sizeof(last))
			continue;
		strcpy(last, path);
		error = add_mapped(list, pid, path);
		if (!error)
			found = 0;
		else if (error == -ENOENT)
			error = 0;
	}
	free(line);
	fclose(file);
	return error ? error : found;
}

pid_t process_parse(const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (!*end && !errno && pid >= 1 && pid <= INT_MAX)
		return (pid_t)pid;
	print_error("'%s' is not the id of a process", text);
	return 0;
}

static bool is_xtrace(pid_t pid)
{
	char name[32];

	return proc_file_read(PROC_PATH("%d/comm", pid), name, sizeof(name)) > 0 &&
	       !strcmp(name, "xtrace\n");
}

bool process_may_load_xtrace(pid_t pid)
{
	char *library = process_variable(pid, "CUDA_INJECTION64_PATH");
	bool may_load = is_xtrace(pid) || (library && strstr(library, "xtrace"));

	free(library);
	return may_load;
}

static int find_children(struct process_list *list, pid_t pid)
{
	size_t before = list->count;
	FILE *file = fopen(PROC_PATH("%d/task/%d/children", pid, pid), "re");
	int child, found = -ENOENT;

	while (file && fscanf(file, "%d", &child) == 1) {
		int error = processes_find_pid(list, child);

		if (error == -ESTALE)
			found = error;
		/* Traced processes may start others. */
		if (error != -ENOMEM)
			error = find_children(list, child);
		if (error == -ESTALE)
			found = error;
		if (error == -ENOMEM)
			break;
	}
	if (file)
		fclose(file);
	return list->count > before ? 0 : found;
}

int processes_find_tree(struct process_list *list, pid_t pid)
{
	int error = processes_find_pid(list, pid);

	return error == -ENOENT && is_xtrace(pid) ? find_children(list, pid) : error;
}

int processes_find_all(struct process_list *list)
{
	DIR *folder = opendir("/proc");
	int error = 0;
	pid_t pid;

	if (!folder)
		return -errno;
	while (error != -ENOMEM && (pid = proc_next_id(folder))) {
		error = processes_find_pid(list, pid);
		list->hidden_count += error == -EACCES || error == -EPERM;
		if (error != -ESTALE)
			continue;
		error = grow(list->deleted, list->deleted_capacity, list->deleted_count + 1);
		if (!error)
			list->deleted[list->deleted_count++] = pid;
	}
	closedir(folder);
	return error == -ENOMEM ? error : 0;
}

/* The process of a list that maps the file, if it is visible from here. */
static pid_t pid_of(const struct process_list *all, const char *crash_buffer)
{
	struct stat wanted, status;

	if (stat(crash_buffer, &wanted))
		return 0;
	for (size_t i = 0; i < all->count; i++)
		if (!stat(all->rows[i].crash_buffer, &status) && status.st_ino == wanted.st_ino &&
		    status.st_dev == wanted.st_dev)
			return all->rows[i].pid;
	return 0;
}

/* Adds the process that writes this log, if there is one. Returns 0 or -ENOMEM. */
static int add_log(struct process_list *list, const char *log)
{
	char *crash_buffer;
	int error = 0;

	if (asprintf(&crash_buffer, "%s.spool", log) < 0)
		return -ENOMEM;
	if (!access(crash_buffer, F_OK))
		error = processes_add(list, 0, crash_buffer, log);
	free(crash_buffer);
	return error;
}

void processes_find_pids(struct process_list *list)
{
	struct process_list all = {0};

	processes_find_all(&all);
	for (size_t i = 0; i < list->count; i++)
		if (!list->rows[i].pid)
			list->rows[i].pid = pid_of(&all, list->rows[i].crash_buffer);
	processes_free(&all);
}

int processes_find_logs(struct process_list *list, const char *directory)
{
	size_t log_count;
	char **logs;
	int error = data_dir_list_logs(directory, &logs, &log_count);

	if (error)
		return error;
	for (size_t i = 0; i < log_count && !error; i++)
		error = add_log(list, logs[i]);
	data_dir_free_logs(logs, log_count);
	return error;
}

int processes_find_directory(struct process_list *list, const char *directory)
{
	int error = processes_find_logs(list, directory);

	if (list->count)
		processes_find_pids(list);
	return error;
}

int process_status_read(const struct traced_process *process, struct process_status *status)
{
	struct xt_crash_buffer_header header;
	int error = read_header(process->crash_buffer, O_RDONLY, &header, NULL);

	if (error)
		return error;
	*status = (struct process_status){
		.state = (enum xt_tracer_state)header.state,
		.launch_count = header.launch_count,
		.lost_count = header.lost_count,
		.log_bytes = header.log_bytes,
		.gpus = header.gpus,
		.snapshot_number = header.snapshot_number,
		.snapshot_error = header.snapshot_error,
	};
	memcpy(status->problem, header.problem, sizeof(status->problem));
	status->problem[sizeof(status->problem) - 1] = '\0';
	/* It goes to a terminal. */
	for (char *c = status->problem; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			*c = '?';
	return 0;
}

const char *process_state_name(enum xt_tracer_state state)
{
	static const char *const names[] = {
		[XT_STATE_UNKNOWN] = "unknown",	  [XT_STATE_RECORDING] = "recording",
		[XT_STATE_PAUSED] = "paused",	  [XT_STATE_STOPPED] = "stopped",
		[XT_STATE_STOPPING] = "stopping", [XT_STATE_YIELDED] = "yielded",
		[XT_STATE_FULL] = "full",	  [XT_STATE_WAITING] = "waiting",
		[XT_STATE_ARMED] = "armed",
	};

	return (size_t)state < sizeof(names) / sizeof(*names) ? names[state] : "unknown";
}

int64_t process_request(const struct traced_process *process, enum xt_crash_buffer_request request,
			uint32_t delay_ms, uint32_t duration_ms)
{
	struct xt_crash_buffer_header header;
	const uint32_t times[] = {delay_ms, duration_ms};
	uint32_t word;
	int fd, error = read_header(process->crash_buffer, O_RDWR, &header, &fd);

	if (error)
		return error;
	/* Two commands at once must not choose the same word. Fails on a system without locks. */
	if (!flock(fd, LOCK_EX) &&
	    pread(fd, &header.request, sizeof(header.request),
		  offsetof(struct xt_crash_buffer_header, request)) != sizeof(header.request))
		error = -EIO;
	if (header.state == XT_STATE_UNKNOWN)
		error = -ENOTSUP;
	if (error) {
		close(fd);
		return error;
	}
	word = (header.request / XT_REQUEST_SEQUENCE + 1) * XT_REQUEST_SEQUENCE | request;
	if (pwrite(fd, times, sizeof(times), offsetof(struct xt_crash_buffer_header, delay_ms)) !=
	    sizeof(times))
		error = -EIO;
	/* Pairs with the acquire in crash_buffer_request(): the times come first. */
	atomic_thread_fence(memory_order_release);
	if (!error && pwrite(fd, &word, sizeof(word),
			     offsetof(struct xt_crash_buffer_header, request)) != sizeof(word))
		error = -EIO;
	close(fd);
	return error ? error : (int64_t)word;
}
_Static_assert(offsetof(struct xt_crash_buffer_header, duration_ms) ==
		       offsetof(struct xt_crash_buffer_header, delay_ms) + sizeof(uint32_t),
	       "one write sets both times");

enum request_progress process_progress(const struct traced_process *process, uint32_t word)
{
	struct xt_crash_buffer_header header;

	if (read_header(process->crash_buffer, O_RDONLY, &header, NULL))
		return REQUEST_GONE;
	/* Pairs with crash_buffer_request_done(): what is read from now on is the result. */
	atomic_thread_fence(memory_order_acquire);
	if (header.request == (word | XT_REQUEST_DONE))
		return REQUEST_DONE;
	if (header.request != word)
		return REQUEST_REPLACED;
	return header.request_taken == word ? REQUEST_READ : REQUEST_UNREAD;
}

bool process_is_alive(const struct traced_process *process)
{
	char *log =
		strndup(process->crash_buffer, strlen(process->crash_buffer) - strlen(".spool"));
	int lock = log ? data_dir_log_lock(AT_FDCWD, log) : 0;
	/* If this process has no descriptor left, the other is not known to have ended. */
	bool is_alive = lock && lock != -ENOENT;

	/* The lock of a log cannot be tested if only the log was deleted. */
	if (log && !is_alive && process->pid && !access(process->crash_buffer, F_OK) &&
	    access(log, F_OK) && errno == ENOENT)
		is_alive = !kill(process->pid, 0) || errno == EPERM;
	free(log);
	return is_alive;
}

#define INTERVAL_NS  500000000
#define COMMAND_SHOW 48

/* The context is a bool. */
static const struct option_row option_rows[] = {
	{"json", .help = "Print JSON", .apply = option_flag},
	{0},
};

struct row {
	const struct traced_process *process;
	struct process_status before, status;
	bool is_alive;
	double seconds;
	char command[256];
};

static double launches_per_second(const struct row *row)
{
	return (double)(row->status.launch_count - row->before.launch_count) / row->seconds;
}

/* The command line, with spaces between the arguments. "?" if the process is not visible. */
static void read_command(struct row *row)
{
	pid_t pid = row->process->pid;
	ssize_t length = pid ? proc_file_read(PROC_PATH("%d/cmdline", pid), row->command,
					      sizeof(row->command))
			     : -ENOENT;

	if (length < 0 && length != -ESRCH) { /* that is an empty command line */
		snprintf(row->command, sizeof(row->command), "?");
		return;
	}
	while (length > 0 && !row->command[length - 1])
		length--;
	for (ssize_t i = 0; i < length; i++)
		if (!row->command[i])
			row->command[i] = ' ';
		else if ((unsigned char)row->command[i] < ' ' ||
			 (unsigned char)row->command[i] >= 0x7f)
			row->command[i] = '?';
}

/* "0,2"; "-" if no work was recorded yet. */
static void gpu_text(uint64_t gpus, char *out, size_t out_bytes)
{
	size_t length = 0;

	snprintf(out, out_bytes, "-");
	for (unsigned gpu = 0; gpu < 64 && length < out_bytes; gpu++)
		if (gpus >> gpu & 1)
			length += (size_t)snprintf(out + length, out_bytes - length, "%s%u",
						   length ? "," : "", gpu);
}

static void print_row(const struct row *row)
{
	char gpus[64], pid[16], launches[COUNT_BYTES] = "-", size[TIME_BYTES], lost[COUNT_BYTES];

	gpu_text(row->status.gpus, gpus, sizeof(gpus));
	snprintf(pid, sizeof(pid), row->process->pid ? "%d" : "?", row->process->pid);
	if (row->status.state == XT_STATE_RECORDING)
		format_count(launches, (uint64_t)launches_per_second(row));
	format_count(lost, row->status.lost_count);
	format_bytes(size, row->status.log_bytes);
	printf("%8s  %-9s  %-4s %11s %8s %11s  %.*s\n", pid, process_state_name(row->status.state),
	       gpus, launches, lost, size, COMMAND_SHOW, row->command);
}

static cJSON *json_row(const struct row *row)
{
	cJSON *item = cJSON_CreateObject(), *gpus;

	cJSON_AddItemToObject(item, "pid",
			      row->process->pid ? cJSON_CreateNumber(row->process->pid)
						: cJSON_CreateNull());
	cJSON_AddStringToObject(item, "state", process_state_name(row->status.state));
	if (*row->status.problem)
		cJSON_AddStringToObject(item, "problem", row->status.problem);
	gpus = cJSON_AddArrayToObject(item, "gpus");
	for (unsigned gpu = 0; gpu < 64; gpu++)
		if (row->status.gpus >> gpu & 1)
			cJSON_AddItemToArray(gpus, cJSON_CreateNumber(gpu));
	cJSON_AddNumberToObject(item, "launches", (double)row->status.launch_count);
	cJSON_AddNumberToObject(item, "launches_per_second", launches_per_second(row));
	cJSON_AddNumberToObject(item, "lost", (double)row->status.lost_count);
	cJSON_AddNumberToObject(item, "log_bytes", (double)row->status.log_bytes);
	cJSON_AddStringToObject(item, "log", row->process->log);
	cJSON_AddStringToObject(item, "command", row->command);
	return item;
}

/* Reads each process twice, some time apart. */
static void read_rows(struct row *rows, const struct process_list *list)
{
	bool is_any_recording = false;
	uint64_t start_ns = monotonic_ns();

	for (size_t i = 0; i < list->count; i++) {
		rows[i].process = &list->rows[i];
		rows[i].is_alive = process_is_alive(&list->rows[i]) &&
				   !process_status_read(&list->rows[i], &rows[i].before);
		is_any_recording |= rows[i].before.state == XT_STATE_RECORDING;
	}
	if (is_any_recording)
		nap_ns(INTERVAL_NS);
	for (size_t i = 0; i < list->count; i++) {
		rows[i].seconds = (double)(monotonic_ns() - start_ns) / 1e9;
		rows[i].is_alive &= !process_status_read(&list->rows[i], &rows[i].status);
		read_command(&rows[i]);
	}
}

static void note_hidden(size_t count)
{
	const char *why = !geteuid()   ? "root needs CAP_SYS_PTRACE, which a container may lack"
			  : count == 1 ? "it belongs to another user, or has raised privileges"
				       : "they belong to other users, or have raised privileges";

	print_note("%zu other process%s cannot be inspected: %s", count, count == 1 ? "" : "es",
		   why);
}

static void print_rows(const struct row *rows, const struct process_list *list)
{
	bool has_heading = false;

	for (size_t i = 0; i < list->count; i++) {
		if (!rows[i].is_alive)
			continue;
		if (!has_heading)
			printf("%8s  %-9s  %-4s %11s %8s %11s  %s\n", "PID", "STATE", "GPU",
			       "LAUNCHES/S", "LOST", "LOG", "COMMAND");
		has_heading = true;
		print_row(&rows[i]);
		if (*rows[i].status.problem)
			printf("          %s\n", rows[i].status.problem);
	}
	if (!has_heading && !list->deleted_count)
		print_note("no running process carries xtrace");
	if (!has_heading && list->hidden_count)
		note_hidden(list->hidden_count);
}

static void note_deleted(const struct process_list *list)
{
	for (size_t i = 0; i < list->deleted_count; i++)
		print_note("process %d records nothing, because its trace directory was deleted; "
			   "restart it to record it",
			   list->deleted[i]);
}

static void print_json(const struct row *rows, const struct process_list *list)
{
	cJSON *root = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(root, "processes");

	for (size_t i = 0; i < list->count; i++)
		if (rows[i].is_alive)
			cJSON_AddItemToArray(array, json_row(&rows[i]));
	json_print(root);
}

static int run_ps(const struct command *command, int argc, char **argv)
{
	struct process_list list = {0};
	bool is_json = false;
	int status, count, error = 0;
	struct row *rows;

	status = command_parse(command, NULL, &is_json, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!count)
		error = processes_find_all(&list);
	for (int i = 1; i <= count && !error; i++) {
		error = processes_find_directory(&list, argv[i]);
		if (error)
			print_error("cannot use '%s': %s", argv[i], strerror(-error));
	}
	rows = error ? NULL : calloc(list.count + 1, sizeof(*rows));
	if (rows) {
		read_rows(rows, &list);
		(is_json ? print_json : print_rows)(rows, &list);
		if (!is_json)
			note_deleted(&list);
	}
	free(rows);
	processes_free(&list);
	return rows ? STATUS_OK : STATUS_FAILED;
}

static const char details[] =
	"DIR is a trace directory; without one, all processes that you can inspect are listed.\n"
	"Name the directory to see processes of containers that share it.\n\n"
	"  recording   records\n"
	"  armed       has not recorded yet; 'xtrace start' starts it\n"
	"  stopped     does not record; CUPTI's cost remains, or a part of it\n"
	"  paused      does not record, but CUPTI is still enabled\n"
	"  stopping    waits for the GPU to finish recorded work\n"
	"  waiting     starts after the --delay of 'xtrace start'\n"
	"  yielded     does not record, because another tool uses CUPTI\n"
	"  full        does not record, because the log has reached --max-size\n\n"
	"LOG is the size of the log, LOST the number of events that are missing in it.\n";

const struct command command_ps = {
	.name = "ps",
	.arguments = "[OPTION]... [DIR]...",
	.summary = "List the running processes that carry xtrace",
	.details = details,
	.options = option_rows,
	.run = run_ps,
};
