/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is different looks different: kernels whose short names are one, files of one name.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/naming/file_names.h"
#include "merge/naming/unique_names.h"

#define KERNELS_MAX 16

/* Each group is one log; what comes out must not depend on the order in it. */
#define TENSORS "at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
#define SCALARS                                                                                    \
	TENSORS "(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous "            \
		"namespace)::"
#define POW	 "at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
#define POW_LAST "pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::"
#define IMPL                                                                                       \
	"at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::"
#define BINARY "BinaryFunctor<float, float, float, at::native::binary_internal::"
#define IMPL_END                                                                                   \
	"(at::TensorIteratorBase&, at::native::BinaryFunctor<float, float> "                       \
	"const&)::{lambda(int)#1}>"
#define REDUCE                                                                                     \
	"at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "                           \
	"at::native::func_wrapper_t<"
#define REDUCED "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4>>"

static const struct {
	const char *names[KERNELS_MAX];
	const char *parts[KERNELS_MAX]; /* NULL: the short name as it is */
} groups[] = {
	{{"f<int>", "g<int>"}, {NULL, NULL}},
	{{POW POW_LAST "{lambda(float)#1}, std::array<char*, 2ul>>",
	  POW POW_LAST "{lambda(float)#2}, std::array<char*, 2ul>>",
	  POW POW_LAST "{lambda(float)#3}, std::array<char*, 2ul>>"},
	 {"{lambda(float)#1}", "{lambda(float)#2}", "{lambda(float)#3}"}},
	{{IMPL BINARY "MulFunctor<float>>>" IMPL_END, IMPL BINARY "DivFunctor<float>>>" IMPL_END},
	 {"MulFunctor", "DivFunctor"}},
	{{REDUCE "float, at::native::sum_functor<float, float, float>::operator()" REDUCED,
	  REDUCE "float, at::native::prod_functor<float, float, float>::operator()" REDUCED},
	 {"sum_functor", "prod_functor"}},
	{{SCALARS "BinaryOpScalarFunctor<float, 2, 1, 1>, std::multiplies<float>, float>",
	  SCALARS "BinaryOpScalarFunctor<float, 2, 1, 1>, std::plus<float>, float>"},
	 {NULL, NULL}},
};
#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

struct log {
	struct model model;
	struct addresses addresses; /* none, but where a test has some */
	struct demangle_cache cache;
	struct names shown;
};

static uint32_t add_kernel(struct log *log, const char *name)
{
	struct model *model = &log->model;
	uint32_t place = (uint32_t)model->shapes.count++;

	model->strings.count++;
	model->strings.rows[place] = names_intern(&model->names, name, strlen(name));
	model->shapes.rows[place].string = place;
	return model->strings.rows[place];
}

static void begin(struct log *log)
{
	*log = (struct log){0};
	assert_int_equal(names_init(&log->model.names), 0);
	assert_int_equal(names_init(&log->shown), 0);
	log->model.strings.rows = calloc(KERNELS_MAX + 1, sizeof(*log->model.strings.rows));
	log->model.shapes.rows = calloc(KERNELS_MAX + 1, sizeof(*log->model.shapes.rows));
	assert_true(log->model.strings.rows && log->model.shapes.rows);
	log->model.strings.count = log->model.shapes.count = 1;
	log->cache.mangled = &log->model.names;
	log->cache.shown = &log->shown;
}

static void end(struct log *log)
{
	free(log->model.strings.rows);
	free(log->model.shapes.rows);
	demangle_cache_free(&log->cache);
	names_free(&log->model.names);
	names_free(&log->shown);
}

static const char *shown(struct log *log, uint32_t kernel)
{
	return names_text(&log->shown, demangle(&log->cache, kernel, DEMANGLE_SHORT), NULL);
}

