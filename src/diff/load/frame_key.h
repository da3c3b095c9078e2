/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame keys: names that stay the same when other parts of the program change and it is rebuilt.
 */
#ifndef XT_DIFF_FRAME_KEY_H
#define XT_DIFF_FRAME_KEY_H

#include <stddef.h>

#define FRAME_KEY_BOUND(frame_bytes) (4 * (frame_bytes) + 1)

/*
 * Writes the terminated key of a frame into out, which has FRAME_KEY_BOUND() bytes. Removes files
 * and lines, addresses, numbers of lambdas and closures, clone suffixes, Rust hashes, and numbers
 * in NVTX ranges and Triton names. Returns the length.
 */
size_t frame_key(char *out, const char *frame);

/*
 * Writes the stem of a key: the key without template arguments and parameters. It is used to match
 * paths whose keys differ. Returns the length, which is at most that of the key.
 */
size_t frame_stem(char *out, const char *key);

#endif
