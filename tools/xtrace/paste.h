/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands to be copied from a message into the shell that xtrace was called from.
 */
#ifndef XTRACE_PASTE_H
#define XTRACE_PASTE_H

/*
 * How to call a program that lies beside this one at the absolute path given: by its name alone if
 * xtrace was called so, else with the folder that xtrace was called with. To be freed; NULL if
 * memory ran out.
 */
char *paste_program(const char *path);

/* A file name as one word of a shell that is no option. To be freed; NULL if memory ran out. */
char *paste_file(const char *name);

#endif
