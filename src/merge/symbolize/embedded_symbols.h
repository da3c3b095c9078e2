/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols and source lines embedded in the log.
 */
#ifndef XT_MERGE_EMBEDDED_SYMBOLS_H
#define XT_MERGE_EMBEDDED_SYMBOLS_H

#include "merge/read/model.h"

/* Returns the function around an ELF virtual address of a module (by XT_MODULE_ID), or NULL. */
const struct embedded_symbol *embedded_symbol_find(const struct model *model, uint32_t module,
						   uint64_t address);

/* Returns the places at that address, innermost first, and their number. */
const struct embedded_source *embedded_sources_find(const struct model *model, uint32_t module,
						    uint64_t address, uint32_t *count_out);

#endif
