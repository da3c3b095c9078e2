/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of outputs, in the order of --help.
 */
#include "diff/output/diff_output.h"

/* clang-format off */
const struct diff_output *const diff_outputs[] = {
	&diff_output_text,
	&diff_output_json,
	&diff_output_markdown,
	&diff_output_junit,
	&diff_output_html,
	&diff_output_folded,
	NULL,
};
/* clang-format on */
