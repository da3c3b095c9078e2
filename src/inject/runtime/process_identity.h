/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random number of 128 bits that identifies this process. Host name and pid do not: containers on
 * one host often have the same name and the same few pids.
 */
#ifndef XT_INJECT_PROCESS_IDENTITY_H
#define XT_INJECT_PROCESS_IDENTITY_H

#define PROCESS_IDENTITY_BYTES 33 /* as text: 32 hexadecimal digits and the terminator */

/*
 * Draws the number before this process creates its log; a forked child draws its own. Not in
 * callbacks.
 */
void process_identity_draw(void);

/* The text is the same for all logs of the process. */
void process_identity_text(char out[PROCESS_IDENTITY_BYTES]);

#endif
