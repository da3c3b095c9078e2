/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data_dir.h"

#define ENDING ".xtr.spool"

static int add(struct process_list *list, pid_t pid, const char *crash_buffer, const char *log)
{
	struct traced_process row = {pid, strdup(crash_buffer), strdup(log)};
	struct traced_process *rows =
		reallocarray(list->rows, list->count + 1, sizeof(*list->rows));

	if (rows)
		list->rows = rows;
	if (!rows || !row.crash_buffer || !row.log) {
		free(row.crash_buffer);
		free(row.log);
		return -ENOMEM;
	}
	list->rows[list->count++] = row;
	return 0;
}

void processes_free(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->rows[i].crash_buffer);
		free(list->rows[i].log);
	}
	free(list->rows);
	free(list->deleted);
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
	char path[64], *line = NULL, *last;
	size_t line_bytes = 0;
	bool is_same = true; /* without the line, ids are the same everywhere */
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && getline(&line, &line_bytes, file) > 0) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		is_same = last && strtoul(last, NULL, 10) == own_pid;
	}
	free(line);
	if (file)
		fclose(file);
	return is_same;
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
			error = has_own_pid(pid, header.pid) ? add(list, pid, inside, log)
							     : -ENOENT;
	}
	free(inside);
	free(log);
	return error;
}

int processes_find_pid(struct process_list *list, pid_t pid)
{
	char *line = NULL, last[PATH_MAX] = "", maps[64];
	int error = 0, found = -ENOENT;
	size_t line_bytes = 0;
	FILE *file;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", pid);
	file = fopen(maps, "re");
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

static bool is_xtrace(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return !strcmp(name, "xtrace\n");
}

bool process_may_load_xtrace(pid_t pid)
{
	static const char variable[] = "CUDA_INJECTION64_PATH=";
	bool may_load = is_xtrace(pid);
	char path[64], *line = NULL;
	size_t line_bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	while (file && !may_load && getdelim(&line, &line_bytes, '\0', file) > 0)
		may_load = !strncmp(line, variable, strlen(variable)) && strstr(line, "xtrace");
	free(line);
	if (file)
		fclose(file);
	return may_load;
}

static int find_children(struct process_list *list, pid_t pid)
{
	size_t before = list->count;
	int child, found = -ENOENT;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "re");
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

static int add_deleted(struct process_list *list, pid_t pid)
{
	pid_t *longer = reallocarray(list->deleted, list->deleted_count + 1, sizeof(*longer));

	if (!longer)
		return -ENOMEM;
	list->deleted = longer;
	list->deleted[list->deleted_count++] = pid;
	return 0;
}

int processes_find_all(struct process_list *list)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;
	int error = 0;

	if (!folder)
		return -errno;
	while (error != -ENOMEM && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		error = processes_find_pid(list, (pid_t)atoi(entry->d_name));
		list->hidden_count += error == -EACCES || error == -EPERM;
		if (error == -ESTALE)
			error = add_deleted(list, (pid_t)atoi(entry->d_name));
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

int processes_add_log(struct process_list *list, const char *directory, const char *name)
{
	char *log = NULL, *crash_buffer = NULL;
	int error = 0;

	if (asprintf(&log, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	if (asprintf(&crash_buffer, "%s.spool", log) < 0)
		error = -ENOMEM;
	else if (!access(crash_buffer, F_OK))
		error = add(list, 0, crash_buffer, log);
	free(log);
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

int processes_find_directory(struct process_list *list, const char *directory)
{
	size_t log_count;
	char **logs;
	int error = data_dir_list_logs(directory, &logs, &log_count);

	if (error)
		return error;
	for (size_t i = 0; i < log_count && !error; i++)
		error = processes_add_log(list, directory, logs[i]);
	data_dir_free_logs(logs, log_count);
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
	bool is_alive = log && data_dir_log_is_held(log);

	/* The lock of a log cannot be tested if only the log was deleted. */
	if (log && !is_alive && process->pid && !access(process->crash_buffer, F_OK) &&
	    access(log, F_OK) && errno == ENOENT)
		is_alive = !kill(process->pid, 0) || errno == EPERM;
	free(log);
	return is_alive;
}
