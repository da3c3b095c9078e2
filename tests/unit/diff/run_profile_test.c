/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading run profiles: content, rejected documents, and damage at any place.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/base/text.h"
#include "diff/load/run_profile.h"

#define MUTATIONS 3000

static const char document[] =
	"{\"format\":\"xtrace-profile\",\"version\":2,\"simulated_gpu\":true,\"batch_count\":32,"
	"\"processes\":[{\"name\":\"launcher\",\"used_count\":0},{\"name\":\"train\",\"driver\":"
	"\"13000\","
	"\"iterations\":\"nvtx\",\"iteration_name\":\"step\",\"used_count\":40,"
	"\"start_realtime_ns\":17}],"
	"\"devices\":[{\"device\":0,\"name\":\"H200\",\"uuid\":\"u\"}],"
	"\"trust\":{\"word\":\"degraded\",\"warnings\":[\"something\"]},"
	"\"totals\":[[\"gpu-time\",1000,10,20,2,0.01,0.005,0,0.01,0.005,1],"
	"[\"peak-memory\",4096,0,0,0,0,0,0,null,null,1]],"
	"\"paths\":[[2,600,6,12,1,0.01,0.004,0,0.01,0.004,0.5],"
	"[4,300,3,6,1,0.02,0.004,0,0.02,0.004,1],[5,100,1,2,0,null,null,null,null,null,null]],"
	"\"kernels\":[[3,1000,10,20,2,0,0,0,0,0,1]],"
	"\"names\":[\"\",\"main (a.c:1)\",\"f (a.c:2)\",\"k\",\"f (a.c:9)\",\"g\"],"
	"\"nodes\":[0,1,1,2,1,5,1,4,3,3]}";

static int read_text(struct run_profile **p, const char *text, struct problems *problems)
{
	*p = run_profile_read(text, strlen(text), "here", problems);
	return *p ? 0 : -EINVAL;
}

static void reads_all_values(void **state)
{
	struct problems problems = {0};
	struct run_profile *p;
	const struct profile_entry *entry;

	(void)state;
	assert_int_equal(read_text(&p, document, &problems), 0);
	assert_string_equal(p->program, "train");
	assert_string_equal(p->machine.driver, "13000");
	assert_true(p->machine.is_simulated && run_profile_has_iterations(p));
	assert_int_equal(p->trust.word, TRUST_DEGRADED);
	assert_string_equal(p->trust.warnings[0], "something");
	assert_string_equal(p->machine.devices[0], "H200");
	assert_int_equal(p->start_realtime_ns, 17);
	/* Two lines of a function are one path. The more expensive line is shown. */
	entry = run_profile_find(p, LEVEL_PATH, "main;f");
	assert_non_null(entry);
	assert_true(entry->whole_value == 900.0);
	assert_true(entry->quantities[METRIC_VALUE].mean == 18.0);
	assert_true(entry->quantities[METRIC_VALUE].typical == 12.0);
	assert_true(entry->quantities[METRIC_EACH].mean == 9.0);
	assert_int_equal(entry->frame_count, 2);
	assert_string_equal(entry->frames[1], "f (a.c:2)");
	/* Unknown values are NAN. A peak is always of the whole run. */
	entry = run_profile_find(p, LEVEL_PATH, "main;g;k");
	assert_non_null(entry);
	assert_true(isnan(entry->quantities[METRIC_EACH].mean));
	entry = run_profile_find(p, LEVEL_TOTAL, "peak-memory");
	assert_true(entry->quantities[METRIC_VALUE].mean == 4096.0);
	assert_null(run_profile_find(p, LEVEL_PATH, "main"));
	assert_int_equal(problems.count, 0);
	run_profile_free(p);
}

/* xtrace merge writes such a profile if the iterations of processes differ. */
static void takes_the_whole_run_without_common_iterations(void **state)
{
	static const char text[] =
		"{\"format\":\"xtrace-profile\",\"version\":2,\"batch_count\":0,\"processes\":[{"
		"\"name\":\"one\",\"iterations\":\"nvtx\",\"used_count\":8},{\"name\":\"two\","
		"\"iterations\":\"period\",\"used_count\":89}],\"totals\":[[\"gpu-time\",1000,10,"
		"null,"
		"null,0.5,0.1,0,0.5,0.1,1]]}";
	struct problems problems = {0};
	struct run_profile *p;
	const struct profile_entry *entry;

	(void)state;
	assert_int_equal(read_text(&p, text, &problems), 0);
	assert_string_equal(p->program, "two");
	assert_false(run_profile_has_iterations(p));
	entry = run_profile_find(p, LEVEL_TOTAL, "gpu-time");
	assert_true(entry->quantities[METRIC_VALUE].mean == 1000.0);
	run_profile_free(p);
}

