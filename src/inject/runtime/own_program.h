/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of the program that this process runs. Any thread; a system call.
 */
#ifndef XT_INJECT_OWN_PROGRAM_H
#define XT_INJECT_OWN_PROGRAM_H

#include <stddef.h>
#include <unistd.h>

/*
 * Returns the length of the path, cut to the room and with a final 0, or 0 if it is not known.
 * /proc/self is of the main thread, which may have ended. Emulators do not know /proc/thread-self,
 * so it names the emulator.
 */
static inline size_t own_program_path(char *out, size_t out_bytes)
{
	ssize_t length = readlink("/proc/self/exe", out, out_bytes - 1);

	if (length <= 0)
		length = readlink("/proc/thread-self/exe", out, out_bytes - 1);
	if (length < 0)
		length = 0;
	out[length] = '\0';
	return (size_t)length;
}

#endif
