/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins MICROSECONDS PLUGIN...: loads the plugins that are named, one after the other, each after the
 * one before has gone, keeps each for so long after it has launched, and says where each was. The
 * first launches once, the next twice, the third three times and so on, up to seven.
 */
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	useconds_t stay_us = argc > 1 ? (useconds_t)atoi(argv[1]) : 0;

	device_open();
	for (int i = 2; i < argc; i++) {
		void *plugin = dlopen(argv[i], RTLD_NOW);
		void (*run)(unsigned) = plugin ? (void (*)(unsigned))dlsym(plugin, "run") : NULL;

		if (!run) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		for (int n = 0; n <= (i - 2) % 7; n++)
			run((unsigned)i);
		if (stay_us)
			usleep(stay_us);
		printf("%p\n", (void *)run);
		dlclose(plugin);
	}
	device_close();
	return 0;
}