/* Settles a group, from its first name on or from its last, and compares it with the table. */
static void settle_group(size_t g, bool is_backwards)
{
	struct unique_names unique = {0};
	uint32_t ids[KERNELS_MAX];
	size_t count = 0;
	struct log log;

	begin(&log);
	while (count < KERNELS_MAX && groups[g].names[count])
		count++;
	for (size_t i = 0; i < count; i++) {
		size_t k = is_backwards ? count - 1 - i : i;

		ids[k] = add_kernel(&log, groups[g].names[k]);
	}
	assert_int_equal(unique_names_assign(&unique, &log.cache, &log.model, &log.addresses), 0);
	for (size_t k = 0; k < count; k++) {
		const char *text = shown(&log, ids[k]), *part = strstr(text, " [with ");

		print_message("%s\n", text);
		assert_true(!part == !groups[g].parts[k]);
		if (part) {
			part += strlen(" [with ");
			assert_memory_equal(part, groups[g].parts[k], strlen(groups[g].parts[k]));
		}
		for (size_t other = 0; other < k; other++)
			assert_string_not_equal(text, shown(&log, ids[other]));
	}
	unique_names_free(&unique);
	end(&log);
}

static void kernels_of_a_run_have_different_names(void **state)
{
	(void)state;
	for (size_t g = 0; g < GROUP_COUNT; g++) {
		settle_group(g, false);
		settle_group(g, true);
	}
}

/* What was shown of a log that was read before stays as it is, and is of that kernel alone. */
static void kernels_of_later_logs_differ_too(void **state)
{
	struct unique_names unique = {0};
	const char *const *names = groups[2].names;
	uint32_t first, second;
	char *before;
	struct log log;

	(void)state;
	begin(&log);
	first = add_kernel(&log, names[0]);
	assert_int_equal(unique_names_assign(&unique, &log.cache, &log.model, &log.addresses), 0);
	before = strdup(shown(&log, first));
	assert_non_null(before);
	assert_null(strstr(before, " [with "));
	/* The same tables, as if of the next log. */
	log.model.shapes.count = log.model.strings.count = 1;
	second = add_kernel(&log, names[1]);
	assert_int_equal(unique_names_assign(&unique, &log.cache, &log.model, &log.addresses), 0);
	assert_string_equal(shown(&log, first), before);
	assert_string_not_equal(shown(&log, second), before);
	assert_non_null(strstr(shown(&log, second), " [with DivFunctor]"));
	free(before);
	unique_names_free(&unique);
	end(&log);
}

/* A kernel may be called as functions are that launch it, and is not shown among them. */
static void kernels_and_functions_are_apart(void **state)
{
	static const struct {
		const char *name, *shown;
	} kernels[] = {{"_Z5scalePfi", "scale"}, {"_Z4stepPf", "step"}},
	  functions[] = {
		  {"_Z5scalePf", "scale [with float*]"},
		  {"_Z5scalei", "scale [with int]"},
		  {"step", "step"},
		  {"_Z4stepPf", "step"}, /* the kernel's own */
		  {"_ZNK1A1mEv", "A::m [with const]"},
		  {"_ZN1A1mEv", "A::m"},
	  };
	struct unique_names unique = {0};
	struct address list[6] = {{0}};
	struct log log;

	(void)state;
	begin(&log);
	log.addresses.list = list;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		add_kernel(&log, kernels[i].name);
	/* "step" of C cannot be told from what the kernel is shown as, if that is a function, too. */
	for (size_t with_own = 0; with_own < 2; with_own++) {
		log.addresses.count = 0;
		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
			if (with_own || i != 3)
				list[log.addresses.count++].name =
					names_intern(&log.model.names, functions[i].name,
						     strlen(functions[i].name));
		unique_names_free(&unique);
		demangle_cache_free(&log.cache);
		log.cache =
			(struct demangle_cache){.mangled = &log.model.names, .shown = &log.shown};
		assert_int_equal(
			unique_names_assign(&unique, &log.cache, &log.model, &log.addresses), 0);
		for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
			assert_string_equal(shown(&log, log.model.strings.rows[i + 1]),
					    kernels[i].shown);
		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
			uint32_t name = names_intern(&log.model.names, functions[i].name,
						     strlen(functions[i].name));
			bool is_c_step = !strcmp(functions[i].name, "step");

			print_message("%s\n", shown(&log, name));
			if (with_own && is_c_step)
				assert_string_not_equal(shown(&log, name), "step");
			else
				assert_string_equal(shown(&log, name), functions[i].shown);
		}
	}
	log.addresses.list = NULL;
	unique_names_free(&unique);
	end(&log);
}

