/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up exported symbols in a module's own table. dlsym() would wait for a thread that is
 * loading a library.
 */
#ifndef XT_INJECT_MODULE_SYMBOLS_H
#define XT_INJECT_MODULE_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* From the dynamic section of a module. Valid while the module is loaded. */
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
