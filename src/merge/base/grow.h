/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by doubling, under the name that src/merge includes.
 */
#ifndef XT_MERGE_GROW_H
#define XT_MERGE_GROW_H

#include "log/base/grow.h"

#endif
