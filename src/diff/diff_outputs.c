/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of outputs, in the order of --help.
 */
#include "diff/diff_output.h"

/* clang-format off */
const struct diff_output *const diff_outputs[] = {
	&diff_output_text,
	&diff_output_json,
	NULL,
};
/* clang-format on */
