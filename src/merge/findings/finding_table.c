/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of findings.
 */
#include "merge/findings/conclusions.h"
#include <stdlib.h>

#include "base/json.h"
#include "merge/findings/finding_place.h"
#include "merge/findings/rules.h"
#include "merge/sums/run.h"
#include "merge/sums/settings.h"
#include "merge/tables/table.h"
#include "merge/sums/cpu_logs.h"

static const struct column_def columns[] = {
	COLUMN("rule", WORD, OTHER, "rule that found it"),
	COLUMN("severity", WORD, OTHER, "error, high, medium or low"),
	COLUMN("cost_ns", NS, FROM(finding, cost_ns), "time that could be saved"),
	COLUMN("whole_ns", NS, FROM(finding, whole_ns), "time that the cost is a part of"),
	COLUMN("process_count", COUNT, FROM(finding, process_count), "processes that have it"),
	COLUMN("process", TEXT, OTHER, "one of them, with the evidence and the places"),
	COLUMN("id", TEXT, OTHER, "rule and place, the same in every run"),
	COLUMN("where", TEXT, OTHER, "function and line"),
	COLUMN("what", TEXT, OTHER, "what was found"),
	COLUMN("advice", TEXT, OTHER, "what to try"),
	COLUMN("whole", TEXT, OTHER, "what `whole_ns` is, as in `active time`"),
	COLUMN("estimate", TEXT, OTHER, "how the cost was estimated"),
};

static void open_rows(struct table_rows *rows)
{
	const struct findings *findings = &rows->run->found->findings;

	table_records(rows, findings->list, findings->count);
}

static void put_row(struct table_rows *rows, struct cells *cells)
{
	const struct finding *finding = rows->record;
	const struct paths *paths = &rows->run->paths;

	cells_put(cells, cell_text(rule_specs[finding->rule].name));
	cells_put(cells, cell_text(finding_severity(finding)));
	cells_put(cells, cell_text(finding->process));
	cells_put(cells, cell_owned(rows, finding_id(paths, finding)));
	cells_put(cells, cell_owned(rows, finding_location(paths, finding)));
	cells_put(cells, cell_text(finding->what));
	cells_put(cells, cell_text(finding->advice));
	cells_put(cells, cell_text(finding_whole_text(finding)));
	cells_put(cells, cell_text(rule_specs[finding->rule].estimate));
}

static void put_name(struct json *json, const char *key, const struct run *run, uint32_t name)
{
	size_t length;
	const char *text = names_text(&run->paths.names, name, &length);

	json_text(json, key, text, length);
}

static void put_line(struct json *json, const struct run *run, uint32_t file, uint32_t line)
{
	if (file == NAME_EMPTY || !line)
		return;
	put_name(json, "file", run, file);
	json_u64(json, "line", line);
}

/* Writes the exact path in the tree, so that the page can find its node. */
static void put_path_names(struct json *json, const struct run *run, uint32_t node)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(&run->paths, node, &chain, &capacity);

	json_begin_array(json, "frames");
	for (int d = 0; d < depth; d++)
		put_name(json, NULL, run, run->paths.nodes[chain[d]].name);
	json_end_array(json);
	free(chain);
}

static void put_place(struct json *json, const struct run *run, const struct finding_place *place)
{
	json_begin_object(json, NULL);
	json_u64(json, "cost_ns", place->cost_ns);
	json_u64(json, "path_cost_ns", place->path_cost_ns);
	json_u64(json, "count", place->count);
	put_name(json, "call", run, place->api);
	put_name(json, "function", run, place->function);
	put_line(json, run, place->file, place->line);
	put_path_names(json, run, place->node);
	json_begin_array(json, "lines");
	for (size_t f = 0; f < place->frame_count; f++) {
		json_begin_object(json, NULL);
		put_name(json, "function", run, place->frames[f].name);
		put_line(json, run, place->frames[f].file, place->frames[f].line);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

static void put_rule_count(struct json *json, const struct run *run)
{
	uint64_t rule_count = 0;

	for (int rule = 0; rule < RULES; rule++)
		rule_count += run->settings->finding_shares[rule] >= 0 &&
			      (rule < RULE_CPU_FIRST || run->cpu->facts.process_count);
	json_u64(json, "rule_count", rule_count);
}

static void put_evidence(struct json *json, const struct table_rows *rows)
{
	const struct finding *finding = rows->record;

	json_begin_object(json, "evidence");
	for (size_t e = 0; e < finding->evidence_count; e++)
		json_u64(json, finding->evidence[e].name, finding->evidence[e].value);
	json_end_object(json);
	json_u64(json, "place_count", finding->place_all_count);
	json_begin_array(json, "places");
	for (size_t p = 0; p < finding->place_count; p++)
		put_place(json, rows->run, &finding->places[p]);
	json_end_array(json);
}

const struct table_def table_findings = {
	.name = "findings",
	.title = "Findings",
	.what = "Problems that cost time, largest cost first.",
	HAS_COLUMNS(columns),
	.open = open_rows,
	.row = put_row,
	.is_complete = true,
	.json_head = put_rule_count,
	.json_more = put_evidence,
};
