/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the plugins that are named, one after the other, each after the one before has gone, and
 * says where each was.
 */
#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	device_open();
	for (int i = 1; i < argc; i++) {
		void *plugin = dlopen(argv[i], RTLD_NOW);
		void (*run)(unsigned) = plugin ? (void (*)(unsigned))dlsym(plugin, "run") : NULL;

		if (!run) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		run((unsigned)i);
		usleep(50000); /* what goes before the tracer looks at it has no names */
		printf("%p\n", (void *)run);
		dlclose(plugin);
	}
	device_close();
	return 0;
}
