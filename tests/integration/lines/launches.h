/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that launch kernels.
 */
#ifndef LAUNCHES_H
#define LAUNCHES_H

void launches_begin(void);
void forward(void);
void backward(void);

#endif
