/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches the tables of embedded symbols.
 */
#include "merge/symbolize/embedded_symbols.h"

#include "log/base/compare.h"

#define NESTING_MAX 64 /* limit of the backward search for an enclosing function */

const struct embedded_symbol *embedded_symbol_find(const struct model *model, uint32_t module,
						   uint64_t address)
{
	const struct embedded_symbol *symbols = model->symbols.rows;
	size_t low = FIRST_NOT(i, 1, model->symbols.count,
			       symbols[i].module < module || (symbols[i].module == module &&
							      symbols[i].start <= address));

	for (size_t i = low; --i && low - i <= NESTING_MAX;)
		if (symbols[i].module != module)
			return NULL;
		else if (address - symbols[i].start < symbols[i].bytes)
			return &symbols[i];
	return NULL;
}

const struct embedded_source *embedded_sources_find(const struct model *model, uint32_t module,
						    uint64_t address, uint32_t *count_out)
{
	const struct embedded_source *sources = model->sources.rows;
	size_t end, low = FIRST_NOT(i, 1, model->sources.count,
				    sources[i].module < module || (sources[i].module == module &&
								   sources[i].address < address));

	for (end = low; end < model->sources.count; end++)
		if (sources[end].module != module || sources[end].address != address)
			break;
	*count_out = (uint32_t)(end - low);
	return sources + low;
}
