/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of a child, compared with what its loader reports: loaded, unloaded, deleted, shared by
 * processes, and of processes that cannot be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/process_modules.h"

/* The child runs commands from a pipe: one byte each, answered by one byte. */
struct child {
	pid_t pid;
	int commands, answers;
	void **handle_address; /* shared memory: where the plugin was loaded */
};

static char plugin_path[256];

static void run_command(char command, void **address)
{
	static void *plugin;
	struct link_map *map;

	if (command == 'l') {
		plugin = dlopen(plugin_path, RTLD_NOW);
		if (!plugin || dlinfo(plugin, RTLD_DI_LINKMAP, &map))
			_exit(1);
		*address = (void *)map->l_addr;
	} else if (command == 'u') {
		dlclose(plugin);
	} else {
		_exit(0);
	}
}

static void start(struct child *child)
{
	int commands[2], answers[2];
	char command;

	assert_int_equal(pipe(commands), 0);
	assert_int_equal(pipe(answers), 0);
	child->handle_address = mmap(NULL, sizeof(void *), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(child->handle_address, MAP_FAILED);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (!child->pid) {
		close(commands[1]);
		close(answers[0]);
		while (read(commands[0], &command, 1) == 1) {
			run_command(command, child->handle_address);
			if (write(answers[1], "", 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(commands[0]);
	close(answers[1]);
	child->commands = commands[1];
	child->answers = answers[0];
}

static void command(struct child *child, char what)
{
	char byte;

	assert_int_equal(write(child->commands, &what, 1), 1);
	assert_int_equal(read(child->answers, &byte, 1), 1);
}

static void stop(struct child *child)
{
	if (write(child->commands, "q", 1) != 1)
		assert_int_equal(errno, EPIPE);
	close(child->commands);
	close(child->answers);
	waitpid(child->pid, NULL, 0);
	munmap(child->handle_address, sizeof(void *));
}

static struct process_module *find_path(struct process_modules *modules, const char *path)
{
	for (size_t i = 0; i < modules->count; i++)
		if (!strcmp(modules->list[i].path, path))
			return &modules->list[i];
	return NULL;
}

static int compare_module(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct process_modules *modules = arg;
	uint64_t start = UINT64_MAX, end = 0;
	struct process_module *module;

	(void)info_bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + segment->p_vaddr < start)
			start = info->dlpi_addr + segment->p_vaddr;
		if (info->dlpi_addr + segment->p_vaddr + segment->p_memsz > end)
			end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
	}
	module = process_modules_find(modules, start + 1);
	assert_non_null(module);
	assert_int_equal(module->start, start);
	assert_int_equal(module->end, end);
	assert_int_equal(module->bias, info->dlpi_addr);
	assert_ptr_equal(process_modules_find(modules, end - 1), module);
	assert_true(module->elf->build_id_bytes > 0);
	return 0;
}

/* A forked child has the modules of its parent, the vdso included. */
static void agrees_with_loader(void **unused)
{
	struct process_modules modules = {0};
	struct child child;

	(void)unused;
	start(&child);
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	dl_iterate_phdr(compare_module, &modules);
	assert_non_null(find_path(&modules, "[vdso]"));
	for (size_t i = 1; i < modules.count; i++)
		assert_true(modules.list[i - 1].end <= modules.list[i].start);
	assert_null(process_modules_find(&modules, 0));
	assert_null(process_modules_find(&modules, UINT64_MAX));
	assert_null(process_modules_find(&modules, (uintptr_t)&modules));
	process_modules_free(&modules);
	stop(&child);
}

static void keeps_ids_of_modules_that_stay(void **unused)
{
	struct process_modules modules = {0};
	struct child child;
	uint64_t generation;
	struct process_module *plugin;
	size_t count;

	(void)unused;
	snprintf(plugin_path, sizeof(plugin_path), "%s", PLUGIN_A);
	start(&child);
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	count = modules.count;
	for (size_t i = 0; i < count; i++)
		modules.list[i].log_id = (uint32_t)i + 1;
	generation = modules.generation;
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	assert_int_equal(modules.generation, generation);

	command(&child, 'l');
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	assert_int_not_equal(modules.generation, generation);
	generation = modules.generation;
	assert_int_equal(modules.count, count + 1);
	plugin = find_path(&modules, PLUGIN_A);
	assert_non_null(plugin);
	assert_int_equal(plugin->log_id, 0);
	assert_int_equal(plugin->bias, (uintptr_t)*child.handle_address);
	assert_true(plugin->elf->fd >= 0);
	for (size_t i = 0; i < modules.count; i++)
		if (&modules.list[i] != plugin)
			assert_int_not_equal(modules.list[i].log_id, 0);

	command(&child, 'u');
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	assert_int_not_equal(modules.generation, generation);
	assert_null(find_path(&modules, PLUGIN_A));
	for (size_t i = 0; i < modules.count; i++)
		assert_int_equal(modules.list[i].log_id, i + 1);
	process_modules_free(&modules);
	stop(&child);
}

static void copy_plugin(const char *path)
{
	char bytes[65536];
	int from = open(PLUGIN_A, O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	ssize_t got;

	assert_true(from >= 0 && to >= 0);
	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)got), got);
	close(from);
	close(to);
}

static void describes_deleted_file(void **unused)
{
	struct process_modules modules = {0};
	struct process_module *plugin, whole;
	struct elf_image image;
	struct child child;
	int fd;

	(void)unused;
	strcpy(plugin_path, "/tmp/xtrace_modules_test.XXXXXX");
	fd = mkstemp(plugin_path);
	assert_true(fd >= 0);
	close(fd);
	copy_plugin(plugin_path);
	start(&child);
	command(&child, 'l');
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	plugin = find_path(&modules, plugin_path);
	assert_non_null(plugin);
	assert_true(plugin->elf->fd >= 0);
	whole = *plugin;
	image = *plugin->elf;
	process_modules_free(&modules);

	/* Another file takes the path. */
	unlink(plugin_path);
	fd = open(plugin_path, O_WRONLY | O_CREAT, 0700);
	assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
	close(fd);
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	plugin = find_path(&modules, plugin_path);
	assert_non_null(plugin);
	assert_int_equal(plugin->start, whole.start);
	assert_int_equal(plugin->end, whole.end);
	assert_int_equal(plugin->bias, whole.bias);
	assert_int_equal(plugin->elf->build_id_bytes, image.build_id_bytes);
	assert_memory_equal(plugin->elf->build_id, image.build_id, image.build_id_bytes);
	plugin->log_id = 5;
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	assert_int_equal(find_path(&modules, plugin_path)->log_id, 5);
	unlink(plugin_path);
	process_modules_free(&modules);
	stop(&child);
}

/* The process may go on with the pages that it has. */
static void survives_truncated_file(void **unused)
{
	struct elf_symbol symbol = {.name = "missing"};
	struct process_modules modules = {0};
	struct process_module *plugin;
	struct child child;

	(void)unused;
	strcpy(plugin_path, "/tmp/xtrace_modules_test.XXXXXX");
	close(mkstemp(plugin_path));
	copy_plugin(plugin_path);
	start(&child);
	command(&child, 'l');
	assert_int_equal(process_modules_refresh(&modules, child.pid), 0);
	plugin = find_path(&modules, plugin_path);
	assert_non_null(plugin);
	assert_int_equal(elf_symbols_find(plugin->elf->fd, &symbol, 1), 0);
	assert_int_equal(truncate(plugin_path, 64), 0);
	assert_int_equal(elf_symbols_find(plugin->elf->fd, &symbol, 1), -ENOEXEC);
	assert_null(elf_symbols_named_at(plugin->elf->fd, 1, &symbol.name, 1));
	unlink(plugin_path);
	process_modules_free(&modules);
	stop(&child);
}

static void opens_file_once_for_all_processes(void **unused)
{
	struct process_modules a = {0}, b = {0};
	struct child first, second;
	char magic[4];

	(void)unused;
	start(&first);
	start(&second);
	assert_int_equal(process_modules_refresh(&a, first.pid), 0);
	assert_int_equal(process_modules_refresh(&b, second.pid), 0);
	assert_int_not_equal(a.generation, b.generation);
	assert_int_equal(a.count, b.count);
	for (size_t i = 0; i < a.count; i++)
		if (a.list[i].elf->fd >= 0)
			assert_ptr_equal(a.list[i].elf, b.list[i].elf);
	process_modules_free(&a);
	/* The other process still uses them. */
	for (size_t i = 0; i < b.count; i++)
		if (b.list[i].elf->fd >= 0)
			assert_int_equal(pread(b.list[i].elf->fd, magic, sizeof(magic), 0),
					 sizeof(magic));
	process_modules_free(&b);
	stop(&first);
	stop(&second);
}

static void reports_ended_process(void **unused)
{
	struct process_modules modules = {0};
	struct child child;
	siginfo_t end;

	(void)unused;
	start(&child);
	kill(child.pid, SIGKILL);
	waitid(P_PID, (id_t)child.pid, &end, WEXITED | WNOWAIT);
	assert_int_equal(process_modules_refresh(&modules, child.pid), -ESRCH);
	stop(&child);
	assert_int_equal(process_modules_refresh(&modules, child.pid), -ESRCH);
	assert_int_equal(modules.count, 0);
	process_modules_free(&modules);
}

static void reports_process_of_another_user(void **unused)
{
	struct process_modules modules = {0};
	pid_t pid;
	int status;

	(void)unused;
	if (geteuid())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(process_modules_refresh(&modules, getppid()) == -ESRCH ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* The code of a file as it is mapped with each page size, linked for pages of 64 KiB. */
static void finds_segments_with_any_page_size(void **unused)
{
	static const uint32_t sizes[] = {4 << 10, 16 << 10, 64 << 10};
	struct elf_image image = {.header_count = 3};

	(void)unused;
	image.headers[0] = (Elf64_Phdr){PT_LOAD, PF_R, 0, 0, 0, 0x3e00, 0x3e00, 0x10000};
	image.headers[1] = (Elf64_Phdr){PT_LOAD, PF_R | PF_X, 0x5400, 0x15400,
					0x15400, 0x9000,      0x9000, 0x10000};
	image.headers[2] =
		(Elf64_Phdr){PT_LOAD, PF_R | PF_W, 0xf800, 0x2f800, 0x2f800, 0x900, 0x900, 0x10000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t first = 0x5400 & ~(uint64_t)(sizes[i] - 1);

		elf_image_page_bytes = sizes[i];
		assert_ptr_equal(elf_image_segment_of_offset(&image, first, true),
				 &image.headers[1]);
		assert_ptr_equal(elf_image_segment_of_offset(&image, 0, false), &image.headers[0]);
		assert_null(elf_image_segment_of_offset(&image, 1 << 20, true));
	}
	elf_image_page_bytes = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_segments_with_any_page_size),
		cmocka_unit_test(agrees_with_loader),
		cmocka_unit_test(keeps_ids_of_modules_that_stay),
		cmocka_unit_test(describes_deleted_file),
		cmocka_unit_test(survives_truncated_file),
		cmocka_unit_test(opens_file_once_for_all_processes),
		cmocka_unit_test(reports_ended_process),
		cmocka_unit_test(reports_process_of_another_user),
	};

	signal(SIGPIPE, SIG_IGN); /* of a child that was killed */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
