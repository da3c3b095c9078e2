/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of findings. The JSON summary has more of each: its evidence and places.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "merge/exporter.h"
#include "merge/findings/finding_place.h"
#include "merge/findings/rules.h"
#include "merge/tables/table.h"

enum { RULE, SEVERITY, COST, WHOLE, PROCESSES, PROCESS, ID, WHERE, WHAT, ADVICE };

static const struct column_def columns[] = {
	[RULE] = {"rule", CELL_WORD, COLUMN_DATA, "rule that found it"},
	[SEVERITY] = {"severity", CELL_WORD, COLUMN_DATA, "error, high, medium or low"},
	[COST] = {"cost_ns", CELL_NS, COLUMN_DATA, "time that it costs"},
	[WHOLE] = {"whole_ns", CELL_NS, COLUMN_DATA, "time that the cost is a part of"},
	[PROCESSES] = {"process_count", CELL_COUNT, COLUMN_DATA, "processes that have it"},
	[PROCESS] = {"process", CELL_TEXT, COLUMN_DATA, "one of them"},
	[ID] = {"id", CELL_TEXT, COLUMN_DATA, "the same in each run that has the finding"},
	[WHERE] = {"where", CELL_TEXT, COLUMN_DATA, "function and line"},
	[WHAT] = {"what", CELL_TEXT, COLUMN_DATA, "what was found"},
	[ADVICE] = {"advice", CELL_TEXT, COLUMN_DATA, "what to try"},
};

/* Texts of the last row. */
struct texts {
	char *id, *where;
};

static void free_texts(struct table_rows *rows)
{
	struct texts *texts = rows->memory;

	free(texts->id);
	free(texts->where);
	*texts = (struct texts){0};
}

static void open_rows(struct table_rows *rows)
{
	rows->memory = xt_calloc(1, sizeof(struct texts));
	rows->count = rows->run->findings.count;
}

static void put_row(struct table_rows *rows, size_t r, struct cell *cells)
{
	const struct finding *finding = &rows->run->findings.list[r];
	struct texts *texts = rows->memory;

	free_texts(rows);
	texts->id = finding_id(&rows->run->paths, finding);
	texts->where = finding_location(&rows->run->paths, finding);
	if (!texts->id || !texts->where)
		xt_out_of_memory(0);
	cells[RULE] = cell_text(rule_specs[finding->rule].name);
	cells[SEVERITY] = cell_text(finding_severity(finding));
	cells[COST].number = finding->cost_ns;
	cells[WHOLE].number = finding->whole_ns;
	cells[PROCESSES].number = finding->process_count;
	cells[PROCESS] = cell_text(finding->process);
	cells[ID] = cell_text(texts->id);
	cells[WHERE] = cell_text(texts->where);
	cells[WHAT] = cell_text(finding->what);
	cells[ADVICE] = cell_text(finding->advice);
}

const struct table_def table_findings = {
	.name = "findings",
	.title = "Findings",
	.what = "Problems that cost time, largest cost first.",
	HAS_COLUMNS(columns),
	.open = open_rows,
	.cells = put_row,
	.close = free_texts,
};
