/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/process_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "log/base/compare.h"

#define TEXT_BYTES 1024

static const char *const file_names[THREAD_FILES] = {
	[THREAD_FILE_COUNTS] = "schedstat",
	[THREAD_FILE_STAT] = "stat",
	[THREAD_FILE_SYSCALL] = "syscall",
};

#define ENVIRONMENT_BYTES_MAX (4u << 20)

/* Fields of stat behind the name, counted from 0. proc_pid_stat(5) counts from 3. */
enum stat_field {
	FIELD_STATE = 0,
	FIELD_PARENT = 1,
	FIELD_MINOR_FAULTS = 7,
	FIELD_MAJOR_FAULTS = 9,
	FIELD_KERNEL_TIME = 12,
	FIELD_THREADS = 17,
	FIELD_START = 19,
	FIELD_STACK_START = 25,
	FIELDS
};

const char *proc_path(char path[80], const char *format, ...)
{
	size_t used = strlen(strcpy(path, "/proc/"));
	va_list values;

	va_start(values, format);
	vsnprintf(path + used, 80 - used, format, values);
	va_end(values);
	return path;
}

static ssize_t read_all(int fd, char *text, size_t text_bytes)
{
	ssize_t length = pread(fd, text, text_bytes - 1, 0);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	return length ? length : -ESRCH;
}

ssize_t proc_file_read(const char *path, char *text, size_t text_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t length = fd < 0 ? -errno : read_all(fd, text, text_bytes);

	if (fd >= 0)
		close(fd);
	if (length < 0)
		text[0] = '\0';
	return length;
}

pid_t proc_next_id(DIR *folder)
{
	const struct dirent *entry;
	pid_t id = 0;

	while (folder && !id && (entry = readdir(folder)))
		id = (pid_t)strtol(entry->d_name, NULL, 10);
	return id;
}

int proc_file_number(const char *path, const char *before)
{
	char text[16384];
	const char *place;

	if (proc_file_read(path, text, sizeof(text)) <= 0)
		return -1;
	place = strstr(text, before);
	return place ? atoi(place + strlen(before)) : -1;
}

pid_t proc_innermost_id(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *last = NULL;
	size_t capacity = 0;
	pid_t id = 0;

	/* The line with the groups comes before, and may be longer than half a megabyte. */
	while (file && !last && getline(&line, &capacity, file) > 0)
		last = begins_with(line, "NSpid:") ? strrchr(line, '\t') : NULL;
	if (last)
		id = (pid_t)strtol(last, NULL, 10);
	free(line);
	if (file)
		fclose(file);
	return id;
}

char *process_variable(pid_t pid, const char *name)
{
	char *text = malloc(ENVIRONMENT_BYTES_MAX), *value = NULL;
	size_t length = strlen(name);
	ssize_t bytes;

	if (!text)
		return NULL;
	bytes = proc_file_read(PROC_PATH("%d/environ", pid), text, ENVIRONMENT_BYTES_MAX);
	for (const char *entry = text; bytes > 0 && entry < text + bytes && !value;
	     entry += strlen(entry) + 1)
		if (!strncmp(entry, name, length) && entry[length] == '=')
			value = strdup(entry + length + 1);
	free(text);
	return value;
}

