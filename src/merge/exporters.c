/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exporters, in the order of --help.
 */

#include "merge/export/formats.h"
#include "merge/exporters.h"
#include "merge/profile/profile.h"

/* clang-format off */
const struct exporter *const exporters[] = {
	&exporter_text,
	&exporter_brief,
	&exporter_html,
	&exporter_summary,
	&exporter_profile,
	&exporter_folded,
	&exporter_chrome,
	&exporter_perfetto,
	&exporter_pprof,
	&exporter_speedscope,
	&exporter_svg,
	&exporter_sqlite,
	&exporter_csv,
	NULL,
};
/* clang-format on */
