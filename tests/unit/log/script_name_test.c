/* SPDX-License-Identifier: Apache-2.0 */
/* The script that an interpreter runs. */
#include "log/base/script_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES 64

static void finds_scripts(void **state)
{
	static const struct {
		const char *program, *command, *title;
	} cases[] = {
		{"/usr/bin/python3.12", "python3 /src/me/train.py --steps 20", "train.py"},
		{"python3", "python3 -u -X importtime -W ignore train.py", "train.py"},
		{"python3", "python -Wdoc train.py", "train.py"},
		{"python3.13t", "python3.13t train.py", "train.py"},
		{"python3.12-dbg", "python3.12-dbg train.py", "train.py"},
		{"python3", "python3 --check-hash-based-pycs always train.py", "train.py"},
		{"python3", "python3 - a", "python3"},
		{"python3", "python3 /usr/bin/torchrun -m pkg.train", "pkg.train"},
		{"/bin/bash", "bash -euo pipefail run.sh", "run.sh"},
		{"python3", "python -m pkg.mod --flag", "pkg.mod"},
		{"python3", "python3 -c import_torch", "python3"},
		{"python3", "python3", "python3"},
		{"python3", "", "python3"},
		{"python3", "ray::train", "python3"},
		{"python3", "python3 /usr/bin/torchrun --nproc-per-node 2 src/train.py x.py",
		 "train.py"},
		{"python3", "python3 -m torch.distributed.run train.py", "train.py"},
		{"python3", "python3 /usr/bin/accelerate launch", "accelerate"},
		{"python3", "python3 folder/", "python3"},
		{"/bin/bash", "bash -e ./run.sh", "run.sh"},
		{"/bin/sh", "sh -c ./run.sh", "sh"},
		{"/usr/bin/perl", "perl -I lib -W a.pl", "a.pl"},
		{"node", "node --require x app.js", "app.js"},
		{"pythonic", "pythonic train.py", "pythonic"},
		{"/opt/llm", "llm train.py", "llm"},
	};
	char title[TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		xt_script_title(title, sizeof(title), cases[i].program, cases[i].command);
		assert_string_equal(title, cases[i].title);
	}
}

static void cuts_long_names(void **state)
{
	char title[8];

	(void)state;
	xt_script_title(title, sizeof(title), "python3", "python3 long_name.py");
	assert_string_equal(title, "long_na");
}

static void finds_inline_code(void **state)
{
	char code[TEXT_BYTES];

	(void)state;
	assert_int_equal(xt_script_find(code, sizeof(code), "python3", "python3 -uc two() three"),
			 XT_SCRIPT_INLINE);
	assert_string_equal(code, "two() three");
	assert_int_equal(xt_script_find(code, sizeof(code), "chat", "chat -c x"), XT_SCRIPT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_scripts),
		cmocka_unit_test(cuts_long_names),
		cmocka_unit_test(finds_inline_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
