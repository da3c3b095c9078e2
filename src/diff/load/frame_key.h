/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stays of a frame's name when its program is changed elsewhere and built anew.
 */
#ifndef XT_DIFF_FRAME_KEY_H
#define XT_DIFF_FRAME_KEY_H

#include <stddef.h>

#define FRAME_KEY_BOUND(frame_bytes) (4 * (frame_bytes) + 1)

/*
 * Writes the key of a shown frame, terminated, into out, which has room for FRAME_KEY_BOUND() bytes. Away go
 * files and lines, addresses, the numbers of lambdas and closures, suffixes of clones, hashes of Rust, numbers
 * in NVTX ranges and in names that Triton made. Returns its length.
 */
size_t frame_key(char *out, const char *frame);

/* Writes the part of a key that is compared where keys differ: without template arguments and parameters. It is no
 * longer than the key. Returns its length. */
size_t frame_stem(char *out, const char *key);

#endif
