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

#include <stdatomic.h>
#include <stddef.h>

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

#endif
