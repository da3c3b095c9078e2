/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols and places that are in the log itself.
 */
#ifndef XT_MERGE_EMBEDDED_SYMBOLS_H
#define XT_MERGE_EMBEDDED_SYMBOLS_H

#include "merge/read/model.h"

/* The function around an ELF virtual address of a module (by XT_MODULE_ID), or NULL. */
const struct embedded_symbol *embedded_symbol_find(const struct model *model, uint32_t module,
						   uint64_t address);

/* The places at that address, innermost first, and their number. */
const struct embedded_source *embedded_sources_find(const struct model *model, uint32_t module,
						    uint64_t address, uint32_t *count_out);

#endif
