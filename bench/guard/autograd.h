/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for PyTorch's autograd: just the state that the tracer reads at a launch.
 */
#ifndef XT_BENCH_GUARD_AUTOGRAD_H
#define XT_BENCH_GUARD_AUTOGRAD_H

#include <stdbool.h>
#include <stdint.h>

/* Installs the stand-in. False if out of memory. */
bool autograd_begin(void);

/* Makes the next node run, or none. Each launch of a forward pass makes a node. */
void autograd_next(bool is_backward);

#endif
