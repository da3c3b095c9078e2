/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Having others in the process call us where they mean a function of a library. Start-up only; what
 * is changed is our process's copy of two kinds of words and no code.
 *
 * The library's own table of symbols is given the hook's address: whoever looks the name up from
 * then on, the loader for a library that is being loaded or at a lazy first call, or dlsym(), finds
 * the hook. Calls that were bound before go through a word of the calling library: where that
 * word is the function's address, it becomes the hook's.
 */
#ifndef XT_INJECT_SYMBOL_HOOKS_H
#define XT_INJECT_SYMBOL_HOOKS_H

#include <stddef.h>

struct symbol_hook {
	const char *name;
	void *hook;
	void **real_out; /* set to the function before anything is changed; NULL: there is none */
};

/*
 * Hooks functions of an open library. A function that the library does not have is passed over. 0 or
 * -errno; after an error some of them may be hooked, which is of no harm: hooks call the real ones.
 */
int symbol_hooks_install(void *library, const struct symbol_hook *hooks, size_t count);

#endif
