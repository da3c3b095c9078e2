/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the declarations of all tables as JSON, for tools/generate-tables.py.
 */
#include "base/json.h"
#include "merge/tables/table.h"

static const char *const types[] = {
	[CELL_COUNT] = "count", [CELL_CODE] = "code",	    [CELL_FLAG] = "flag",
	[CELL_REAL] = "real",	[CELL_NS] = "ns",	    [CELL_MOMENT] = "moment",
	[CELL_BYTES] = "bytes", [CELL_SHARE] = "share",	    [CELL_BANDWIDTH] = "bandwidth",
	[CELL_TEXT] = "text",	[CELL_WORD] = "word",	    [CELL_PATH] = "path",
	[CELL_TEXTS] = "texts", [CELL_NUMBERS] = "numbers", [CELL_VALUES] = "values",
};

static const char *const forms[] = {[FORM_TABLE] = "table",
				    [FORM_LIST] = "list",
				    [FORM_MAP] = "map",
				    [FORM_TEXTS] = "texts",
				    [FORM_NONE] = "none"};

static void put_column(struct json *json, const struct column_def *column)
{
	json_begin_object(json, NULL);
	json_string(json, "name", column_is_flat(column) ? column->name : "");
	json_string(json, "json",
		    !column_is_member(column) ? ""
		    : column->json	      ? column->json
					      : column->name);
	json_string(json, "type", types[column->type]);
	json_string(json, "what", column->what);
	json_bool(json, "is_optional", column->is_optional);
	json_end_object(json);
}

static void put_table(struct json *json, const struct table_def *def)
{
	json_begin_object(json, NULL);
	json_string(json, "name", def->name);
	json_string(json, "json", def->json.name ? def->json.name : def->name);
	json_string(json, "form", forms[def->json.form]);
	json_string(json, "what", def->what);
	json_string(json, "left_out", def->json.left_out ? def->json.left_out : "");
	json_bool(json, "is_view", def->view);
	json_begin_array(json, "columns");
	for (size_t c = 0; c < def->column_count; c++)
		if (def->columns[c].place != COLUMN_TEXT)
			put_column(json, &def->columns[c]);
	json_end_array(json);
	json_end_object(json);
}

int main(void)
{
	struct output out;
	struct json json = {.out = &out};

	if (output_open(&out, "-") < 0)
		return 1;
	json_begin_array(&json, NULL);
	for (size_t t = 0; table_defs[t]; t++)
		put_table(&json, table_defs[t]);
	json_end_array(&json);
	output_text(&out, "\n", 1);
	return output_complete(&out) < 0 || output_commit(&out) < 0;
}