static ssize_t read_file(struct thread_files *files, enum thread_file which, char *text)
{
	int *kept = &files->descriptors[which], fd;
	ssize_t length;

	if (*kept)
		return read_all(*kept - 1, text, TEXT_BYTES);
	fd = open(PROC_PATH("%d/task/%d/%s", files->pid, files->tid, file_names[which]),
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read_all(fd, text, TEXT_BYTES);
	if (length > 0 && files->budget && *files->budget > 0) {
		*kept = fd + 1;
		--*files->budget;
	} else {
		close(fd);
	}
	return length;
}

bool thread_files_is_end(int error)
{
	return error == -ESRCH || error == -ENOENT;
}

bool thread_counts_parse(const char *text, struct thread_counts *out)
{
	char *end;

	out->run_ns = strtoull(text, &end, 10);
	if (*end != ' ')
		return false;
	out->ready_ns = strtoull(end, &end, 10);
	if (*end != ' ')
		return false;
	out->switch_count = strtoull(end, &end, 10);
	return *end == '\n' || !*end;
}

static void copy_name(const char *begin, const char *end, char *name)
{
	size_t length = (size_t)(end - begin);

	if (length >= THREAD_NAME_BYTES)
		length = THREAD_NAME_BYTES - 1;
	memcpy(name, begin, length);
	name[length] = '\0';
}

bool thread_stat_parse(const char *text, struct thread_stat *out)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')'), *at;
	uint64_t values[FIELDS] = {0};

	if (!open || !close || close < open || close[1] != ' ')
		return false;
	copy_name(open + 1, close, out->name);
	at = close + 2;
	out->state = *at;
	for (int i = FIELD_STATE + 1; i < FIELDS; i++) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		values[i] = strtoull(++at, NULL, 10);
	}
	out->parent = (pid_t)values[FIELD_PARENT];
	out->fault_count = values[FIELD_MINOR_FAULTS] + values[FIELD_MAJOR_FAULTS];
	out->kernel_ticks = values[FIELD_KERNEL_TIME];
	out->start_ticks = values[FIELD_START];
	out->thread_count = (uint32_t)values[FIELD_THREADS];
	out->stack_start = values[FIELD_STACK_START];
	return true;
}

/*
 * One of "running", "-1 STACK INSTRUCTION", "NUMBER ARGUMENT{6} STACK INSTRUCTION". See
 * proc_pid_syscall(5).
 */
void thread_syscall_parse(const char *text, struct thread_syscall *out)
{
	uint64_t values[8];
	size_t count = 0;
	char *end;

	*out = (struct thread_syscall){0};
	if (!strncmp(text, "running", 7)) {
		out->kind = SYSCALL_RUNNING;
		return;
	}
	out->number = strtol(text, &end, 10);
	while (end != text && *end == ' ' && count < 8)
		values[count++] = strtoull(end, &end, 16);
	if (count != (out->number < 0 ? 2 : 8))
		return;
	out->kind = out->number < 0 ? SYSCALL_NONE : SYSCALL_BLOCKED;
	out->stack_pointer = values[count - 2];
	out->instruction = values[count - 1];
	if (out->kind == SYSCALL_BLOCKED)
		memcpy(out->arguments, values, sizeof(out->arguments));
}

int thread_files_counts(struct thread_files *files, struct thread_counts *out)
{
	char text[TEXT_BYTES];
	ssize_t length = read_file(files, THREAD_FILE_COUNTS, text);

	if (length < 0)
		return (int)length;
	return thread_counts_parse(text, out) ? 0 : -EBADMSG;
}

int thread_files_stat(struct thread_files *files, struct thread_stat *out)
{
	char text[TEXT_BYTES];
	ssize_t length = read_file(files, THREAD_FILE_STAT, text);

	if (length < 0)
		return (int)length;
	return thread_stat_parse(text, out) ? 0 : -EBADMSG;
}

int process_stat_read(pid_t pid, struct thread_stat *out)
{
	char text[TEXT_BYTES];
	ssize_t length = proc_file_read(PROC_PATH("%d/stat", pid), text, sizeof(text));

	if (length < 0)
		return (int)length;
	return thread_stat_parse(text, out) ? 0 : -EBADMSG;
}

void thread_files_syscall(struct thread_files *files, struct thread_syscall *out)
{
	char text[TEXT_BYTES];

	if (read_file(files, THREAD_FILE_SYSCALL, text) < 0)
		*out = (struct thread_syscall){0};
	else
		thread_syscall_parse(text, out);
}

void thread_files_close(struct thread_files *files)
{
	for (int i = 0; i < THREAD_FILES; i++) {
		if (!files->descriptors[i])
			continue;
		close(files->descriptors[i] - 1);
		files->descriptors[i] = 0;
		++*files->budget;
	}
}

