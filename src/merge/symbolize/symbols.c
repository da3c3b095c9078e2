/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of ELF files: symbol tables, search by address.
 */
#include "merge/symbolize/symbols.h"

#include "merge/base/grow.h"
#include "merge/symbolize/elf_file.h"
#include "merge/symbolize/mini_debug.h"

#define PLT_SECTIONS_MAX 4

struct entry {
	struct symbol symbol;
	uint64_t reach; /* the largest end of all symbols up to here */
	uint32_t rank;	/* among symbols with the same start, the largest is taken */
};

struct symbols {
	struct elf_file file;
	struct elf_file debug;
	struct mini_debug mini;
	struct entry *entries; /* by start, one for each */
	size_t count;
	size_t capacity;
	struct symbol plt[PLT_SECTIONS_MAX];
	size_t plt_count;
};

/*
 * Whether the symbol is code, and its worth: aliases of one function are many (weak, internal,
 * versioned), and the name that a reader knows is the global one without underscores.
 */
static uint32_t rank_of(Elf *elf, const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	unsigned binding = GELF_ST_BIND(symbol->st_info);
	uint32_t rank = 1;

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
		rank += 32;
	}
	rank += symbol->st_size ? 16 : 0;
	rank += binding == STB_GLOBAL ? 8 : binding == STB_WEAK ? 4 : 0;
	rank += name[0] != '_' ? 2 : name[1] != '_' ? 1 : 0;
	return rank;
}

static int read_table(struct symbols *symbols, const struct elf_file *file, uint32_t type)
{
	Elf *elf = file->elf;
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(file, type, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t count = data && header.sh_entsize ? data->d_size / header.sh_entsize : 0;

	for (size_t i = 1; i < count && i < INT32_MAX; i++) {
		GElf_Sym symbol;
		const char *name;
		uint32_t rank;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		name = elf_strptr(elf, header.sh_link, symbol.st_name);
		rank = name ? rank_of(elf, &symbol, name) : 0;
		if (!rank)
			continue;
		if (grow(&symbols->entries, &symbols->capacity, symbols->count + 1,
			 sizeof(*symbols->entries)) < 0)
			return -ENOMEM;
		symbols->entries[symbols->count++] = (struct entry){
			.symbol = {symbol.st_value, symbol.st_size, name}, .rank = rank};
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
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->symbol.name, y->symbol.name);
}

static uint64_t end_of(const struct symbol *symbol)
{
	uint64_t end = symbol->start + symbol->bytes;

	return end < symbol->start ? UINT64_MAX : end;
}

/* Sorts, keeps one name for each address, and lets those without a size reach to the next. */
static void sort_entries(struct symbols *symbols)
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

/* What the file lacks may be in a debug file; one that has but one of the two will do. */
static int read_symbols(struct symbols *symbols, const char *path, const void *build_id,
			size_t build_id_bytes, struct debug_search *search)
{
	const struct elf_file *file = &symbols->file, *debug = &symbols->debug;

	if (!elf_file_has_symtab(file) || !elf_file_has_debug_info(file))
		debug_files_find(search, file, path, build_id, build_id_bytes, &symbols->debug);
	if (elf_file_has_symtab(file))
		return read_table(symbols, file, SHT_SYMTAB);
	if (debug->elf && elf_file_has_symtab(debug))
		return read_table(symbols, debug, SHT_SYMTAB);
	if (mini_debug_open(&symbols->mini, file) &&
	    read_table(symbols, &symbols->mini.file, SHT_SYMTAB) < 0)
		return -ENOMEM;
	return read_table(symbols, file, SHT_DYNSYM);
}

enum symbols_result symbols_open(const char *path, const void *build_id, size_t build_id_bytes,
				 struct debug_search *search, struct symbols **symbols_out)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	enum symbols_result result = SYMBOLS_NO_MEMORY;

	*symbols_out = NULL;
	if (!symbols)
		return SYMBOLS_NO_MEMORY;
	symbols->file = symbols->debug = symbols->mini.file = ELF_FILE_NONE;
	result = SYMBOLS_NO_FILE;
	if (!elf_file_open(&symbols->file, path))
		goto out;
	result = SYMBOLS_NOT_ELF;
	if (!elf_file_is_elf(&symbols->file))
		goto out;
	result = SYMBOLS_OTHER_BUILD;
	if (!elf_file_has_build_id(&symbols->file, build_id, build_id_bytes))
		goto out;
	result = SYMBOLS_NO_MEMORY;
	if (read_symbols(symbols, path, build_id, build_id_bytes, search) < 0)
		goto out;
	read_plt(symbols);
	sort_entries(symbols);
	*symbols_out = symbols;
	return SYMBOLS_OK;
out:
	symbols_close(symbols);
	return result;
}

const struct elf_file *symbols_debug_file(const struct symbols *symbols)
{
	if (elf_file_has_debug_info(&symbols->file))
		return &symbols->file;
	return symbols->debug.elf && elf_file_has_debug_info(&symbols->debug) ? &symbols->debug
									      : NULL;
}

bool symbols_damaged(const struct symbols *symbols)
{
	return symbols->mini.is_damaged;
}

uint64_t symbols_bytes(const struct symbols *symbols, bool has_debug_info)
{
	const struct elf_file *debug = has_debug_info ? symbols_debug_file(symbols) : NULL;
	uint64_t bytes = sizeof(*symbols) + symbols->capacity * sizeof(*symbols->entries);
	size_t file_bytes = 0;

	/* (What libdw reads of it is not known; it is seldom more than the file.) */
	if (debug && elf_rawfile(debug->elf, &file_bytes))
		bytes += file_bytes;
	return bytes;
}

void symbols_close(struct symbols *symbols)
{
	int error = errno;

	if (!symbols)
		return;
	free(symbols->entries);
	mini_debug_close(&symbols->mini);
	elf_file_close(&symbols->debug);
	elf_file_close(&symbols->file);
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
