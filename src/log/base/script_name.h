/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script that an interpreter runs, from its command line.
 */
#ifndef XT_LOG_SCRIPT_NAME_H
#define XT_LOG_SCRIPT_NAME_H

#include <stddef.h>

enum xt_script {
	XT_SCRIPT_NONE,	  /* not an interpreter, or it was given no script */
	XT_SCRIPT_FILE,	  /* a file or module: "train.py", "pkg.mod" */
	XT_SCRIPT_INLINE, /* code on the command line, as after "-c" */
};

/*
 * Finds what the program runs. program is the name or path of an executable, and command its
 * arguments, separated by spaces. Writes the file name without its folder, or the code, to out. A
 * launcher such as torchrun counts as an interpreter of the Python file that follows it.
 */
enum xt_script xt_script_find(char *out, size_t out_bytes, const char *program,
			      const char *command);

/* Writes how to call the process: after its script file, or else after its program. */
void xt_script_title(char *out, size_t out_bytes, const char *program, const char *command);

#endif
