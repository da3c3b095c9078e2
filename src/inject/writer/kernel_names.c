/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names with a system call, because a module may be unloaded at any time. Caches them by
 * address until any module is unloaded.
 */
#include "inject/writer/kernel_names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer_names.h"
#include "inject/runtime/loader_lock.h"
#include "log/write/event_rows.h"

#define KERNEL_NAME_BYTES_MAX CRASH_BUFFER_NAME_BYTES_MAX

/* For containers that forbid process_vm_readv(). */
static ssize_t read_own_file(const void *from, void *out, size_t bytes)
{
	ssize_t n;
	int fd;

	/* A child forked meanwhile would inherit the descriptor. */
	loader_lock();
	fd = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, out, bytes, (off_t)(uintptr_t)from);
	if (fd >= 0)
		close(fd);
	loader_unlock();
	return n;
}

/*
 * Reads memory that may be unmapped: all of it, or returns false. By this thread's id, because a
 * main thread that has ended has no memory.
 */
static bool read_own_memory(const void *from, void *out, size_t bytes)
{
	pid_t thread_id = (pid_t)syscall(SYS_gettid);
	struct iovec here = {out, bytes}, there = {(void *)(uintptr_t)from, bytes};
	ssize_t n = process_vm_readv(thread_id, &here, 1, &there, 1, 0);

	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		n = read_own_file(from, out, bytes);
	return n == (ssize_t)bytes;
}

/*
 * Reads a kernel name. It points into a GPU module, which may have been unloaded since. Returns 0
 * if the name is unreadable, has no end, or has invalid characters.
 */
static size_t read_name(const char *name, char *out)
{
	size_t length = 0;

	while (length < KERNEL_NAME_BYTES_MAX) {
		size_t to_page = 4096 - ((uintptr_t)(name + length) & 4095);
		const char *end;

		if (!read_own_memory(name + length, out + length, to_page))
			return 0;
		end = memchr(out + length, '\0', to_page);
		if (end)
			length = (size_t)(end - out);
		else
			length += to_page;
		for (const char *c = out; end && c < end; c++)
			if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
				return 0;
		if (end)
			return length;
	}
	return 0;
}

uint32_t kernel_name_id(struct recorder *rec, const char *name)
{
	static char text[KERNEL_NAME_BYTES_MAX + 4096];
	struct known_name *known;
	uint64_t epoch = atomic_load(&cupti_module_unloads) + 1;
	size_t length;

	if (!name)
		return 0;
	known = &rec->names[((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15)) >>
			    (64 - KNOWN_NAMES_BITS)];
	if (known->address != name || known->epoch != epoch || !known->id) {
		known->address = name;
		known->epoch = epoch;
		length = read_name(name, text);
		known->id = recorder_string(rec, text, length);
		recorder_crash_buffer_name(rec, XT_NAME_KERNEL, (uintptr_t)name, text, length);
	}
	return known->id;
}

void record_node_name(struct recorder *rec, const struct xt_record_node_name *record)
{
	uint32_t name = kernel_name_id(rec, (const char *)(uintptr_t)record->name);
	struct xt_table *table = name ? recorder_table(rec, XT_KIND_GRAPH_NODE_NAME, 0) : NULL;

	if (table)
		xt_write_graph_node_name(table, &(struct xt_row_graph_node_name){
							record->node_id, record->time_ns, name});
}
