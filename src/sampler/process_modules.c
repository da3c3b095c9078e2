/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds modules in /proc/PID/maps. A module is a run of mappings of one file with an executable one
 * among them; the file's program headers give its range and bias. Sampler thread only. A file may
 * be damaged, or truncated while it is read, and memory may change: each offset is checked.
 */
#include "sampler/process_modules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/build_id.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/regular_file.h"
#include "sampler/process_read.h"

#define BLOCK_SYMBOLS 2048
#define TABLE_BYTES_MAX                                                                            \
	(UINT64_C(512) << 20) /* more than any library has, less than a sparse file */
#define NAME_BYTES_MAX 256

/* A table of symbols and its names. */
struct symbol_table {
	int fd;
	uint64_t offset, count;
	uint64_t names_offset, names_bytes;
};

/* Adds what is found in one table to the context. */
typedef void visit_table(const struct symbol_table *table, void *context);

/* Visits the dynamic symbols first. Returns 0, or -ENOEXEC if this is no whole 64-bit ELF file. */
static int visit_tables(int fd, visit_table *visit, void *context)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	Elf64_Shdr *sections;
	Elf64_Ehdr head;
	int error = -ENOEXEC;

	if (fd < 0 || xt_read_at(fd, &head, sizeof(head), 0) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_shentsize != sizeof(*sections))
		return -ENOEXEC;
	sections = calloc(head.e_shnum + (size_t)1, sizeof(*sections));
	if (sections && head.e_shoff <= INT64_MAX &&
	    !xt_read_at(fd, sections, head.e_shnum * sizeof(*sections), head.e_shoff))
		error = 0;
	for (size_t t = 0; !error && t < sizeof(types) / sizeof(types[0]); t++)
		for (uint32_t i = 0; i < head.e_shnum; i++) {
			const Elf64_Shdr *section = &sections[i];
			const Elf64_Shdr *strings =
				&sections[section->sh_link < head.e_shnum ? section->sh_link : 0];
			const struct symbol_table table = {fd, section->sh_offset,
							   section->sh_size / sizeof(Elf64_Sym),
							   strings->sh_offset, strings->sh_size};

			if (section->sh_type == types[t] && section->sh_size <= TABLE_BYTES_MAX &&
			    strings->sh_size <= TABLE_BYTES_MAX)
				visit(&table, context);
		}
	free(sections);
	return error;
}

/* Returns the number of symbols read from number `from` on, 0 at the end. */
static size_t read_block(const struct symbol_table *table, uint64_t from, Elf64_Sym *block)
{
	size_t count =
		table->count - from < BLOCK_SYMBOLS ? (size_t)(table->count - from) : BLOCK_SYMBOLS;

	if (!count || table->offset > INT64_MAX - TABLE_BYTES_MAX ||
	    xt_read_at(table->fd, block, count * sizeof(*block),
		       table->offset + from * sizeof(*block)))
		return 0;
	return count;
}

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

struct name_search {
	struct elf_symbol *symbols;
	size_t count;
};

static void take_symbol(const struct name_search *search, const Elf64_Sym *entry, const char *name)
{
	for (size_t s = 0; s < search->count; s++) {
		struct elf_symbol *symbol = &search->symbols[s];

		if (symbol->address || strcmp(name, symbol->name) != 0)
			continue;
		symbol->address = entry->st_value;
		symbol->bytes = entry->st_size;
	}
}

static void search_names(const struct symbol_table *table, void *context)
{
	char *names = malloc(table->names_bytes + 1);
	Elf64_Sym *block = malloc(BLOCK_SYMBOLS * sizeof(*block));
	size_t got;

	if (!names || !block || table->names_offset > INT64_MAX - TABLE_BYTES_MAX ||
	    xt_read_at(table->fd, names, table->names_bytes, table->names_offset))
		goto out;
	names[table->names_bytes] = '\0';
	for (uint64_t from = 0; (got = read_block(table, from, block)) > 0; from += got)
		for (size_t i = 0; i < got; i++)
			if (is_defined(&block[i]) && block[i].st_name < table->names_bytes)
				take_symbol(context, &block[i], names + block[i].st_name);
out:
	free_all(names, block);
}

int elf_symbols_find(int fd, struct elf_symbol *symbols, size_t count)
{
	struct name_search search = {symbols, count};

	for (size_t s = 0; s < count; s++)
		symbols[s].address = symbols[s].bytes = 0;
	return visit_tables(fd, search_names, &search);
}

struct address_search {
	uint64_t address;
	const char *const *names;
	size_t count;
	const char *found;
};

