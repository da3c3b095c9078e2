/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of ELF files, by elfutils: build id, symbol tables, debug files, search by address.
 */
#include "merge/symbols.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <unistd.h>

#include "merge/grow.h"

#define DEBUG_ROOT	   "/usr/lib/debug"
#define BUILD_ID_BYTES_MAX 64
#define PLT_SECTIONS_MAX   4

struct elf_file {
	int fd;
	Elf *elf;
};

struct entry {
	struct symbol symbol;
	uint64_t reach; /* the largest end of all symbols up to here */
	uint32_t worth; /* among symbols with the same start, the largest is taken */
};

struct symbols {
	struct elf_file file;
	struct elf_file debug;
	struct entry *entries; /* by start, one for each */
	size_t count;
	size_t capacity;
	struct symbol plt[PLT_SECTIONS_MAX];
	size_t plt_count;
};

static bool open_elf(struct elf_file *file, const char *path)
{
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return false;
	elf_version(EV_CURRENT);
	file->elf = elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
	return true;
}

static void close_elf(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct elf_file){.fd = -1};
}

static bool has_build_id(Elf *elf, const void *build_id, size_t build_id_bytes)
{
	const void *found;
	ssize_t bytes = dwelf_elf_gnu_build_id(elf, &found);

	if (bytes <= 0)
		return !build_id_bytes;
	return (size_t)bytes == build_id_bytes && !memcmp(found, build_id, build_id_bytes);
}

/* The section of that type, or NULL; for a symbol table only one that is really in the file. */
static Elf_Scn *find_section(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_size)
			return section;
	return NULL;
}

static bool has_symtab(Elf *elf)
{
	GElf_Shdr header;

	return find_section(elf, SHT_SYMTAB, &header);
}

/* A debug file is only as good as its build id; one that has no build id has none to compare. */
static bool try_debug(struct symbols *symbols, const char *path, const void *build_id,
		      size_t build_id_bytes)
{
	if (!open_elf(&symbols->debug, path))
		return false;
	if (elf_kind(symbols->debug.elf) == ELF_K_ELF && has_symtab(symbols->debug.elf) &&
	    has_build_id(symbols->debug.elf, build_id, build_id_bytes))
		return true;
	close_elf(&symbols->debug);
	return false;
}

static bool debug_by_build_id(struct symbols *symbols, const uint8_t *build_id,
			      size_t build_id_bytes)
{
	char path[sizeof(DEBUG_ROOT "/.build-id/xx/.debug") + 2 * BUILD_ID_BYTES_MAX];
	char *p = path;

	if (build_id_bytes < 2 || build_id_bytes > BUILD_ID_BYTES_MAX)
		return false;
	p += sprintf(p, DEBUG_ROOT "/.build-id/%02x/", build_id[0]);
	for (size_t i = 1; i < build_id_bytes; i++)
		p += sprintf(p, "%02x", build_id[i]);
	strcpy(p, ".debug");
	return try_debug(symbols, path, build_id, build_id_bytes);
}

static bool debug_by_link(struct symbols *symbols, const char *path, const void *build_id,
			  size_t build_id_bytes)
{
	static const char *const places[] = {"", ".debug/"};
	GElf_Word check;
	const char *link = dwelf_elf_gnu_debuglink(symbols->file.elf, &check);
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash - path + 1) : 0;
	bool found = false;
	char *name;

	if (!link)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		if (asprintf(&name, "%.*s%s%s", directory, path, places[i], link) < 0)
			return false;
		found = try_debug(symbols, name, build_id, build_id_bytes);
		free(name);
	}
	if (found || asprintf(&name, DEBUG_ROOT "%.*s%s", directory, path, link) < 0)
		return found;
	found = try_debug(symbols, name, build_id, build_id_bytes);
	free(name);
	return found;
}

/*
 * Whether the symbol is code, and its worth: aliases of one function are many (weak, internal,
 * versioned), and the name that a reader knows is the global one without underscores.
 */
static uint32_t worth_of(Elf *elf, const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	unsigned binding = GELF_ST_BIND(symbol->st_info);
	uint32_t worth = 1;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE || !name[0])
		return 0;
	if (type == STT_NOTYPE) {
		/* Assembly without .type; but not the marks that assemblers leave. */
		GElf_Shdr header;
		Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);

		if (name[0] == '$' || name[0] == '.' || !section ||
		    !gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			return 0;
	} else if (type != STT_FUNC && type != STT_GNU_IFUNC) {
		return 0;
	} else {
		worth += 32;
	}
	worth += symbol->st_size ? 16 : 0;
	worth += binding == STB_GLOBAL ? 8 : binding == STB_WEAK ? 4 : 0;
	worth += name[0] != '_' ? 2 : name[1] != '_' ? 1 : 0;
	return worth;
}

