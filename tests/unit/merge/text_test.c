/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Untrusted bytes become safe text, and numbers become digits.
 */
#include "unit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

struct sample {
	const char *in;
	size_t length;
	const char *out;
};
#define SAMPLE(in, out)                                                                            \
	{                                                                                          \
		in, sizeof(in) - 1, out                                                            \
	}

static const struct sample json_samples[] = {
	SAMPLE("", ""),
	SAMPLE("plain <a, b>", "plain <a, b>"),
	SAMPLE("\"\\/", "\\\"\\\\/"),
	SAMPLE("\n\t\x00\x1f\x7f", "\\u000a\\u0009\\u0000\\u001f\\u007f"),
	SAMPLE("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
	SAMPLE("\xff", "\xef\xbf\xbd"),
	SAMPLE("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"),			/* overlong */
	SAMPLE("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"), /* surrogate */
	SAMPLE("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
	SAMPLE("\xc2\x9b"
	       "31m\xc2\xa0",
	       "\\u009b31m\xc2\xa0"),			  /* CSI as a C1 control */
	SAMPLE("a\xe2\x82", "a\xef\xbf\xbd\xef\xbf\xbd"), /* truncated */
	SAMPLE("\xe2\x28\xa1", "\xef\xbf\xbd(\xef\xbf\xbd"),
};

static const struct sample clean_samples[] = {
	SAMPLE("a;b c", "a:b c"),
	SAMPLE("a\nb\x1b[2J\x7f", "a_b_[2J_"),
	SAMPLE("\xc2\x9b"
	       "31m",
	       "_31m"), /* CSI as a C1 control */
	SAMPLE("\xe2\x80\xae"
	       "a\xe2\x81\xa9\xe2\x80\xa8\xe2\x80\xa7",
	       "_a__\xe2\x80\xa7"), /* right-to-left override and line separator */
	SAMPLE("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x8d\xe2\x81\xaa",
	       "___\xe2\x80\x8d\xe2\x81\xaa"),
	SAMPLE("\xc2\xa9\x80", "\xc2\xa9\xef\xbf\xbd"),
};

static void escapes_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(json_samples) / sizeof(json_samples[0]); i++) {
		const struct sample *sample = &json_samples[i];
		char out[64];
		size_t length = text_json(out, sample->in, sample->length);

		assert_true(length <= text_json_bound(sample->length));
		out[length] = '\0';
		assert_string_equal(out, sample->out);
	}
}

static void cleans_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(clean_samples) / sizeof(clean_samples[0]); i++) {
		const struct sample *sample = &clean_samples[i];
		char out[64];
		size_t length = text_clean(out, sample->in, sample->length, ';');

		assert_true(length <= text_clean_bound(sample->length));
		out[length] = '\0';
		assert_string_equal(out, sample->out);
	}
}

/* No pair of bytes exceeds the bounds or yields a raw control character or quote. */
static void makes_every_pair_of_bytes_safe(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair < 65536; pair++) {
		char in[2] = {(char)(pair >> 8), (char)pair}, out[12];
		size_t length = text_json(out, in, 2);
		bool escaped = false;

		assert_true(length <= sizeof(out));
		for (size_t i = 0; i < length; i++) {
			assert_true((uint8_t)out[i] >= 0x20);
			assert_true(out[i] != '"' || escaped);
			escaped = out[i] == '\\' && !escaped;
		}
		assert_false(escaped);
	}
}

static void formats_numbers_like_printf(void **state)
{
	static const uint64_t edges[] = {0,    9,    10,	99,	    100,       999,
					 1000, 1001, 123456789, UINT32_MAX, INT64_MAX, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		for (uint64_t value = edges[i] - 3; value != edges[i] + 4; value++) {
			char out[32], expected[32];

			*text_u64(out, value) = '\0';
			snprintf(expected, sizeof(expected), "%" PRIu64, value);
			assert_string_equal(out, expected);
		}
	}
}

static void keeps_nanoseconds_of_times(void **state)
{
	static const struct {
		int64_t ns;
		const char *us;
	} samples[] = {
		{0, "0.000"},
		{1, "0.001"},
		{999, "0.999"},
		{1000, "1.000"},
		{1234567, "1234.567"},
		{-1, "-0.001"},
		{-1500, "-1.500"},
		{INT64_MAX, "9223372036854775.807"},
		{INT64_MIN, "-9223372036854775.808"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char out[TEXT_US_BYTES_MAX + 1];

		*text_us(out, samples[i].ns) = '\0';
		assert_string_equal(out, samples[i].us);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_json),
		cmocka_unit_test(cleans_text),
		cmocka_unit_test(makes_every_pair_of_bytes_safe),
		cmocka_unit_test(formats_numbers_like_printf),
		cmocka_unit_test(keeps_nanoseconds_of_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
