/* SPDX-License-Identifier: Apache-2.0 */
/* Being split. */
#ifndef XT_MERGE_READING_ALL_H
#define XT_MERGE_READING_ALL_H

#include "merge/base/labels.h"
#include "merge/exporter.h"
#include "merge/sums/reading.h"

#endif
