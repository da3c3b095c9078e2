/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common includes of the unit tests of src/diff.
 */
#ifndef XT_TESTS_UNIT_DIFF_UNIT_H
#define XT_TESTS_UNIT_DIFF_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
