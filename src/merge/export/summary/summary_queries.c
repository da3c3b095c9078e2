/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_queries.h"

static const struct summary_query queries[QUERIES] = {
	[QUERY_BUSY] = {"gpu_busy", "SELECT device, span_ns, gpu_busy_ns FROM device_busy;"},
	[QUERY_IDLE] = {"gpu_idle_by_class",
			"SELECT class, gpu_idle_ns FROM idle_by_class ORDER BY gpu_idle_ns DESC;"},
	[QUERY_LONGEST_GAP] = {"longest_gap",
			       "SELECT duration_ns, start_ns, cause, file, line FROM gaps ORDER BY "
			       "duration_ns DESC LIMIT 1;"},
	[QUERY_LINES] =
		{"gpu_time_by_line",
		 "SELECT sum(gpu_time_ns) AS gpu_time_ns, file, line FROM stacks WHERE file IS "
		 "NOT NULL GROUP BY file, line ORDER BY gpu_time_ns DESC LIMIT 8;"},
	[QUERY_FRAMES] = {"gpu_time_by_frame",
			  "SELECT sum(p.gpu_time_ns) AS gpu_time_ns, n.text AS frame FROM path p "
			  "JOIN name n ON n.id = p.own_name_id WHERE p.gpu_time_ns > 0 "
			  "GROUP BY n.id ORDER BY 1 DESC LIMIT 8;"},
	[QUERY_KERNELS] = {"kernels", "SELECT total_ns, percent, name FROM kernels LIMIT 8;"},
};

const struct summary_query *summary_query(enum query query)
{
	return &queries[query];
}
