/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the functions of cuda_functions.def, and holds the macros that take its entries apart:
 * XT_API_PARAMETERS(n, type, name, …) is a parameter list of n parameters, XT_API_NAMES() their
 * names, XT_API_FIELDS() the fields of a struct that holds them.
 */
#ifndef XTRACE_SIMGPU_CUDA_FUNCTIONS_H
#define XTRACE_SIMGPU_CUDA_FUNCTIONS_H

/* clang-format off */
#define XT_API_EACH_0(op, sep) op##_0
#define XT_API_EACH_1(op, sep, t, n) op(t, n)
#define XT_API_EACH_2(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_1(op, sep, __VA_ARGS__)
#define XT_API_EACH_3(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_2(op, sep, __VA_ARGS__)
#define XT_API_EACH_4(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_3(op, sep, __VA_ARGS__)
#define XT_API_EACH_5(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_4(op, sep, __VA_ARGS__)
#define XT_API_EACH_6(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_5(op, sep, __VA_ARGS__)
#define XT_API_EACH_7(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_6(op, sep, __VA_ARGS__)
#define XT_API_EACH_8(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_7(op, sep, __VA_ARGS__)
#define XT_API_EACH_9(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_8(op, sep, __VA_ARGS__)
#define XT_API_EACH_10(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_9(op, sep, __VA_ARGS__)
#define XT_API_EACH_11(op, sep, t, n, ...) op(t, n) sep() XT_API_EACH_10(op, sep, __VA_ARGS__)

#define XT_API_PARAMETER(t, n) t n
#define XT_API_PARAMETER_0 void
#define XT_API_NAME(t, n) n
#define XT_API_NAME_0
#define XT_API_FIELD(t, n) t n;
#define XT_API_FIELD_0
#define XT_API_COMMA() ,
#define XT_API_NOTHING()
#define XT_API_PARAMETERS(n, ...) XT_API_EACH_##n(XT_API_PARAMETER, XT_API_COMMA, ##__VA_ARGS__)
#define XT_API_NAMES(n, ...) XT_API_EACH_##n(XT_API_NAME, XT_API_COMMA, ##__VA_ARGS__)
#define XT_API_FIELDS(n, ...) XT_API_EACH_##n(XT_API_FIELD, XT_API_NOTHING, ##__VA_ARGS__)
/* clang-format on */

#define API(name, implementation, cbid, count, ...)                                                \
	CUresult CUDAAPI name(XT_API_PARAMETERS(count, ##__VA_ARGS__));
#include "cuda_functions.def"

#endif
