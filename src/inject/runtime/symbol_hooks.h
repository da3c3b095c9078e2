/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirects calls to a library's functions to our hooks. At start-up only. Changes two kinds of
 * words in this process's memory, and no code:
 * - The library's symbol table gets the hook's address. dlsym(), later loads and lazy first calls
 *   then find the hook.
 * - Words of other libraries that already hold the function's address get the hook's.
 */
#ifndef XT_INJECT_SYMBOL_HOOKS_H
#define XT_INJECT_SYMBOL_HOOKS_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
