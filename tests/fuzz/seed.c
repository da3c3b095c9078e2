/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed LOG: writes the rows of a log as input for fuzz_write_log(), after the four option bytes of
 * the target "merge". A corpus starts from this.
 */
#include <stdio.h>

#include "log/base/table.h"
#include "xtrace/reader.h"

static void put_number(uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		putchar((int)(value & 0x7f) | 0x80);
	putchar((int)value);
}

static void put_row(const struct xt_chunk *chunk, uint32_t row)
{
	const struct xt_kind_spec *spec = &xt_kind_specs[xt_chunk_kind(chunk)];

	putchar((int)xt_chunk_kind(chunk));
	for (unsigned column = 1; column < XT_TABLE_COLUMNS_MAX; column++) {
		uint8_t encoding = spec->columns[column].encoding;

		if (!spec->columns[column].name)
			continue;
		if (encoding == XT_ENC_BYTES) {
			struct xt_bytes text = xt_chunk_bytes(chunk, column, row);

			put_number(text.length);
			fwrite(text.data, 1, text.length, stdout);
		} else if (encoding == XT_ENC_LIST) {
			uint32_t length;
			const uint64_t *list = xt_chunk_list(chunk, column, row, &length);

			put_number(length);
			for (uint32_t i = 0; i < length; i++)
				put_number(list[i]);
		} else {
			put_number(xt_chunk_u64(chunk, column)[row]);
		}
	}
}

int main(int argc, char **argv)
{
	const struct xt_chunk *chunk;
	struct xt_reader *reader;

	if (argc != 2 || xt_reader_open(argv[1], &reader) != XT_OPEN_OK)
		return 1;
	for (int i = 0; i < 4; i++)
		putchar(0);
	while ((chunk = xt_reader_next(reader, 0)))
		for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++)
			put_row(chunk, row);
	xt_reader_close(reader);
	return 0;
}