static int read_table(struct symbols *symbols, Elf *elf, uint32_t type)
{
	GElf_Shdr header;
	Elf_Scn *section = find_section(elf, type, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t count = data && header.sh_entsize ? data->d_size / header.sh_entsize : 0;

	for (size_t i = 1; i < count && i < INT32_MAX; i++) {
		GElf_Sym symbol;
		const char *name;
		uint32_t worth;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		worth = name ? worth_of(elf, &symbol, name) : 0;
		if (!worth)
			continue;
		if (grow(&symbols->entries, &symbols->capacity, symbols->count + 1,
			 sizeof(*symbols->entries)) < 0)
			return -ENOMEM;
		symbols->entries[symbols->count++] = (struct entry){
			.symbol = {symbol.st_value, symbol.st_size, name}, .worth = worth};
	}
	return 0;
}

static void read_plt(struct symbols *symbols)
{
	Elf *elf = symbols->file.elf;
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return;
	while ((section = elf_nextscn(elf, section)) && symbols->plt_count < PLT_SECTIONS_MAX) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && (!strcmp(name, ".plt") || !strncmp(name, ".plt.", 5)))
			symbols->plt[symbols->plt_count++] =
				(struct symbol){header.sh_addr, header.sh_size, SYMBOLS_PLT};
	}
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->symbol.start != y->symbol.start)
		return x->symbol.start < y->symbol.start ? -1 : 1;
	if (x->worth != y->worth)
		return x->worth > y->worth ? -1 : 1;
	return strcmp(x->symbol.name, y->symbol.name);
}

static uint64_t end_of(const struct symbol *symbol)
{
	uint64_t end = symbol->start + symbol->bytes;

	return end < symbol->start ? UINT64_MAX : end;
}

/* Sorts, keeps one name for each address, and lets those without a size reach to the next. */
static void order_entries(struct symbols *symbols)
{
	struct entry *entries = symbols->entries;
	uint64_t reach = 0;
	size_t kept = 0;

	if (!symbols->count)
		return;
	qsort(entries, symbols->count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < symbols->count; i++)
		if (!kept || entries[kept - 1].symbol.start != entries[i].symbol.start)
			entries[kept++] = entries[i];
	symbols->count = kept;
	for (size_t i = 0; i < kept; i++) {
		if (!entries[i].symbol.bytes && i + 1 < kept)
			entries[i].symbol.bytes =
				entries[i + 1].symbol.start - entries[i].symbol.start;
		if (end_of(&entries[i].symbol) > reach)
			reach = end_of(&entries[i].symbol);
		entries[i].reach = reach;
	}
}

enum symbols_result symbols_open(const char *path, const void *build_id, size_t build_id_bytes,
				 struct symbols **symbols_out)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	enum symbols_result result = SYMBOLS_NO_MEMORY;
	int error;

	*symbols_out = NULL;
	if (!symbols)
		return SYMBOLS_NO_MEMORY;
	symbols->file.fd = symbols->debug.fd = -1;
	result = SYMBOLS_NO_FILE;
	if (!open_elf(&symbols->file, path))
		goto out;
	result = SYMBOLS_NOT_ELF;
	if (elf_kind(symbols->file.elf) != ELF_K_ELF)
		goto out;
	result = SYMBOLS_OTHER_BUILD;
	if (!has_build_id(symbols->file.elf, build_id, build_id_bytes))
		goto out;
	if (has_symtab(symbols->file.elf))
		error = read_table(symbols, symbols->file.elf, SHT_SYMTAB);
	else if (debug_by_build_id(symbols, build_id, build_id_bytes) ||
		 debug_by_link(symbols, path, build_id, build_id_bytes))
		error = read_table(symbols, symbols->debug.elf, SHT_SYMTAB);
	else
		error = read_table(symbols, symbols->file.elf, SHT_DYNSYM);
	result = SYMBOLS_NO_MEMORY;
	if (error)
		goto out;
	read_plt(symbols);
	order_entries(symbols);
	*symbols_out = symbols;
	return SYMBOLS_OK;
out:
	symbols_close(symbols);
	return result;
}

void symbols_close(struct symbols *symbols)
{
	int error = errno;

	if (!symbols)
		return;
	free(symbols->entries);
	close_elf(&symbols->debug);
	close_elf(&symbols->file);
	free(symbols);
	errno = error;
}

const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->count; /* the first that starts behind address */

	for (size_t i = 0; i < symbols->plt_count; i++)
		if (address - symbols->plt[i].start < symbols->plt[i].bytes)
			return &symbols->plt[i];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->entries[middle].symbol.start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Symbols may stand inside others; what reaches to the address bounds the search. */
	for (size_t i = low; i-- && symbols->entries[i].reach > address;)
		if (end_of(&symbols->entries[i].symbol) > address)
			return &symbols->entries[i].symbol;
	return NULL;
}