/* No one has a part for itself that others have, too. */
static void parts_say_all_that_differs(void **state)
{
#define LONG "kernel_of_a_name_that_has_to_be_cut_somewhere_at_last<A<"
#define LAST ">, a_type_of_the_program<another_type_of_the_program<int>, one_more_type<long> > >"
	static const struct {
		const char *names[3], *parts[3];
	} cases[] = {
		{{LONG "float, 1" LAST, LONG "float, 2" LAST, LONG "double, 2" LAST},
		 {" [with float, 1]", " [with float, 2]", " [with double, 2]"}},
		{{LONG "B<float>, C<D<1>>, E<F>" LAST, LONG "B<float>, C<D<2>>, E<F>" LAST,
		  LONG "B<double>, C<D<2>>, E<F>" LAST},
		 {" [with B<float>, C<D<1>>]", " [with B<float>, C<D<2>>]", " [with double]"}},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct unique_names unique = {0};
		uint32_t ids[3];
		struct log log;

		begin(&log);
		for (size_t i = 0; i < 3; i++)
			ids[i] = add_kernel(&log, cases[c].names[i]);
		assert_int_equal(
			unique_names_assign(&unique, &log.cache, &log.model, &log.addresses), 0);
		for (size_t i = 0; i < 3; i++) {
			print_message("%s\n", shown(&log, ids[i]));
			assert_non_null(strstr(shown(&log, ids[i]), cases[c].parts[i]));
		}
		unique_names_free(&unique);
		end(&log);
	}
}

static void files_of_one_name_are_told_apart(void **state)
{
	static const char *const files[][2] = {
		{"/code/x/left/model.py", "left/model.py"},
		{"/code/x/right/model.py", "right/model.py"},
		{"/code/x/train.py", "train.py"},
		{"/a/x/lib/util.py", "x/lib/util.py"},
		{"/b/y/lib/util.py", "y/lib/util.py"},
		{"/b/other/util.py", "other/util.py"},
		{"<string>", "<string>"},
		{"relative.c", "relative.c"},
		{"/src/relative.c", "src/relative.c"},
		{"/src/./deep/../one.c", "one.c"},
		{"/src//one.c", "one.c"},
		{"/", "/"},
		{"", ""},
	};
	size_t count = sizeof(files) / sizeof(files[0]);
	struct file_names names = {0};

	(void)state;
	assert_string_equal(file_names_shown(&names, "/not/there.c"), "/not/there.c");
	for (size_t i = 0; i < count; i++)
		assert_int_equal(file_names_add(&names, files[i][0]), 0);
	assert_int_equal(file_names_assign(&names), 0);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(file_names_shown(&names, files[i][0]), files[i][1]);
	/* A later log. */
	assert_int_equal(file_names_add(&names, "/elsewhere/train.py"), 0);
	assert_int_equal(file_names_assign(&names), 0);
	assert_string_equal(file_names_shown(&names, "/code/x/train.py"), "train.py");
	assert_string_equal(file_names_shown(&names, "/elsewhere/train.py"), "elsewhere/train.py");
	file_names_free(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_of_a_run_have_different_names),
		cmocka_unit_test(kernels_of_later_logs_differ_too),
		cmocka_unit_test(kernels_and_functions_are_apart),
		cmocka_unit_test(parts_say_all_that_differs),
		cmocka_unit_test(files_of_one_name_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