/* Few symbols cover an address, so only their names are read. */
static void take_name(const struct symbol_table *table, uint64_t at, struct address_search *search)
{
	uint64_t bytes = at < table->names_bytes ? table->names_bytes - at : 0;
	char name[NAME_BYTES_MAX + 1] = "";

	bytes = smaller(bytes, NAME_BYTES_MAX);
	if (table->names_offset > INT64_MAX - TABLE_BYTES_MAX ||
	    xt_read_at(table->fd, name, bytes, table->names_offset + at))
		return;
	for (size_t n = 0; n < search->count && !search->found; n++)
		if (!strcmp(name, search->names[n]))
			search->found = search->names[n];
}

static void search_address(const struct symbol_table *table, void *context)
{
	struct address_search *search = context;
	Elf64_Sym *block = malloc(BLOCK_SYMBOLS * sizeof(*block));
	size_t got;

	for (uint64_t from = 0;
	     block && !search->found && (got = read_block(table, from, block)) > 0; from += got)
		for (size_t i = 0; i < got; i++)
			if (is_defined(&block[i]) && search->address >= block[i].st_value &&
			    search->address - block[i].st_value < block[i].st_size)
				take_name(table, block[i].st_name, search);
	free(block);
}

const char *elf_symbols_named_at(int fd, uint64_t address, const char *const *names, size_t count)
{
	struct address_search search = {address, names, count, NULL};

	visit_tables(fd, search_address, &search);
	return search.found;
}

#define PAGE_BYTES	UINT64_C(4096) /* the smallest of any machine */
#define NOTES_BYTES_MAX 65536
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static struct elf_image *shared_images;
static uint32_t open_file_count;

uint32_t elf_image_files_max = UINT32_MAX;
uint32_t elf_image_page_bytes;

/* Page size of the mappings of an image, in bytes. */
static uint64_t elf_image_page(void)
{
	long bytes = elf_image_page_bytes ? (long)elf_image_page_bytes : sysconf(_SC_PAGESIZE);

	return bytes > 0 ? (uint64_t)bytes : PAGE_BYTES;
}

/* The beginning of a mapped file: the file itself, or pages that the process has. */
struct beginning {
	int fd; /* -1: pages */
	const uint8_t *pages;
	uint64_t byte_count;
};

static bool read_part(const struct beginning *from, void *to, uint64_t offset, uint64_t bytes)
{
	if (offset > from->byte_count || bytes > from->byte_count - offset)
		return false;
	if (from->fd >= 0)
		return !xt_read_at(from->fd, to, bytes, offset);
	memcpy(to, from->pages + offset, bytes);
	return true;
}

