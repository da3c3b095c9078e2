/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of xtrace merge that are not outputs.
 */
#ifndef XT_MERGE_OPTION_TABLE_H
#define XT_MERGE_OPTION_TABLE_H

#include "cli/option.h"

/*
 * Ends with a row of zeros. The context of the rows is a struct options. row->uses has bits of enum
 * exporter_use.
 */
extern const struct option_row merge_option_rows[];

#endif
