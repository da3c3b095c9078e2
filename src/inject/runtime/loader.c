/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock is an atomic word instead of a pthread mutex, so that even a signal handler that
 * interrupted loader_lock() knows the holder. Two threads compete for it only when the program
 * forks.
 *
 * glibc offers no way to ask who holds its list lock. That lock is a recursive mutex in the
 * loader's exported data. It is found at start-up as the only mutex that this thread holds once
 * inside dl_iterate_phdr() and twice inside a nested call.
 *
 * glibc's load counter is found by elimination: among the words of the loader's data, those are
 * kept that equal the count both before and after it changes. At start-up.
 *
 * Hooks change symbol tables and bound words. They are installed once, in the thread that calls
 * InitializeInjection().
 */
#include "inject/runtime/loader.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/machine.h"

#define SAMPLE_PERIOD_NS UINT64_C(2000000)

static char *put_number(char *end, unsigned number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

/* Reads the thread's state from /proc. Uses little stack. */
static bool is_sleeping(int id)
{
	static const char folder[] = "/proc/self/task/", file[] = "/stat";
	char path[48], text[64], *begin = path + sizeof(path) - sizeof(file);
	const char *state;
	long fd, bytes;

	memcpy(begin, file, sizeof(file));
	begin = put_number(begin, (unsigned)id) - (sizeof(folder) - 1);
	memcpy(begin, folder, sizeof(folder) - 1);
	fd = syscall(SYS_openat, AT_FDCWD, begin, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	state = strrchr(text, ')'); /* the name in parentheses may contain anything */
	return state && state[1] == ' ' && state[2] == 'S';
}

uint64_t deadlock_probe_blocked_ns(struct deadlock_probe *probe, int id, unsigned turn,
				   uint64_t now_ns)
{
	int saved_errno = errno;
	bool is_blocked;

	if (turn == probe->turn && now_ns - probe->sampled_ns < SAMPLE_PERIOD_NS)
		return 0;
	probe->sampled_ns = now_ns;
	is_blocked = id && turn == probe->turn && is_sleeping(id);
	errno = saved_errno;
	if (is_blocked)
		return now_ns - probe->since_ns;
	probe->turn = turn;
	probe->since_ns = now_ns;
	return 0;
}

#define RETRY_NS	100000
#define FORK_BLOCKED_NS UINT64_C(100000000)
#define FORK_TIMEOUT_NS UINT64_C(2000000000) /* if the probe sees no deadlock */

static struct {
	_Atomic(pthread_t)
		holder;	       /* 0: none. Unlike a thread id, it is the same in a forked child */
	atomic_int holder_id;  /* 0: not known yet */
	atomic_uint turn;      /* counts the times that it was taken */
	atomic_bool by_fork;   /* the holder is forking */
	atomic_bool iterating; /* the holder has the list lock or waits for it */
} lock;

static const pthread_mutex_t *list_lock; /* NULL: not found */

/*
 * Returns the loader's exported data; *bytes_out is 0 if there is none. Takes the loader's own
 * lock.
 */
static const void *loader_data(size_t *bytes_out)
{
	const ElfW(Sym) *symbol = NULL;
	const void *data = dlsym(RTLD_DEFAULT, "_rtld_global");
	Dl_info info;

	*bytes_out = 0;
	if (!data || !dladdr1(data, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return NULL;
	*bytes_out = symbol->st_size;
	return data;
}

static int thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

static bool is_held_here(const pthread_mutex_t *mutex, int id)
{
	return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == id;
}

struct search {
	const char *data; /* the loader's exported data */
	size_t data_bytes;
	unsigned depth, found_count;
	const pthread_mutex_t *found;
};

static int find_list_lock(struct dl_phdr_info *info, size_t info_bytes, void *out)
{
	struct search *search = out;
	int id = thread_id();

	(void)info, (void)info_bytes;
	if (!search->depth++) {
		dl_iterate_phdr(find_list_lock, search);
		return 1;
	}
	for (size_t i = 0; i + sizeof(pthread_mutex_t) <= search->data_bytes; i += sizeof(void *)) {
		const pthread_mutex_t *mutex = (const void *)(search->data + i);

		if (mutex->__data.__kind != PTHREAD_MUTEX_RECURSIVE_NP ||
		    mutex->__data.__count != search->depth || !is_held_here(mutex, id))
			continue;
		search->found = mutex;
		search->found_count++;
	}
	return 1;
}

void loader_lock_begin(void)
{
	struct search search = {0};

	search.data = loader_data(&search.data_bytes);
	dl_iterate_phdr(find_list_lock, &search);
	if (search.found_count == 1 && !is_held_here(search.found, thread_id()))
		list_lock = search.found;
}

static bool try_lock(void)
{
	pthread_t none = 0;

	if (!atomic_compare_exchange_strong(&lock.holder, &none, pthread_self()))
		return false;
	atomic_fetch_add(&lock.turn, 1);
	atomic_store(&lock.holder_id, thread_id());
	return true;
}

void loader_lock(void)
{
	while (!try_lock())
		xt_sleep_ns(RETRY_NS);
}

void loader_unlock(void)
{
	atomic_store(&lock.holder_id, 0);
	atomic_store(&lock.holder, 0);
}

int loader_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int result;

	loader_lock();
	atomic_store(&lock.iterating, true);
	result = dl_iterate_phdr(callback, data);
	atomic_store(&lock.iterating, false);
	loader_unlock();
	return result;
}

/* Whether the holder waits for the calling thread. */
static bool is_blocking_holder(struct deadlock_probe *probe, uint64_t now_ns)
{
	if (list_lock && atomic_load(&lock.iterating) && is_held_here(list_lock, thread_id()))
		return true;
	return deadlock_probe_blocked_ns(probe, atomic_load(&lock.holder_id),
					 atomic_load(&lock.turn), now_ns) >= FORK_BLOCKED_NS;
}

void loader_lock_before_fork(void)
{
	uint64_t now_ns = monotonic_ns(), deadline_ns = now_ns + FORK_TIMEOUT_NS;
	struct deadlock_probe probe = {0};

	if (atomic_load(&lock.holder) == pthread_self())
		return;
	for (; !try_lock(); now_ns = monotonic_ns()) {
		if (now_ns >= deadline_ns || is_blocking_holder(&probe, now_ns))
			return;
		xt_sleep_ns(RETRY_NS);
	}
	atomic_store(&lock.by_fork, true);
}

static bool is_held_by_this_fork(void)
{
	return atomic_load(&lock.holder) == pthread_self() && atomic_load(&lock.by_fork);
}

void loader_lock_in_parent(void)
{
	if (!is_held_by_this_fork())
		return;
	atomic_store(&lock.by_fork, false);
	loader_unlock();
}

void loader_lock_in_child(void)
{
	bool is_kept = atomic_load(&lock.holder) == pthread_self() && !is_held_by_this_fork();

	atomic_store(&lock.by_fork, false);
	if (is_kept)
		return;
	/* The holder was a thread that the child does not have. */
	atomic_store(&lock.iterating, false);
	loader_unlock();
}

#define CANDIDATES_MAX 64

static uint64_t polled_generation;
HOT_STATE const uint64_t *loader_generation_word = &polled_generation;

static struct {
	const uint64_t *words[CANDIDATES_MAX];
	unsigned count;
	uint64_t first_adds;
	uint64_t last_adds;
	bool saw_unload; /* then the counter cannot be the number of loaded libraries */
} watch;

struct load_counts {
	uint64_t adds;
	uint64_t subs;
};

static int read_counts(struct dl_phdr_info *info, size_t info_bytes, void *out)
{
	struct load_counts *counts = out;

	if (info_bytes < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		return 1;
	counts->adds = info->dlpi_adds;
	counts->subs = info->dlpi_subs;
	return 1;
}

static struct load_counts load_counts(void)
{
	struct load_counts counts = {0, 0};

	loader_iterate(read_counts, &counts);
	return counts;
}

void loader_watch_begin(void)
{
	struct load_counts counts = load_counts();
	size_t bytes;
	const uint64_t *words = loader_data(&bytes);

	watch.count = 0;
	watch.first_adds = watch.last_adds = counts.adds;
	for (size_t i = 0; i < bytes / sizeof(*words); i++) {
		if (words[i] != counts.adds)
			continue;
		if (watch.count == CANDIDATES_MAX) {
			watch.count = 0;
			return;
		}
		watch.words[watch.count++] = &words[i];
	}
}

void loader_watch_narrow(void)
{
	struct load_counts counts = load_counts();
	unsigned kept = 0;

	for (unsigned i = 0; i < watch.count; i++)
		if (*watch.words[i] == counts.adds)
			watch.words[kept++] = watch.words[i];
	watch.count = kept;
	watch.last_adds = counts.adds;
	if (counts.subs)
		watch.saw_unload = true;
}

bool loader_watch_end(void)
{
	bool moved = watch.last_adds != watch.first_adds;

	loader_watch_poll();
	if (watch.count != 1 || !moved || !watch.saw_unload)
		return false;
	__atomic_store_n(&loader_generation_word, watch.words[0], __ATOMIC_RELAXED);
	return true;
}

uint64_t loader_watch_poll(void)
{
	struct load_counts counts;

	if (loader_generation_word != &polled_generation)
		return loader_generation();
	counts = load_counts();
	__atomic_store_n(&polled_generation, counts.adds, __ATOMIC_RELAXED);
	return counts.adds;
}

size_t loader_read_file(const char *path, char *out, size_t out_bytes)
{
	size_t length = 0;
	ssize_t n;
	int fd;

	loader_lock();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && length + 1 < out_bytes &&
	       (n = read(fd, out + length, out_bytes - length - 1)) > 0)
		length += (size_t)n;
	if (fd >= 0)
		close(fd);
	loader_unlock();
	out[length] = '\0';
	return length;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (uint8_t)*name++;
	return h;
}

const ElfW(Sym) * module_symbols_find(const struct module_symbols *module, const char *name)
{
	const uint32_t *table = module->hash;
	uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(*table));
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash(name), at = bucket_count ? buckets[hash % bucket_count] : 0;

	if (at < first)
		return NULL;
	for (;; at++) {
		const ElfW(Sym) *symbol = &module->symbols[at];

		if ((chain[at - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
		    !strcmp(module->strings + symbol->st_name, name))
			return symbol;
		if (chain[at - first] & 1)
			return NULL;
	}
}

uintptr_t module_symbols_address(const struct module_symbols *module, const char *name)
{
	const ElfW(Sym) *symbol = module_symbols_find(module, name);

	return symbol ? module->bias + symbol->st_value : 0;
}

/* The dynamic section of a loaded library. */
struct dynamic {
	struct module_symbols module;
	size_t hashed_count;		   /* of DT_HASH; 0: none */
	const ElfW(Rela) * relocations[2]; /* of data and of calls */
	size_t relocation_counts[2];
};

/* The loader may leave an address relative to the file; then add the bias. */
static const void *table_at(const struct dynamic *dynamic, ElfW(Addr) address)
{
	uintptr_t bias = dynamic->module.bias;

	return (const void *)(address < bias ? address + bias : address);
}

/* The number of symbols according to a DT_GNU_HASH table: one past the highest in a chain. */
static size_t count_by_gnu_hash(const uint32_t *hash)
{
	const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(*hash));
	const uint32_t *chains = buckets + hash[0];
	uint32_t last = 0;

	for (uint32_t i = 0; i < hash[0]; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < hash[1])
		return 0;
	while (!(chains[last - hash[1]] & 1))
		last++;
	return last + 1;
}

static void read_dynamic(struct dynamic *out, ElfW(Addr) bias, const ElfW(Dyn) * entry)
{
	size_t relative_count = 0;

	*out = (struct dynamic){.module.bias = bias};
	for (; entry->d_tag != DT_NULL; entry++) {
		const void *table = table_at(out, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			out->module.symbols = table;
			break;
		case DT_STRTAB:
			out->module.strings = table;
			break;
		case DT_HASH:
			out->hashed_count = ((const uint32_t *)table)[1];
			break;
		case DT_GNU_HASH:
			out->module.hash = table;
			break;
		case DT_RELA:
			out->relocations[0] = table;
			break;
		case DT_RELASZ:
			out->relocation_counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELACOUNT: /* these come first and have no symbol */
			relative_count = entry->d_un.d_val;
			break;
		case DT_JMPREL:
			out->relocations[1] = table;
			break;
		case DT_PLTRELSZ:
			out->relocation_counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		default:
			break;
		}
	}
	if (out->relocations[0] && relative_count <= out->relocation_counts[0]) {
		out->relocations[0] += relative_count;
		out->relocation_counts[0] -= relative_count;
	}
}

/* The dynamic section of a module; NULL if it has none. */
static const ElfW(Dyn) * dynamic_entries(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

bool module_symbols_open(const struct dl_phdr_info *info, struct module_symbols *module)
{
	const ElfW(Dyn) *entries = dynamic_entries(info);
	struct dynamic dynamic;

	if (!entries)
		return false;
	read_dynamic(&dynamic, info->dlpi_addr, entries);
	*module = dynamic.module;
	return module->symbols && module->strings && module->hash;
}

/*
 * The number of symbols; 0: unknown. imports_out: imports are among the first so many. Symbols in
 * the GNU hash table follow all others. An empty table gives no count.
 */
static size_t count_symbols(const struct dynamic *dynamic, size_t *imports_out)
{
	const uint32_t *hash = dynamic->module.hash;
	size_t count = hash ? count_by_gnu_hash(hash) : 0;

	*imports_out = count ? hash[1] : dynamic->hashed_count;
	return dynamic->hashed_count ? dynamic->hashed_count : count;
}

/* The next line without its end; NULL after the last. Valid until the next call. */
static char *next_line(struct loader_maps *maps)
{
	char *line = maps->text + maps->begin, *end;
	ssize_t n = 1;

	while (!(end = memchr(line, '\n', maps->end - maps->begin)) && n > 0) {
		memmove(maps->text, line, maps->end - maps->begin);
		maps->end -= maps->begin;
		maps->begin = 0;
		line = maps->text;
		do
			n = read(maps->fd, maps->text + maps->end, sizeof(maps->text) - maps->end);
		while (n < 0 && errno == EINTR);
		maps->end += n > 0 ? (size_t)n : 0;
	}
	if (!end)
		return NULL;
	*end = '\0';
	maps->begin = (size_t)(end + 1 - maps->text);
	return line;
}

int loader_find_mapping(struct loader_maps *maps, uintptr_t address, char **text_out)
{
	int error = -EFAULT;
	char *line, *end;

	maps->begin = maps->end = 0;
	maps->fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	if (maps->fd < 0)
		return -errno;
	while (error && (line = next_line(maps)) && strtoull(line, &end, 16) <= address)
		if (*end == '-' && strtoull(end + 1, &end, 16) > address) {
			*text_out = end + 1;
			error = 0;
		}
	close(maps->fd);
	return error;
}

/* The protection of the page at an address as PROT_* bits, or -errno. */
static int protection_of(uintptr_t address)
{
	static struct loader_maps maps; /* too large for a stack */
	char *text;
	int error = loader_find_mapping(&maps, address, &text);

	if (error)
		return error;
	return (text[0] == 'r' ? PROT_READ : 0) | (text[1] == 'w' ? PROT_WRITE : 0) |
	       (text[2] == 'x' ? PROT_EXEC : 0);
}

/*
 * Writes a word and keeps its page's protection. A writable page stays writable: the loader, in
 * another thread, may be about to write there. If the loader revokes that right at this moment, the
 * page stays writable, which is harmless.
 */
static int write_word(uintptr_t *word, uintptr_t value)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)word & ~(page_bytes - 1));
	int protection = protection_of((uintptr_t)word);

	if (protection < 0)
		return protection;
	/* An aligned word does not cross pages. */
	if (mprotect(page, page_bytes, protection | PROT_WRITE))
		return -errno;
	/* Pairs with symbol_hook_entered(). */
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (!(protection & PROT_WRITE) && mprotect(page, page_bytes, protection))
		return -errno;
	return 0;
}

static int change_symbol(const struct module_symbols *library, size_t count,
			 const struct symbol_hook *hook)
{
	uintptr_t real = (uintptr_t)*hook->real_out;

	for (size_t i = 0; i < count; i++) {
		const ElfW(Sym) *symbol = &library->symbols[i];

		if (symbol->st_shndx == SHN_UNDEF || library->bias + symbol->st_value != real ||
		    ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
		    strcmp(library->strings + symbol->st_name, hook->name) != 0)
			continue;
		return write_word((uintptr_t *)&symbol->st_value,
				  (uintptr_t)hook->hook - library->bias);
	}
	return -ENOENT;
}

struct rebinding {
	const struct symbol_hook *hooks;
	size_t count;
	int rc;
};

/*
 * Whether a library may import one of the functions. The hash table of a program may also contain
 * imports: functions whose address it takes.
 */
static bool imports_any(const struct dynamic *dynamic, const struct rebinding *rebinding,
			bool is_program)
{
	const struct module_symbols *module = &dynamic->module;
	size_t import_count, count = count_symbols(dynamic, &import_count);

	if (!is_program)
		count = import_count;
	if (!module->symbols || !module->strings || !count)
		return true;
	for (size_t i = 1; i < count; i++)
		for (size_t h = 0; h < rebinding->count; h++)
			if (module->symbols[i].st_shndx == SHN_UNDEF &&
			    !strcmp(module->strings + module->symbols[i].st_name,
				    rebinding->hooks[h].name))
				return true;
	return false;
}

static bool is_writable(const struct dl_phdr_info *info, const void *address)
{
	uintptr_t at = (uintptr_t)address - info->dlpi_addr;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_W &&
		    at >= info->dlpi_phdr[i].p_vaddr &&
		    at - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int rebind(const struct dl_phdr_info *info, const ElfW(Rela) * relocation,
		  const struct rebinding *rebinding)
{
	uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
	uintptr_t *word = (uintptr_t *)(info->dlpi_addr + relocation->r_offset);

	if (type != MACHINE_RELOCATION_CALL && type != MACHINE_RELOCATION_GOT &&
	    type != MACHINE_RELOCATION_ADDRESS)
		return 0;
	if (!is_writable(info, word))
		return 0;
	for (size_t i = 0; i < rebinding->count; i++)
		if (*rebinding->hooks[i].real_out &&
		    *word == (uintptr_t)*rebinding->hooks[i].real_out)
			return write_word(word, (uintptr_t)rebinding->hooks[i].hook);
	return 0;
}

static int rebind_library(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	const ElfW(Dyn) *entries = dynamic_entries(info);
	struct rebinding *rebinding = arg;
	struct dynamic dynamic;

	(void)info_bytes;
	if (!entries)
		return 0;
	read_dynamic(&dynamic, info->dlpi_addr, entries);
	if (!imports_any(&dynamic, rebinding, !info->dlpi_name[0]))
		return 0;
	for (int table = 0; table < 2; table++)
		for (size_t r = 0; r < dynamic.relocation_counts[table]; r++) {
			int rc = rebind(info, &dynamic.relocations[table][r], rebinding);

			if (rc)
				rebinding->rc = rc;
		}
	return 0;
}

int symbol_hooks_install(void *library, const struct symbol_hook *hooks, size_t count)
{
	struct rebinding rebinding = {hooks, count, 0};
	size_t symbol_count, import_count;
	struct link_map *map = NULL;
	struct dynamic dynamic;

	if (dlinfo(library, RTLD_DI_LINKMAP, &map) || !map)
		return -EINVAL;
	read_dynamic(&dynamic, map->l_addr, map->l_ld);
	symbol_count = count_symbols(&dynamic, &import_count);
	if (!dynamic.module.symbols || !dynamic.module.strings || !symbol_count)
		return -ENOEXEC;
	for (size_t i = 0; i < count; i++)
		*hooks[i].real_out = dlsym(library, hooks[i].name);
	for (size_t i = 0; i < count; i++) {
		int rc = *hooks[i].real_out
				 ? change_symbol(&dynamic.module, symbol_count, &hooks[i])
				 : 0;

		if (rc)
			return rc;
	}
	loader_iterate(rebind_library, &rebinding);
	return rebinding.rc;
}
