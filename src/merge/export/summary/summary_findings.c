/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes findings as text and as JSON.
 */
#include "merge/export/summary/summary_findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/json.h"
#include "merge/base/text.h"
#include "merge/export/summary/summary_json_tables.h"
#include "merge/export/summary/summary_path.h"
#include "merge/export/summary/summary_text.h"
#include "merge/findings/conclusions.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/run.h"
#include "merge/sums/settings.h"
#include "merge/sums/trust.h"

#define TEXT_TOP	 5
#define INDENT		 10
#define TITLE_BYTES	 96
#define TEXT_COLUMNS	 100 /* without a terminal */
#define WRAP_COLUMNS_MIN 40
#define WRAP_COLUMNS_MAX 110

static void put_wrapped(struct output *out, const char *text)
{
	size_t columns = out->columns ? out->columns : TEXT_COLUMNS;

	if (columns > WRAP_COLUMNS_MAX)
		columns = WRAP_COLUMNS_MAX;
	if (columns < WRAP_COLUMNS_MIN)
		columns = WRAP_COLUMNS_MIN;
	put_words(out, text, INDENT, INDENT, columns);
	output_text(out, "\n", 1);
}

static int put_finding(struct output *out, const struct run *run, const struct finding *finding)
{
	char time[TIME_BYTES], share[SHARE_BYTES], *advice;
	char *where = finding_location(&run->paths, finding);
	int error = 0;

	if (!where)
		return -ENOMEM;
	format_time(time, finding->cost_ns);
	format_share(share, finding->cost_ns, finding->whole_ns);
	put_style(out, STYLE_ALARM);
	if (!strcmp(finding_severity(finding), "error"))
		output_format(out, "%8s  ", "error");
	else
		output_format(out, "%8s  %s  ", share, time);
	output_format(out, "%s", rule_specs[finding->rule].name);
	put_style(out, STYLE_PLAIN);
	if (out->columns && column_of(out) + 2 + text_columns(where, strlen(where)) > out->columns)
		output_format(out, "\n%*s", INDENT, "");
	else
		output_text(out, "  ", 2);
	put_words(out, where, 0, INDENT, out->columns ? out->columns : SIZE_MAX);
	free(where);
	output_text(out, "\n", 1);
	put_wrapped(out, finding->what);
	if (asprintf(&advice, "Try: %s", finding->advice) < 0)
		return -ENOMEM;
	put_wrapped(out, advice);
	free(advice);
	output_format(out, "%*s", INDENT, "");
	error = put_path(out, &run->paths, finding->places[0].node, 0);
	output_text(out, "\n", 1);
	return error;
}

/* Returns the active time that all shares refer to; 0 if it differs. */
static uint64_t common_active_ns(const struct findings *findings)
{
	for (size_t f = 1; f < findings->count; f++)
		if (findings->list[f].whole_ns != findings->list[0].whole_ns)
			return 0;
	return findings->list[0].whole_ns;
}

/* Writes the title with "(top 5 of 8; of 22.943 ms active time)". */
static void put_findings_title(struct output *out, const struct run *run, size_t shown)
{
	const struct findings *findings = &run->found->findings;
	uint64_t whole_ns = common_active_ns(findings);
	char top[TITLE_BYTES] = "", whole[TITLE_BYTES] = "", more[2 * TITLE_BYTES + 4] = "";
	char time[TIME_BYTES];

	format_time(time, whole_ns);
	if (shown < findings->count)
		snprintf(top, sizeof(top), "top %zu of %zu", shown, findings->count);
	if (whole_ns)
		snprintf(whole, sizeof(whole), "of %s %s", time,
			 finding_whole_text(&findings->list[0]));
	if (top[0] || whole[0])
		snprintf(more, sizeof(more), "(%s%s%s)", top, top[0] && whole[0] ? "; " : "",
			 whole);
	put_title(out,
		  run->trust->level == TRUST_DAMAGED ? "Findings in the readable part of a damaged "
						       "log, by time that could be saved"
						     : "Findings, by time that could be saved",
		  more);
}