static bool read_headers(struct elf_image *image, const struct beginning *from)
{
	Elf64_Ehdr header;

	if (!read_part(from, &header, 0, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != MACHINE || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    !header.e_phnum || header.e_phnum > ELF_IMAGE_HEADERS_MAX ||
	    !read_part(from, image->headers, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	image->header_count = header.e_phnum;
	return true;
}

static void read_build_id(struct elf_image *image, const struct beginning *from)
{
	static uint8_t notes[NOTES_BYTES_MAX];

	for (size_t i = 0; i < image->header_count && !image->build_id_bytes; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		size_t id_bytes;
		const uint8_t *id = NULL;

		if (segment->p_type == PT_NOTE && segment->p_filesz <= NOTES_BYTES_MAX &&
		    read_part(from, notes, segment->p_offset, segment->p_filesz))
			id = xt_build_id(notes, segment->p_filesz, ELF_IMAGE_BUILD_ID_MAX,
					 &id_bytes);
		if (!id)
			continue;
		image->build_id_bytes = (uint32_t)id_bytes;
		memcpy(image->build_id, id, id_bytes);
	}
}

/*
 * Whether the opened file is the mapped one. Some file systems report another inode in maps than in
 * stat, so compare the first page if the numbers differ.
 */
static bool is_mapped_file(int fd, const struct stat *status, pid_t pid,
			   const struct memory_mapping *mapping)
{
	uint8_t page[PAGE_BYTES], bytes[PAGE_BYTES];
	size_t part =
		(size_t)status->st_size < sizeof(page) ? (size_t)status->st_size : sizeof(page);

	if (status->st_ino == mapping->inode)
		return true;
	return mapping->offset == 0 && process_memory_read(pid, page, mapping->start, part) &&
	       !xt_read_at(fd, bytes, part, 0) && !memcmp(page, bytes, part);
}

static bool use_file(struct elf_image *image, const char *path, pid_t pid,
		     const struct memory_mapping *mapping)
{
	struct stat status;
	int fd = open_file_count < elf_image_files_max ? xt_regular_open(path, &status) : -EMFILE;
	const struct beginning from = {fd, NULL, fd < 0 ? 0 : (uint64_t)status.st_size};

	if (fd < 0)
		return false;
	if (!is_mapped_file(fd, &status, pid, mapping) || !read_headers(image, &from)) {
		close(fd);
		return false;
	}
	image->fd = fd;
	image->byte_count = from.byte_count;
	open_file_count++;
	read_build_id(image, &from);
	return true;
}

static bool open_file(struct elf_image *image, pid_t pid, const struct memory_mapping *mapping)
{
	char path[4096 + 64];

	if (mapping->path[0] != '/')
		return false;
	if (!mapping->is_deleted) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
		if (use_file(image, path, pid, mapping) ||
		    use_file(image, mapping->path, pid, mapping))
			return true;
	}
	return use_file(
		image,
		PROC_PATH("%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start, mapping->end),
		pid, mapping);
}

/* Headers and build id are in the first pages of every usual file. */
static bool read_from_process(struct elf_image *image, pid_t pid,
			      const struct memory_mapping *mapping)
{
	uint8_t pages[2 * PAGE_BYTES];
	struct beginning from = {.fd = -1, .pages = pages};
	size_t wanted = mapping->end - mapping->start;

	if (mapping->offset)
		return false;
	from.byte_count = process_memory_read_some(pid, pages, mapping->start,
						   wanted < sizeof(pages) ? wanted : sizeof(pages));
	if (!read_headers(image, &from))
		return false;
	read_build_id(image, &from);
	return true;
}

/*
 * The image of the file in a mapping that starts at the file's start. NULL if it is no ELF
 * file or cannot be read. elf_image_release() frees it.
 */
static struct elf_image *elf_image_open(pid_t pid, const struct memory_mapping *mapping)
{
	static uint64_t last_id;
	struct elf_image *image;

	/* A mapped inode is not reused, so its number identifies the file. */
	for (image = shared_images; image; image = image->next)
		if (mapping->inode && image->inode == mapping->inode &&
		    image->device == mapping->device) {
			image->user_count++;
			return image;
		}
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	image->id = ++last_id;
	image->fd = -1;
	image->user_count = 1;
	image->device = mapping->device;
	image->inode = mapping->inode;
	if (open_file(image, pid, mapping)) {
		image->next = shared_images;
		shared_images = image;
		return image;
	}
	if (read_from_process(image, pid, mapping))
		return image;
	free(image);
	return NULL;
}

void elf_image_release(struct elf_image *image)
{
	struct elf_image **link = &shared_images;

	if (!image || --image->user_count)
		return;
	while (*link && *link != image)
		link = &(*link)->next;
	if (*link)
		*link = image->next;
	if (image->fd >= 0) {
		close(image->fd);
		open_file_count--;
	}
	free(image);
}

const Elf64_Phdr *elf_image_segment_of_offset(const struct elf_image *image, uint64_t offset,
					      bool is_executable)
{
	const uint64_t page = elf_image_page();

	for (size_t i = 0; i < image->header_count; i++) {
		const Elf64_Phdr *segment = &image->headers[i];
		uint64_t first = segment->p_offset & ~(page - 1);

		if (segment->p_type == PT_LOAD && !!(segment->p_flags & PF_X) == is_executable &&
		    offset >= first && offset - first < segment->p_filesz + page)
			return segment;
	}
	return NULL;
}

const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint64_t address, size_t bytes)
{
	for (size_t i = 0; i < image->header_count; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr <= segment->p_filesz &&
		    bytes <= segment->p_filesz - (address - segment->p_vaddr))
			return segment;
	}
	return NULL;
}

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
	       a->elf->build_id_bytes == b->elf->build_id_bytes &&
	       !memcmp(a->elf->build_id, b->elf->build_id, a->elf->build_id_bytes) &&
	       a->elf->byte_count == b->elf->byte_count && !strcmp(a->path, b->path);
}

void process_modules_free(struct process_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		elf_image_release(modules->list[i].elf);
		free(modules->list[i].path);
	}
	free(modules->list);
	*modules = (struct process_modules){0};
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
		module->start = smaller(module->start, start);
		module->end = larger(module->end, start + segment->p_memsz);
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
		if (!module.path ||
		    grow(reader->found.list, reader->found.capacity, reader->found.count + 1))
			reader->error = -ENOMEM;
	}
	if (!module.path || reader->error) {
		elf_image_release(module.elf);
		free(module.path);
		return;
	}
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
	char *line = NULL;
	size_t line_bytes = 0, mapping_count = 0;
	FILE *file;

	file = fopen(PROC_PATH("%d/maps", reader->pid), "re");
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
		process_modules_free(&reader.found);
		return error;
	}
	reader.found.generation = modules->generation;
	if (!keep_log_ids(&reader.found, modules) || !modules->generation)
		reader.found.generation = ++last_generation;
	reader.found.refresh_due_ns = modules->refresh_due_ns;
	process_modules_free(modules);
	*modules = reader.found;
	return 0;
}

struct process_module *process_modules_find(const struct process_modules *modules, uint64_t address)
{
	size_t low = FIRST_NOT(i, 0, modules->count, modules->list[i].end <= address);

	if (low == modules->count || address < modules->list[low].start)
		return NULL;
	return &modules->list[low];
}
