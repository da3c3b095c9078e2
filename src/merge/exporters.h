/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exporters.
 */
#ifndef XT_MERGE_EXPORTERS_H
#define XT_MERGE_EXPORTERS_H

#include "merge/sums/exporter.h"

/* Ended by NULL. */
extern const struct exporter *const exporters[];

#define ANALYSES_MAX 8 /* of all outputs together */

#endif
