/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds modules in /proc/PID/maps. A module is a run of mappings of one file with an executable one
 * among them; the file's program headers give its range and bias. Sampler thread only.
 */
#include "sampler/process_modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "sampler/elf_image.h"

#define DELETED_SUFFIX " (deleted)"

/* Mappings of one file that follow each other. */
struct mapping_run {
	struct memory_mapping first, code; /* code.end is 0 until it was found */
	bool has_code;			   /* also in an anonymous mapping in between */
	char path[4096];
};

struct maps_reader {
	pid_t pid;
	struct process_modules found;
	struct mapping_run run;
	int error;
};

static bool module_is_same(const struct process_module *a, const struct process_module *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) &&
	       a->elf->byte_count == b->elf->byte_count && !strcmp(a->path, b->path);
}

static void free_list(struct process_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		elf_image_release(modules->list[i].elf);
		free(modules->list[i].path);
	}
	free(modules->list);
	modules->list = NULL;
	modules->count = modules->capacity = 0;
}

/* Where the module is, from its headers and one of its mappings. */
static bool place_module(struct process_module *module, const struct memory_mapping *mapping)
{
	const struct elf_image *elf = module->elf;
	const Elf64_Phdr *anchor =
		elf_image_segment_of_offset(elf, mapping->offset, mapping->is_executable);

	if (!anchor)
		return false;
	module->bias = mapping->start - (mapping->offset - anchor->p_offset) - anchor->p_vaddr;
	module->start = UINT64_MAX;
	for (size_t i = 0; i < elf->header_count; i++) {
		const Elf64_Phdr *segment = &elf->headers[i];
		uint64_t start = module->bias + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (start < module->start)
			module->start = start;
		if (start + segment->p_memsz > module->end)
			module->end = start + segment->p_memsz;
	}
	return module->start <= mapping->start + elf_image_page() && mapping->start < module->end;
}

static void add_module(struct maps_reader *reader, const struct mapping_run *run)
{
	const struct memory_mapping *mapping = run->code.end ? &run->code : &run->first;
	struct process_module module = {.elf = elf_image_open(reader->pid, &run->first)};

	if (!module.elf)
		return;
	if (place_module(&module, mapping)) {
		module.path = strdup(run->path);
		if (!module.path || grow(&reader->found.list, &reader->found.capacity,
					 reader->found.count + 1, sizeof(module)))
			reader->error = -ENOMEM;
	}
	if (!module.path || reader->error) {
		elf_image_release(module.elf);
		free(module.path);
		return;
	}
	module.build_id_bytes = module.elf->build_id_bytes;
	memcpy(module.build_id, module.elf->build_id, module.build_id_bytes);
	reader->found.list[reader->found.count++] = module;
}

static void end_run(struct maps_reader *reader)
{
	if (reader->run.first.end && reader->run.has_code)
		add_module(reader, &reader->run);
	reader->run.first.end = 0;
}

static void start_run(struct maps_reader *reader, const struct memory_mapping *mapping)
{
	struct mapping_run *run = &reader->run;

	snprintf(run->path, sizeof(run->path), "%s", mapping->path);
	run->first = *mapping;
	run->first.path = run->path;
	run->code.end = 0;
	run->has_code = false;
}

/* A file that is loaded twice starts again at offset 0 after its code. */
static bool continues_run(const struct mapping_run *run, const struct memory_mapping *mapping)
{
	return run->first.end && mapping->inode == run->first.inode &&
	       mapping->device == run->first.device && !strcmp(mapping->path, run->path) &&
	       (mapping->offset || !run->has_code || mapping->offset == run->code.offset);
}