static void shortens_texts_and_keeps_them_different(void **state)
{
	enum { LENGTH = 20000 };
	char *one = calloc(1, LENGTH + 1), *other = calloc(1, LENGTH + 1), *at;

	(void)state;
	assert_true(one && other);
	for (int i = 0; i < LENGTH; i += 2)
		memcpy(one + i, "\xc3\xa9", 2);
	memcpy(other, one, LENGTH);
	other[LENGTH / 2 + 1] = '\xa8';
	shorten_text(one, LENGTH); /* the limit itself is allowed */
	assert_int_equal(strlen(one), LENGTH);
	shorten_text(one, FIELD_BYTES_MAX);
	shorten_text(other, FIELD_BYTES_MAX);
	assert_in_range(strlen(one), FIELD_BYTES_MAX - 2, FIELD_BYTES_MAX);
	assert_string_not_equal(one, other);
	assert_non_null(strstr(one, "[20000 bytes, "));
	/* No character is split. */
	for (at = one; *at; at++)
		if (*at == '\xc3')
			assert_int_equal(at[1], '\xa9');
	assert_int_equal(one[0], '\xc3');
	assert_string_equal(one + strlen(one) - 2, "\xc3\xa9");
	free(one);
	free(other);
}

static void rejects_invalid_documents(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} rows[] = {
		{"xtrace-profile", "xtrace-summary", "not a run profile"},
		{"\"version\":2", "\"version\":3", "version 3"},
		{"\"version\":2", "\"version\":-5", "invalid version"},
		{"\"version\":2", "\"version\":null", "invalid version"},
		{"[2,600,6,12", "[2,600,6,null", "damaged"},
		{"[2,600,6,12", "[2,600,6,-12", "damaged"},
		{"[2,600,6", "[2,null,6", "damaged"},
		{"[2,600", "[6,600", "damaged"},	       /* no such node */
		{"[3,1000,10", "[-3,1000,10", "damaged"},      /* no such name */
		{"\"nodes\":[0,", "\"nodes\":[1,", "damaged"}, /* a node that is its own parent */
		{",0.5]", "]", "damaged"},
		{"{\"format\"", "\"format\"", "not a run profile"},
		{"{\"format\"", "{{\"format\"", "not valid JSON"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *place = strstr(document, rows[i].from);
		struct problems problems = {0};
		struct run_profile *p;
		char *text;

		assert_non_null(place);
		assert_true(asprintf(&text, "%.*s%s%s", (int)(place - document), document,
				     rows[i].to, place + strlen(rows[i].from)) > 0);
		assert_int_not_equal(read_text(&p, text, &problems), 0);
		assert_int_equal(problems.count, 1);
		assert_non_null(strstr(problems.lines[0], rows[i].says));
		run_profile_free(p);
		problems_free(&problems);
		free(text);
	}
}

static void survives_damage_at_any_place(void **state)
{
	size_t length = strlen(document);
	char *text = malloc(length);

	(void)state;
	srandom(1);
	for (int i = 0; i < MUTATIONS; i++) {
		static const char bytes[] = "{}[]\",:-0129eE.ntf\\ ";
		struct problems problems = {0};
		struct run_profile *p;

		memcpy(text, document, length);
		for (long n = random() % 4; n >= 0; n--)
			text[(size_t)random() % length] =
				bytes[(size_t)random() % (sizeof(bytes) - 1)];
		p = run_profile_read(text,
				     (size_t)random() % 8 ? length : (size_t)random() % length,
				     "damaged", &problems);
		run_profile_free(p);
		problems_free(&problems);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_all_values),
		cmocka_unit_test(takes_the_whole_run_without_common_iterations),
		cmocka_unit_test(shortens_texts_and_keeps_them_different),
		cmocka_unit_test(rejects_invalid_documents),
		cmocka_unit_test(survives_damage_at_any_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
