/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the merge and its exporters. The input is an exporter and its options (four bytes), then
 * the rows of a log. The last option can add a CPU log of the same process with the same rows.
 */
#include "merging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *logs[2];
	struct feed feed = {data, data + bytes}, rows;
	struct merge_choice choice = merge_choose(&feed);
	size_t count = choice.top & MERGE_MANY_LOGS ? 2 : 1;

	if (!logs[0]) {
		logs[0] = fuzz_path("one.xtr");
		logs[1] = fuzz_path("one.cpu.xtr");
	}
	rows = feed;
	fuzz_write_log(logs[0], &feed);
	if (count == 2)
		fuzz_write_cpu_log(logs[1], &rows);
	merge_logs(choice, logs, count);
	return 0;
}
