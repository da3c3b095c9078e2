/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for the CUDA runtime of a later release: only its name matters. */
extern int later_library;
int later_library = 13;
