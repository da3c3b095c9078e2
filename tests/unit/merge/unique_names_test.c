/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unique names: kernels with the same short name, and source files with the same name.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/naming/frame_names.h"
#include "merge/naming/unique_names.h"

#define KERNELS_MAX 16

/* Each group is one log. The result must not depend on the order of its names. */
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
	const char *parts[KERNELS_MAX]; /* NULL: the short name is unchanged */
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
	struct addresses addresses; /* empty in most tests */
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
	names_init(&log->model.names);
	names_init(&log->shown);
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

/* Assigns names to a group, in either order, and compares them with the table. */
static void check_group(size_t g, bool is_backwards)
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
	unique_names_assign(&unique, &log.cache, &log.model, &log.addresses);
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

static void makes_kernel_names_unique(void **state)
{
	(void)state;
	for (size_t g = 0; g < GROUP_COUNT; g++) {
		check_group(g, false);
		check_group(g, true);
	}
}

/* A name shown for an earlier log stays, and no other kernel gets it. */
static void keeps_names_of_earlier_logs(void **state)
{
	struct unique_names unique = {0};
	const char *const *names = groups[2].names;
	uint32_t first, second;
	char *before;
	struct log log;

	(void)state;
	begin(&log);
	first = add_kernel(&log, names[0]);
	unique_names_assign(&unique, &log.cache, &log.model, &log.addresses);
	before = strdup(shown(&log, first));
	assert_non_null(before);
	assert_null(strstr(before, " [with "));
	/* Reuse the tables for the next log. */
	log.model.shapes.count = log.model.strings.count = 1;
	second = add_kernel(&log, names[1]);
	unique_names_assign(&unique, &log.cache, &log.model, &log.addresses);
	assert_string_equal(shown(&log, first), before);
	assert_string_not_equal(shown(&log, second), before);
	assert_non_null(strstr(shown(&log, second), " [with DivFunctor]"));
	free(before);
	unique_names_free(&unique);
	end(&log);
}

/* A kernel may have the name of the functions that launch it. They are named separately. */
static void names_functions_apart_from_kernels(void **state)
{
	static const struct {
		const char *name, *shown;
	} kernels[] = {{"_Z5scalePfi", "scale"}, {"_Z4stepPf", "step"}},
	  functions[] = {
		  {"_Z5scalePf", "scale [with float*]"},
		  {"_Z5scalei", "scale [with int]"},
		  {"step", "step"},
		  {"_Z4stepPf", "step"}, /* same name as the kernel */
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
	/* A C function "step" gets a suffix if the kernel's launch function is also in the list. */
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
		unique_names_assign(&unique, &log.cache, &log.model, &log.addresses);
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

/* A suffix that others of the group share is not used. */
static void does_not_use_shared_differences(void **state)
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
		unique_names_assign(&unique, &log.cache, &log.model, &log.addresses);
		for (size_t i = 0; i < 3; i++) {
			print_message("%s\n", shown(&log, ids[i]));
			assert_non_null(strstr(shown(&log, ids[i]), cases[c].parts[i]));
		}
		unique_names_free(&unique);
		end(&log);
	}
}

static void adds_folders_to_equal_file_names(void **state)
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
		file_names_add(&names, files[i][0]);
	file_names_assign(&names);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(file_names_shown(&names, files[i][0]), files[i][1]);
	/* Names stay for a later log. */
	file_names_add(&names, "/elsewhere/train.py");
	file_names_assign(&names);
	assert_string_equal(file_names_shown(&names, "/code/x/train.py"), "train.py");
	assert_string_equal(file_names_shown(&names, "/elsewhere/train.py"), "elsewhere/train.py");
	file_names_free(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_kernel_names_unique),
		cmocka_unit_test(keeps_names_of_earlier_logs),
		cmocka_unit_test(names_functions_apart_from_kernels),
		cmocka_unit_test(does_not_use_shared_differences),
		cmocka_unit_test(adds_folders_to_equal_file_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
