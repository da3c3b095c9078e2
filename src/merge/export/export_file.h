/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_EXPORT_FILE_H
#define XT_MERGE_EXPORT_FILE_H

#include "merge/exporter.h"

/*
 * For exporters of USES_FOLDER: opens a file in the output's directory. It is closed with the
 * output. Returns as output_open().
 */
int export_open_file(struct sink *sink, const char *name);

#endif
