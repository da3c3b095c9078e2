/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes line tables of Python code objects: format, first line, offset, then the table.
 */
#include "python/python_layout.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct feed feed = {data, data + bytes};
	enum python_line_format format = (enum python_line_format)(feed_byte(&feed) % 3);
	uint32_t first_line = (uint32_t)feed_number(&feed);
	int64_t offset = (int64_t)(feed_number(&feed) >> 1) - 4;
	size_t used, table_bytes = (size_t)(feed.end - feed.at);
	uint8_t *table = malloc(table_bytes ? table_bytes : 1);

	if (!table)
		return 0;
	memcpy(table, feed.at, table_bytes);
	python_line(format, table, table_bytes, first_line, offset, &used);
	if (used > table_bytes)
		abort();
	free(table);
	return 0;
}
