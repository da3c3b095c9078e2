/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporters of this folder, and the analyses that they list as tables.
 */
#ifndef XT_MERGE_FORMATS_H
#define XT_MERGE_FORMATS_H

#include "merge/sums/exporter.h"

/* Ended by NULL. */
extern const struct exporter *const all_analyses[];

extern const struct exporter exporter_brief;
extern const struct exporter exporter_csv;
extern const struct exporter exporter_folded;
extern const struct exporter exporter_chrome;
extern const struct exporter exporter_perfetto;
extern const struct exporter exporter_pprof;
extern const struct exporter exporter_sqlite;
extern const struct exporter exporter_summary;
extern const struct exporter exporter_html;
extern const struct exporter exporter_text;

#endif
