/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shown names of functions and kernels, from their mangled names.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/naming/demangle.h"

/* Names of real kernels and functions, and how they are shown by default. */
static const struct {
	const char *mangled;
	const char *shown;
} samples[] = {
	{"matmul", "matmul"},
	{"_Z5scalePfi", "scale"},
	{"_ZN2at6native12_GLOBAL__N_17gatherxEv", "at::native::gatherx"},
	{"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
	 "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
	 "T1_",
	 "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	 "std::array<char*, 1ul>>"},
	{"_ZN7cutlass7Kernel2I68cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_"
	 "align8EEvNT_6ParamsE",
	 "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>"},
	{"_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate",
	 "<std::path::PathBuf>::new"},
	{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
	{"_ZL10local_copyi.part.0.cold", "local_copy"},
	{"__libc_start_main@@GLIBC_2.34", "__libc_start_main"},
	{"_ZN1AlsEi", "A::operator<<"},
	{"_ZN1AptEv", "A::operator->"},
	{"_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_16sqrt_kernel_cudaERNS_"
	 "18TensorIteratorBaseEENKUlvE0_clEvENKUlvE0_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_",
	 "at::native::vectorized_elementwise_kernel<4, sqrt_kernel_cuda::{lambda}, "
	 "array<char*, 2ul>>"},
	{"triton_red_fused__native_batch_norm_legit_functional__to_copy_add_convolution_"
	 "convolution_backward_mul_relu_threshold_backward_view_17",
	 "triton_red_fused__native_batch_norm_legit_functional__to_copy_add_convolution_convoluti"
	 "...elu_threshold_backward_view_17"},
};

static void demangles_and_shortens(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct demangle_cache cache = {0};
		struct names mangled, shown;
		uint32_t name;

		names_init(&mangled);
		names_init(&shown);
		cache.mangled = &mangled;
		cache.shown = &shown;
		name = names_intern(&mangled, samples[i].mangled, strlen(samples[i].mangled));
		name = demangle(&cache, name, DEMANGLE_SHORT);
		assert_true(name != NAME_FAILED);
		assert_string_equal(names_text(&shown, name, NULL), samples[i].shown);
		demangle_cache_free(&cache);
		names_free(&mangled);
		names_free(&shown);
	}
}

/* Demangled names that need different steps of shortening. */
static const struct {
	const char *name;
	const char *shown;
} cuts[] = {
	{"f<std::vector<int, std::allocator<int> > >", "f<std::vector<int, std::allocator<int>>>"},
	{"_INTERNAL_22c0ffee_7_norm_cu_1234::norm<int>", "norm<int>"},
	{"a::b<c::d<e::f>, g::h<i::j>, kkkkkkkkkk::llllllllll<mmmmmmmmmm::nnnnnnnnnn>, "
	 "oooooooooo::pppppppppp<qqqqqqqqqq>, rrrrrrrr::ssssssss>::t",
	 "a::b<d<f>, h<j>, llllllllll<nnnnnnnnnn>, pppppppppp<qqqqqqqqqq>, ssssssss>::t"},
	{"a::f<b::g<c::h>(d::i&, d::j const&)::{lambda()#1}::operator()() const::{lambda(int)#2}, "
	 "e::kkkkkkkkkkkkkkkkkkkkkkkkkk, (e::l)4, &e::m::operator()>",
	 "a::f<g<h>::{lambda}, kkkkkkkkkkkkkkkkkkkkkkkkkk, (l)4, &operator()>"},
	{"a<b<c<d<eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee, "
	 "ffffffffffffffffffffffffffffffff>, "
	 "gggggggggggggggggggggggggggg>, 4>, 5>",
	 "a<b<c<d<...>, gggggggggggggggggggggggggggg>, 4>, 5>"},
	{"gemv<int, int, float, float, float, float, 128, 16, 4, 4, false, false, "
	 "cublasGemvParamsEx<int, long>, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>",
	 "gemv<int, int, float, float, float, float, 128, 16, 4, 4, false, false, "
	 "cublasGemvParamsEx<...>, ...>"},
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	 "<bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb>",
	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<..."
	 ">"},
	{"x::operator<< "
	 "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>",
	 "x::operator<< <...>"},
	{"<aaaaaaaaaaaaaaaaaaaaaaaaaaaaa::Bbbbbbbbbbbbbbbbbbbbb<"
	 "cccccccccccccccccccccccccccccccccccccccc::"
	 "Dddddddddd> as "
	 "eeeeeeeee::Ffff>::g",
	 "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaa::Bbbbbbbbbbbbbbbbbbbbb<Dddddddddd> as "
	 "eeeeeeeee::Ffff>::g"},
};

static void cuts_long_names_in_order(void **state)
{
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		strcpy(text, cuts[i].name);
		text[name_shorten(text, strlen(text))] = '\0';
		assert_string_equal(text, cuts[i].shown);
	}
}

/* Random bytes never grow, stay in bounds, and are not cut inside a character. */
static void cuts_random_bytes(void **state)
{
	static const char letters[] = "<<>>::ab, (){}-=* operator\xc3\xa4";
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char *text;
		size_t length, shortened;

		seed = seed * UINT64_C(6364136223846793005) + 1;
		length = (seed >> 33) % 300;
		text = malloc(length + 1);
		for (size_t i = 0; i < length; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			text[i] = letters[(seed >> 33) % (sizeof(letters) - 1)];
		}
		shortened = name_shorten(text, length);
		assert_true(shortened <= length && shortened <= SHORT_NAME_BYTES_MAX);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demangles_and_shortens),
		cmocka_unit_test(cuts_long_names_in_order),
		cmocka_unit_test(cuts_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
