/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local variables that need more of each stack than most programs allow for. */
#define BYTES (2 << 20)

__attribute__((visibility("default"))) __thread char large_tls[BYTES];