int put_findings(struct output *out, const struct run *run)
{
	const struct findings *findings = &run->found->findings;
	size_t top = run->settings->top_count ? run->settings->top_count : TEXT_TOP;
	size_t shown = findings->count < top ? findings->count : top;
	int error = 0;

	if (!findings->count)
		return 0;
	put_findings_title(out, run, shown);
	for (size_t f = 0; f < shown && !error; f++)
		error = put_finding(out, run, &findings->list[f]);
	return error;
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
static int put_path_names(struct json *json, const struct run *run, uint32_t node)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(&run->paths, node, &chain, &capacity);

	json_begin_array(json, "frames");
	for (int d = 0; d < depth; d++)
		put_name(json, NULL, run, run->paths.nodes[chain[d]].name);
	json_end_array(json);
	free(chain);
	return depth < 0 ? depth : 0;
}

static int put_place(struct json *json, const struct run *run, const struct finding_place *place)
{
	int error;

	json_begin_object(json, NULL);
	json_u64(json, "cost_ns", place->cost_ns);
	json_u64(json, "path_cost_ns", place->path_cost_ns);
	json_u64(json, "count", place->count);
	put_name(json, "call", run, place->api);
	put_name(json, "function", run, place->function);
	put_line(json, run, place->file, place->line);
	error = put_path_names(json, run, place->node);
	json_begin_array(json, "lines");
	for (size_t f = 0; f < place->frame_count; f++) {
		json_begin_object(json, NULL);
		put_name(json, "function", run, place->frames[f].name);
		put_line(json, run, place->frames[f].file, place->frames[f].line);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	return error;
}

static int put_row(struct json *json, const struct run *run, const struct finding *finding)
{
	char *where = finding_location(&run->paths, finding);
	char *id = finding_id(&run->paths, finding);
	int error = 0;

	if (!where || !id) {
		free(where);
		free(id);
		return -ENOMEM;
	}
	json_begin_object(json, NULL);
	json_string(json, "id", id);
	json_string(json, "rule", rule_specs[finding->rule].name);
	json_string(json, "severity", finding_severity(finding));
	json_string(json, "process", finding->process);
	json_u64(json, "process_count", finding->process_count);
	json_u64(json, "cost_ns", finding->cost_ns);
	json_u64(json, "whole_ns", finding->whole_ns);
	json_string(json, "whole", finding_whole_text(finding));
	json_string(json, "estimate", rule_specs[finding->rule].estimate);
	json_string(json, "where", where);
	json_string(json, "what", finding->what);
	json_string(json, "advice", finding->advice);
	json_begin_object(json, "evidence");
	for (size_t e = 0; e < finding->evidence_count; e++)
		json_u64(json, finding->evidence[e].name, finding->evidence[e].value);
	json_end_object(json);
	json_u64(json, "place_count", finding->place_all_count);
	json_begin_array(json, "places");
	for (size_t p = 0; p < finding->place_count && !error; p++)
		error = put_place(json, run, &finding->places[p]);
	json_end_array(json);
	json_end_object(json);
	free(id);
	free(where);
	return error;
}

int put_findings_json(struct json *json, const struct run *run)
{
	uint64_t rule_count = 0;
	int error = 0;

	for (int rule = 0; rule < RULES; rule++)
		rule_count += run->settings->finding_shares[rule] >= 0 &&
			      (rule < RULE_CPU_FIRST || run->cpu->facts.process_count);
	json_begin_object(json, "findings");
	json_u64(json, "rule_count", rule_count);
	json_u64(json, "row_count", run->found->findings.count);
	json_begin_array(json, "rows");
	json->lines_depth = json->depth;
	for (size_t f = 0; f < run->found->findings.count && !error; f++)
		error = put_row(json, run, &run->found->findings.list[f]);
	json_end_array(json);
	json->lines_depth = SUMMARY_LINES_DEPTH;
	json_end_object(json);
	return error;
}