void process_program(pid_t pid, char out[PATH_MAX])
{
	ssize_t length;

	length = readlink(PROC_PATH("%d/exe", pid), out, PATH_MAX - 1);
	out[length > 0 ? length : 0] = '\0';
}

#define PAGE_BYTES  UINT64_C(4096)
#define PAGES_BATCH 64

/*
 * One part for each page: the kernel need not return what precedes a missing page within a part
 * (process_vm_readv(2)).
 */
static size_t split_into_pages(struct iovec *pages, uint64_t from, size_t bytes)
{
	size_t count = 0;

	while (bytes && count < PAGES_BATCH) {
		size_t part = PAGE_BYTES - (from & (PAGE_BYTES - 1));

		if (part > bytes)
			part = bytes;
		pages[count++] = (struct iovec){(void *)(uintptr_t)from, part};
		from += part;
		bytes -= part;
	}
	return count;
}

size_t process_memory_read_some(pid_t pid, void *to, uint64_t from, size_t bytes)
{
	struct iovec pages[PAGES_BATCH];
	int saved_errno = errno;
	size_t done = 0;

	if (from + bytes < from)
		return 0;
	while (done < bytes) {
		struct iovec local = {(char *)to + done, bytes - done};
		size_t count = split_into_pages(pages, from + done, bytes - done), wanted = 0;
		ssize_t got;

		for (size_t i = 0; i < count; i++)
			wanted += pages[i].iov_len;
		got = process_vm_readv(pid, &local, 1, pages, count, 0);
		if (got <= 0)
			break;
		done += (size_t)got;
		if ((size_t)got < wanted)
			break;
	}
	errno = saved_errno;
	return done;
}

bool process_memory_read(pid_t pid, void *to, uint64_t from, size_t bytes)
{
	return process_memory_read_some(pid, to, from, bytes) == bytes;
}

/* Whether this process may use the system call, on its own memory. */
static bool can_read_itself(void)
{
	char from = 1, to = 0;
	struct iovec local = {&to, 1}, remote = {&from, 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

bool process_memory_is_refused(pid_t pid, uint64_t address)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {(void *)(uintptr_t)address, 1};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) != 1 &&
	       (errno == EPERM || errno == ENOSYS);
}

void process_memory_explain(pid_t pid, uint64_t address, char *why, size_t why_bytes)
{
	int scope = proc_file_number("/proc/sys/kernel/yama/ptrace_scope", "");

	why[0] = '\0';
	if (!process_memory_is_refused(pid, address))
		return;
	if (!can_read_itself())
		snprintf(why, why_bytes,
			 "the container forbids process_vm_readv; docker run --cap-add SYS_PTRACE "
			 "allows it");
	else if (scope > 1)
		snprintf(why, why_bytes, "kernel.yama.ptrace_scope is %d; %s allows it", scope,
			 scope > 2 ? "a restart with ptrace_scope 1"
				   : "'sysctl kernel.yama.ptrace_scope=1'");
	else if (scope == 1)
		snprintf(why, why_bytes,
			 "kernel.yama.ptrace_scope is 1, so only a parent may read it; "
			 "'sysctl kernel.yama.ptrace_scope=0' allows it");
	else
		snprintf(why, why_bytes, "the process belongs to another user, or is protected");
}

bool process_memory_read_parts(pid_t pid, const struct process_memory_part *parts, size_t count)
{
	struct iovec local[PROCESS_MEMORY_PARTS_MAX], remote[PROCESS_MEMORY_PARTS_MAX];
	int saved_errno = errno;
	size_t wanted = 0;
	ssize_t got;

	if (count > PROCESS_MEMORY_PARTS_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){parts[i].to, parts[i].bytes};
		remote[i] = (struct iovec){(void *)(uintptr_t)parts[i].from, parts[i].bytes};
		wanted += parts[i].bytes;
	}
	got = process_vm_readv(pid, local, count, remote, count, 0);
	errno = saved_errno;
	return got >= 0 && (size_t)got == wanted;
}