static void take_mapping(struct maps_reader *reader, const struct memory_mapping *mapping)
{
	struct mapping_run *run = &reader->run;

	if (!mapping->path[0]) {
		/* Code may have been moved to huge pages, which have no file. */
		run->has_code |= mapping->is_executable;
		return;
	}
	/* Names such as [heap] follow a module's data; only the vdso has code. */
	if (mapping->path[0] == '[' && strcmp(mapping->path, "[vdso]"))
		return;
	if (!continues_run(run, mapping)) {
		end_run(reader);
		start_run(reader, mapping);
	}
	if (mapping->is_executable) {
		run->has_code = true;
		if (!run->code.end) {
			run->code = *mapping;
			run->code.path = run->path;
		}
	}
}

bool memory_mapping_parse(char *line, struct memory_mapping *mapping)
{
	unsigned long long start, end, offset, inode;
	unsigned int major, minor;
	size_t bytes;
	int path_at = 0;
	char rights[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset, &major,
		   &minor, &inode, &path_at) < 7)
		return false;
	*mapping = (struct memory_mapping){
		.start = start,
		.end = end,
		.offset = offset,
		.device = (uint64_t)major << 32 | minor,
		.inode = inode,
		.path = line + path_at,
		.is_executable = rights[2] == 'x',
		.is_writable = rights[1] == 'w',
		.is_private = rights[3] == 'p',
	};
	bytes = strcspn(line + path_at, "\n");
	line[(size_t)path_at + bytes] = '\0';
	if (inode && bytes > strlen(DELETED_SUFFIX) &&
	    !strcmp(line + path_at + bytes - strlen(DELETED_SUFFIX), DELETED_SUFFIX)) {
		line[(size_t)path_at + bytes - strlen(DELETED_SUFFIX)] = '\0';
		mapping->is_deleted = true;
	}
	return true;
}

static int read_maps(struct maps_reader *reader)
{
	struct memory_mapping mapping;
	char path[64], *line = NULL;
	size_t line_bytes = 0, mapping_count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)reader->pid);
	file = fopen(path, "re");
	if (!file)
		return -ESRCH;
	while (getline(&line, &line_bytes, file) > 0 && !reader->error)
		if (memory_mapping_parse(line, &mapping)) {
			mapping_count++;
			take_mapping(reader, &mapping);
		}
	end_run(reader);
	free(line);
	fclose(file);
	/* An ended process has an empty list until its parent waits for it. */
	return reader->error ? reader->error : mapping_count ? 0 : -ESRCH;
}

/* An unchanged module keeps its image and its id. Both lists are sorted by address. */
static bool keep_log_ids(struct process_modules *found, struct process_modules *old)
{
	size_t kept_count = 0;

	for (size_t i = 0, k = 0; i < found->count; i++) {
		struct process_module *module = &found->list[i];

		while (k < old->count && old->list[k].start < module->start)
			k++;
		if (k < old->count && module_is_same(module, &old->list[k])) {
			struct elf_image *elf = module->elf;

			module->elf = old->list[k].elf;
			old->list[k].elf = elf;
			module->log_id = old->list[k].log_id;
			kept_count++;
		}
	}
	return kept_count == found->count && kept_count == old->count;
}

int process_modules_refresh(struct process_modules *modules, pid_t pid)
{
	static uint64_t last_generation;
	struct maps_reader reader = {.pid = pid};
	int saved_errno = errno, error = read_maps(&reader);

	errno = saved_errno;
	if (error) {
		free_list(&reader.found);
		return error;
	}
	reader.found.generation = modules->generation;
	if (!keep_log_ids(&reader.found, modules) || !modules->generation)
		reader.found.generation = ++last_generation;
	reader.found.refresh_due_ns = modules->refresh_due_ns;
	free_list(modules);
	*modules = reader.found;
	return 0;
}

struct process_module *process_modules_find(const struct process_modules *modules, uint64_t address)
{
	size_t low = 0, high = modules->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (modules->list[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == modules->count || address < modules->list[low].start)
		return NULL;
	return &modules->list[low];
}

void process_modules_free(struct process_modules *modules)
{
	free_list(modules);
	*modules = (struct process_modules){0};
}
