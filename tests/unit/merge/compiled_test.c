/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated code of torch.compile, and the stack traces of its source.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "merge/symbolize/compiled_lines.h"

#define HASH "abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrs" /* 51 characters */

static void knows_files_of_the_cache(void **state)
{
	(void)state;
	assert_true(generated_code_is_file("/tmp/x/ab/c" HASH ".py"));
	assert_false(generated_code_is_file("/tmp/x/ba/c" HASH ".py"));
	assert_false(generated_code_is_file("/tmp/x/ab/d" HASH ".py"));
	assert_false(generated_code_is_file("/tmp/x/ab/c" HASH "x.py"));
	assert_false(generated_code_is_file("/tmp/x/ab/c" HASH ".so"));
	assert_false(generated_code_is_file("/tmp/x/ab/cABcdefghijklmnopqrstuvwxyz234567abcdefghi"
					    "jklmnopqrs.py"));
	assert_false(generated_code_is_file("ab/c" HASH ".py"));
	assert_false(generated_code_is_file("/c" HASH ".py"));
	assert_false(generated_code_is_file("c.py"));
	assert_false(generated_code_is_file(""));
}

/* Writes "LINE HANDLE [NODES];" for each call. */
static void read_code(const char *text, char *out, size_t out_bytes)
{
	struct generated_code code = {0};
	size_t used = 0;

	out[0] = '\0';
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (generated_code_next(&code, text, length))
			used += (size_t)snprintf(out + used, out_bytes - used, "%u %s [%s];",
						 code.line, code.handle, code.nodes);
		text += length + (text[length] == '\n');
	}
}

#define NODES(list)                                                                                \
	"    # Topologically Sorted Source Nodes: [" list "], Original ATen: [aten.mm]\n"
#define HANDLE(name) "    # [Provenance debug handles] " name "\n"

static void finds_calls_after_their_comments(void **state)
{
	static const struct {
		const char *code, *calls;
	} cases[] = {
		{NODES("h") HANDLE("k_0:1") "    stream0 = get_raw_stream(0)\n    k_0.run(buf0)\n",
		 "4 k_0:1 [h];"},
		{HANDLE("extern_kernels.mm:2") "  extern_kernels.mm(a, k_0.run(b))\n  f(1)\n",
		 "2 extern_kernels.mm:2 [];"},
		{HANDLE("torch.ops.aten.x.default:3") "buf1 = torch.ops.aten.x.default(a)\n",
		 "2 torch.ops.aten.x.default:3 [];"},
		/* Another call than that of the handle. */
		{HANDLE("mm:1") "    k_0.run(mm)\n    my_mm2(a)\n    mm(b)\n", "4 mm:1 [];"},
		/* Comments of the previous call must not reach the next one. */
		{NODES("h") "k_0.run(a)\n" HANDLE("mm:2") "mm(b)\n", "2  [h];4 mm:2 [];"},
		{NODES("") "x = empty_strided_cuda((1, ))\ndel a\nk_0.run(a)\nf(b)\n",
		 "4  [aten.mm];"},
		/* Comments of other versions. */
		{"# Source Nodes: [x, y], Original ATen: [aten.mm]\nextern_kernels.mm(a)\n",
		 "2  [x, y];"},
		{"# Unsorted Source Nodes: [x], Original ATen: []\nk_0.run(a)\n", "2  [x];"},
		{"# Other Source Nodes: [x]\nk_0.run(a)\n", ""},
		/* The definition of a kernel has the same comments. */
		{NODES("h") "k_0 = async_compile.triton('k_0', '''\n    f(a)\n", ""},
		{NODES("h") "\nk_0.run(a)\n", ""},
		{NODES("h") "a\nb\nc\ne\nf\ng\nh\ni\nk_0.run(a)\n", ""},
		{"    # Topologically Sorted Source Nodes: [h\n    k_0.run(a)\n", "2  [];"},
		{"k_0.run(a)\n#\n# [Provenance debug handles]\n", ""},
	};
	char calls[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		read_code(cases[i].code, calls, sizeof(calls));
		if (strcmp(calls, cases[i].calls) != 0)
			fail_msg("%s: found %s", cases[i].code, calls);
	}
}

static void shortens_long_comments(void **state)
{
	struct generated_code code = {0};
	char line[4 * GENERATED_TEXT_BYTES];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "# [Provenance debug handles] ", 29);
	assert_false(generated_code_next(&code, line, sizeof(line)));
	assert_int_equal(strlen(code.handle), GENERATED_TEXT_BYTES - 1);
}

static void reads_places_of_traces(void **state)
{
	const char *text = "  File \"/a/b \"c.py\", line 12, in forward\n    x = f(\"  File\")\n"
			   "  File \"no line\n  File \"/z.py\", line 0, in f\n"
			   "  File \"/d.py\", line 13, in <lambda>\nGradient addition node\n";
	struct torch_place place;

	(void)state;
	assert_true(torch_trace_next_place(&text, &place));
	assert_int_equal(place.line, 12);
	assert_memory_equal(place.file, "/a/b \"c.py", place.file_length);
	assert_memory_equal(place.function, "forward", place.function_length);
	assert_true(torch_trace_next_place(&text, &place));
	assert_int_equal(place.line, 13);
	assert_int_equal(place.file_length, 5);
	assert_memory_equal(place.function, "<lambda>", place.function_length);
	assert_false(torch_trace_next_place(&text, &place));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_files_of_the_cache),
		cmocka_unit_test(finds_calls_after_their_comments),
		cmocka_unit_test(shortens_long_comments),
		cmocka_unit_test(reads_places_of_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
