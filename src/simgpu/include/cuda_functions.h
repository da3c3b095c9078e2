/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the functions of cuda_functions.def, and holds the macros that take its entries apart:
 * XT_API_DECL_n(type, name, …) is a parameter list of n parameters, XT_API_NAMES_n their names,
 * XT_API_FIELDS_n the fields of a struct that holds them.
 */
#ifndef XTRACE_SIMGPU_CUDA_FUNCTIONS_H
#define XTRACE_SIMGPU_CUDA_FUNCTIONS_H

/* clang-format off */
#define XT_API_DECL_0() void
#define XT_API_DECL_1(t, n) t n
#define XT_API_DECL_2(t, n, ...) t n, XT_API_DECL_1(__VA_ARGS__)
#define XT_API_DECL_3(t, n, ...) t n, XT_API_DECL_2(__VA_ARGS__)
#define XT_API_DECL_4(t, n, ...) t n, XT_API_DECL_3(__VA_ARGS__)
#define XT_API_DECL_5(t, n, ...) t n, XT_API_DECL_4(__VA_ARGS__)
#define XT_API_DECL_6(t, n, ...) t n, XT_API_DECL_5(__VA_ARGS__)
#define XT_API_DECL_7(t, n, ...) t n, XT_API_DECL_6(__VA_ARGS__)
#define XT_API_DECL_8(t, n, ...) t n, XT_API_DECL_7(__VA_ARGS__)
#define XT_API_DECL_9(t, n, ...) t n, XT_API_DECL_8(__VA_ARGS__)
#define XT_API_DECL_10(t, n, ...) t n, XT_API_DECL_9(__VA_ARGS__)
#define XT_API_DECL_11(t, n, ...) t n, XT_API_DECL_10(__VA_ARGS__)

#define XT_API_NAMES_0()
#define XT_API_NAMES_1(t, n) n
#define XT_API_NAMES_2(t, n, ...) n, XT_API_NAMES_1(__VA_ARGS__)
#define XT_API_NAMES_3(t, n, ...) n, XT_API_NAMES_2(__VA_ARGS__)
#define XT_API_NAMES_4(t, n, ...) n, XT_API_NAMES_3(__VA_ARGS__)
#define XT_API_NAMES_5(t, n, ...) n, XT_API_NAMES_4(__VA_ARGS__)
#define XT_API_NAMES_6(t, n, ...) n, XT_API_NAMES_5(__VA_ARGS__)
#define XT_API_NAMES_7(t, n, ...) n, XT_API_NAMES_6(__VA_ARGS__)
#define XT_API_NAMES_8(t, n, ...) n, XT_API_NAMES_7(__VA_ARGS__)
#define XT_API_NAMES_9(t, n, ...) n, XT_API_NAMES_8(__VA_ARGS__)
#define XT_API_NAMES_10(t, n, ...) n, XT_API_NAMES_9(__VA_ARGS__)
#define XT_API_NAMES_11(t, n, ...) n, XT_API_NAMES_10(__VA_ARGS__)

#define XT_API_FIELDS_0()
#define XT_API_FIELDS_1(t, n) t n;
#define XT_API_FIELDS_2(t, n, ...) t n; XT_API_FIELDS_1(__VA_ARGS__)
#define XT_API_FIELDS_3(t, n, ...) t n; XT_API_FIELDS_2(__VA_ARGS__)
#define XT_API_FIELDS_4(t, n, ...) t n; XT_API_FIELDS_3(__VA_ARGS__)
#define XT_API_FIELDS_5(t, n, ...) t n; XT_API_FIELDS_4(__VA_ARGS__)
#define XT_API_FIELDS_6(t, n, ...) t n; XT_API_FIELDS_5(__VA_ARGS__)
#define XT_API_FIELDS_7(t, n, ...) t n; XT_API_FIELDS_6(__VA_ARGS__)
#define XT_API_FIELDS_8(t, n, ...) t n; XT_API_FIELDS_7(__VA_ARGS__)
#define XT_API_FIELDS_9(t, n, ...) t n; XT_API_FIELDS_8(__VA_ARGS__)
#define XT_API_FIELDS_10(t, n, ...) t n; XT_API_FIELDS_9(__VA_ARGS__)
#define XT_API_FIELDS_11(t, n, ...) t n; XT_API_FIELDS_10(__VA_ARGS__)
/* clang-format on */

#define API(name, implementation, cbid, count, ...)                                                \
	CUresult CUDAAPI name(XT_API_DECL_##count(__VA_ARGS__));
#define API_EARLY API
#define API_PT	  API
#include "cuda_functions.def"
#undef API
#undef API_EARLY
#undef API_PT

#endif
