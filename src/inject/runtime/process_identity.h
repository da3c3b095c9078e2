/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of this process: a random number of 128 bits, and its ranks in a distributed job.
 * Host name and pid are not enough: containers on one host often have the same name and the same
 * few pids.
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

#define PROCESS_RANKS 8 /* environment variables in which launchers number processes and jobs */

/*
 * Reads these variables, before the writer thread exists. Later changes have no effect. Not in
 * callbacks.
 */
void process_ranks_read(void);

/*
 * Returns the value of variable i, or "" if it was not a decimal number of at most 9 digits. The
 * name of a job may have 63 letters, digits and "_-." instead. Stores the name of the variable in
 * *name. Both are static. Any thread.
 */
const char *process_rank(int i, const char **name);

#endif
