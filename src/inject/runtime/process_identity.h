/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells this process from all others: 128 random bits. Host name and pid do not, because
 * containers on one host often have the same name and the same few pids.
 */
#ifndef XT_INJECT_PROCESS_IDENTITY_H
#define XT_INJECT_PROCESS_IDENTITY_H

#define PROCESS_IDENTITY_BYTES 33 /* as text: 32 hexadecimal digits and the terminator */

/* Before the log of this process is created; a forked child that records draws its own. Not in
 * callbacks. */
void process_identity_draw(void);

/* The same text for all logs and all writes of the process. */
void process_identity_text(char out[PROCESS_IDENTITY_BYTES]);

#endif
