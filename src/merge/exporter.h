/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that exporters and analyses may use. Being split.
 */
#ifndef XT_MERGE_EXPORTER_ALL_H
#define XT_MERGE_EXPORTER_ALL_H

#include "merge/export/formats.h"
#include "merge/exporters.h"
#include "merge/findings/conclusions.h"
#include "merge/naming/run_names.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/naming/joined_paths.h"
#include "merge/profile/profile_windows.h"
#include "merge/read/correlate.h"
#include "merge/read/model.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"

extern const struct exporter analysis_calls;
extern const struct exporter analysis_kernels;
extern const struct exporter analysis_processes;
extern const struct exporter exporter_profile;

#endif
