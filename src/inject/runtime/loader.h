/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic loader: a lock around queries of it, a watch for libraries that are loaded, symbols
 * of libraries, and hooks on their functions.
 */
#ifndef XT_INJECT_LOADER_H
#define XT_INJECT_LOADER_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/runtime/hot_state.h"

/*
 * The tracer's lock around work that must not be in progress when the program forks. Such work asks
 * the C library for the loaded libraries, or has a file open for a moment.
 *
 * The C library holds its list lock (that of dl_iterate_phdr()) during such a query. A child forked
 * then could never load a library again, and would inherit the open file.
 *
 * Lock order: this lock, then the C library's list lock. The program does not follow this order. A
 * thread may fork or exit while it holds the list lock, in a signal handler that interrupted
 * dlopen(). fork() therefore does not wait for a holder that waits for the list lock.
 *
 * Once, before any other function here. InitializeInjection() calls it.
 */
void loader_lock_begin(void);

/* Takes and release the tracer's lock (see above). Not recursive. */
void loader_lock(void);
void loader_unlock(void);

/* dl_iterate_phdr() under the lock. */
int loader_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

/*
 * Handlers for fork(): before it, then in the parent and in the child. The first does not take the
 * lock if its holder waits for this thread or has been blocked for 0.1 s. The holder does not have
 * the list lock then, so the child is safe. A signal handler that forks while its thread holds the
 * lock keeps it.
 */
void loader_lock_before_fork(void);
void loader_lock_in_parent(void);
void loader_lock_in_child(void);

/*
 * Detects whether another thread is blocked on a lock that the calling thread may hold.
 *
 * A signal handler may interrupt a thread that holds one of the loader's locks, while the writer
 * thread needs that lock. Only the loader knows who holds its locks. So the probe samples the other
 * thread's state: a thread that sleeps in every sample is deadlocked, because these locks are
 * otherwise held only briefly. Initialise to zero.
 */
struct deadlock_probe {
	unsigned turn;
	uint64_t since_ns, sampled_ns;
};

/*
 * Call repeatedly. Returns for how many nanoseconds thread `id` has been asleep in every sample of
 * the same `turn`. `turn` identifies one attempt to take a lock and is not 0. Returns 0 if the
 * thread is running or runnable, cannot be inspected, or if id is 0. Async-signal-safe; no
 * cancellation point; keeps errno.
 */
uint64_t deadlock_probe_blocked_ns(struct deadlock_probe *probe, int id, unsigned turn,
				   uint64_t now_ns);

/*
 * Detects whether a library has been loaded since. Every launch asks this, because a cached stack
 * is void once other code may be at its addresses. That takes an unload and a load, so counting
 * loads is enough.
 *
 * glibc reports its load counter through dl_iterate_phdr(), under a lock. loader_watch_*() finds
 * the counter itself in the loader's exported data. A query is then one memory read. If the counter
 * cannot be found, the writer thread polls the loader every few milliseconds.
 *
 * Start the search for the counter, then narrow it after each load or unload of a library. At
 * start-up, from one thread.
 */
void loader_watch_begin(void);
void loader_watch_narrow(void);

/* Ends the search; true if the counter was found. */
bool loader_watch_end(void);

/*
 * The number of loads, for the writer thread. If the counter was not found, asks the loader and
 * stores the answer for loader_generation().
 */
uint64_t loader_watch_poll(void);

HOT_EXTERN const uint64_t *loader_generation_word;

/* The number of loads so far. Any thread; one memory read. */
static inline uint64_t loader_generation(void)
{
	return __atomic_load_n(__atomic_load_n(&loader_generation_word, __ATOMIC_RELAXED),
			       __ATOMIC_RELAXED);
}

/*
 * The result of glibc's _dl_find_object(), for headers older than glibc 2.35. A build against an
 * older glibc still uses the function if the traced program's glibc has it: callers look it up.
 */
#ifndef DLFO_STRUCT_HAS_EH_DBASE
struct dl_find_object {
	unsigned long long dlfo_flags;
	void *dlfo_map_start; /* of the module's mapping */
	void *dlfo_map_end;
	struct link_map *dlfo_link_map;
	void *dlfo_eh_frame; /* the module's .eh_frame_hdr */
	unsigned long long reserved[7];
};
#endif

/*
 * Redirects calls to a library's functions to our hooks. At start-up only. Changes two kinds of
 * words in this process's memory, and no code:
 * - The library's symbol table gets the hook's address. dlsym(), later loads and lazy first calls
 *   then find the hook.
 * - Words of other libraries that already hold the function's address get the hook's.
 */
struct symbol_hook {
	const char *name;
	void *hook;
	void **real_out; /* set to the real function before any change; NULL: the library lacks it */
};

/*
 * Hooks functions of an open library. Skips functions that the library lacks. 0 or -errno. After an
 * error some functions may be hooked, which is harmless: hooks call the real functions.
 */
int symbol_hooks_install(void *library, const struct symbol_hook *hooks, size_t count);

/*
 * For a hook, before it reads *real_out. The caller loaded the hook's address without an order, and
 * a processor may load *real_out first. Pairs with the release of that address.
 */
static inline void symbol_hook_entered(void)
{
	atomic_thread_fence(memory_order_acquire);
}

/*
 * Exported symbols in a module's own table. dlsym() would wait for a thread that is loading a
 * library.
 *
 * From the dynamic section of a module. Valid while the module is loaded.
 */
struct module_symbols {
	uintptr_t bias;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash; /* DT_GNU_HASH */
};

/* False if the module has no GNU hash table. For callbacks of loader_iterate(). */
bool module_symbols_open(const struct dl_phdr_info *info, struct module_symbols *out);

/* NULL if the module does not define it. Its address is bias + st_value. */
const ElfW(Sym) * module_symbols_find(const struct module_symbols *module, const char *name);

/* The address of a symbol, or 0. */
uintptr_t module_symbols_address(const struct module_symbols *module, const char *name);

/* Reads the areas that this process has mapped. */
struct loader_maps {
	int fd;
	size_t begin, end;   /* part of the text not returned yet */
	char text[2 * 4352]; /* of lines with a path of 4 KiB */
};

/*
 * Finds the line of /proc/thread-self/maps with an address: stores its text behind the addresses,
 * which is valid while *maps is. 0, -EFAULT if nothing is mapped there, or -errno. Calls no
 * malloc(): another thread may hold its lock while it waits for the loader's.
 */
int loader_find_mapping(struct loader_maps *maps, uintptr_t address, char **text_out);

/*
 * Reads a small file and ends it with a 0. Returns its length, 0 on an error. Under the loader
 * lock: a child forked meanwhile would inherit the descriptor.
 */
size_t loader_read_file(const char *path, char *out, size_t out_bytes);

#endif
