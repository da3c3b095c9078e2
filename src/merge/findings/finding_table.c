/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of findings. The JSON summary has more of each: its evidence and places.
 */
#include "merge/findings/conclusions.h"
#include "merge/findings/finding_place.h"
#include "merge/findings/rules.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

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
};

static void open_rows(struct table_rows *rows)
{
	const struct findings *findings = &rows->run->found->findings;

	table_records(rows, findings->list, findings->count, sizeof(*findings->list));
}

static void put_row(struct table_rows *rows, size_t index, const void *record, struct cells *cells)
{
	const struct finding *finding = record;
	const struct paths *paths = &rows->run->paths;

	(void)index;
	cells_put(cells, cell_text(rule_specs[finding->rule].name));
	cells_put(cells, cell_text(finding_severity(finding)));
	cells_put(cells, cell_text(finding->process));
	cells_put(cells, cell_owned(rows, finding_id(paths, finding)));
	cells_put(cells, cell_owned(rows, finding_location(paths, finding)));
	cells_put(cells, cell_text(finding->what));
	cells_put(cells, cell_text(finding->advice));
}

const struct table_def table_findings = {
	.name = "findings",
	.title = "Findings",
	.what = "Problems that cost time, largest cost first.",
	HAS_COLUMNS(columns),
	.open = open_rows,
	.row = put_row,
};
