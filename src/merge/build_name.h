/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_BUILD_NAME_H
#define XT_MERGE_BUILD_NAME_H

#define BUILD_NAME_BYTES 128

/*
 * Writes the version and the build id of this program. Programs of the same name have the same data
 * structures.
 */
void build_name(char out[BUILD_NAME_BYTES]);

#endif
