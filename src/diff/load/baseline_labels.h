/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds sets of a baseline by label.
 */
#ifndef XT_DIFF_BASELINE_LABELS_H
#define XT_DIFF_BASELINE_LABELS_H

#include "diff/load/baseline.h"

#define ADVICE_BYTES 1024

/* The set with this label, or the only one whose label begins with it. NULL: there is none. */
const struct baseline_set *baseline_find_label(const struct baseline *baseline, const char *label);

/* Names labels instead of an unknown one: "did you mean 'v5'?". Returns out. */
const char *baseline_advise_label(char out[ADVICE_BYTES], const struct baseline *baseline,
				  const char *label);

#endif
