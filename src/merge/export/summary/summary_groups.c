/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary/summary_text.h"

static const struct column columns[] = {{"waits", 12, 0, false}};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* "all 4 ranks: data parallel (called by …); AllReduce 120" */
static char *row_text(const struct run *run, const struct process_group *group)
{
	char *ranks = process_group_text(run, group);
	char *operations = process_group_operations_text(group), *text;
	bool is_known = group->use != GROUP_USE_UNKNOWN;
	int length = -1;

	if (ranks && operations)
		length = asprintf(&text, "%s%s%s%s%s%s; %s", ranks, is_known ? "; " : "",
				  is_known ? group_use_names[group->use] : "", is_known ? " (" : "",
				  group->evidence, is_known ? ")" : "", operations);
	free(ranks);
	free(operations);
	return length < 0 ? NULL : text;
}

static int put_row(struct output *out, const struct run *run, const struct process_group *group)
{
	char time[TIME_BYTES], *text = row_text(run, group);
	const char *figures[COLUMNS] = {time};

	if (!text)
		return -ENOMEM;
	format_time(time, group->wait_ns);
	put_figures(out, columns, COLUMNS, figures);
	put_words(out, text, 0, column_of(out), out->columns ? out->columns : SIZE_MAX);
	output_text(out, "\n", 1);
	free(text);
	return 0;
}

int summary_put_process_groups(struct sink *sink, const struct run *run)
{
	const struct process_groups *groups = &run->collectives_report.process_groups;
	size_t shown = rows_to_show(groups->count, sink->settings);
	int error = 0;

	if (!groups->count)
		return 0;
	put_top_title(&sink->out, "Process groups", shown, groups->count);
	put_heads(&sink->out, columns, COLUMNS, "ranks, use and calls of each rank");
	for (size_t g = 0; g < shown && !error; g++)
		error = put_row(&sink->out, run, &groups->list[g]);
	return error;
}

static int put_group_json(struct json *json, const struct run *run,
			  const struct process_group *group)
{
	const struct communicators *communicators = &run->collectives_report.communicators;
	char *ranks = process_group_text(run, group), name[32];

	if (!ranks)
		return -ENOMEM;
	json_begin_object(json, NULL);
	json_string(json, "name", ranks);
	json_string(json, "layout", group_layout_names[group->layout]);
	json_u64(json, "count", group->communicator_count);
	json_u64(json, "size", group->size);
	if (group->stride)
		json_u64(json, "stride", group->stride);
	json_string(json, "use", group_use_names[group->use]);
	json_string(json, "evidence", group->evidence);
	json_u64(json, "wait_ns", group->wait_ns);
	json_u64(json, "backward_count", group->backward_count);
	json_begin_object(json, "operations");
	for (size_t o = 0; o < COLLECTIVE_OPERATIONS; o++)
		if (group->counts[o])
			json_u64(json, collective_operation_names[o], group->counts[o]);
	json_end_object(json);
	json_begin_array(json, "communicators");
	for (size_t c = 0; c < group->communicator_count; c++) {
		communicator_name(&communicators->list[group->communicators[c]], name,
				  sizeof(name));
		json_string(json, NULL, name);
	}
	json_end_array(json);
	json_end_object(json);
	free(ranks);
	return 0;
}

int put_process_groups_json(struct json *json, const struct run *run)
{
	const struct process_groups *groups = &run->collectives_report.process_groups;
	int error = 0;

	json_begin_array(json, "process_groups");
	for (size_t g = 0; g < groups->count && !error; g++)
		error = put_group_json(json, run, &groups->list[g]);
	json_end_array(json);
	return error;
}
