/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the injected library has to say to the user: single lines on stderr, never on stdout, and
 * only about what keeps it from doing its work. Not for the hot path.
 */
#ifndef XT_INJECT_SAY_H
#define XT_INJECT_SAY_H

/* Prints "xtrace: " and the text as one line, in one write. Keeps errno. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
