/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small JIT compiler: generates functions in anonymous executable memory, lists them in
 * /tmp/perf-<pid>.map, and replaces one of them at the same address.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUNCTION_BYTES 64
#define FUNCTIONS      4

static unsigned char *memory;
static FILE *map;

/* push %rbp; mov %rsp,%rbp; mov $target,%rax; call *%rax; pop %rbp; ret */
static void (*make(int place, const char *name, void (*target)(unsigned)))(unsigned)
{
	unsigned char *code = memory + place * FUNCTION_BYTES;
	static const unsigned char head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8};
	static const unsigned char tail[] = {0xff, 0xd0, 0x5d, 0xc3};
	void (*function)(unsigned);

	memcpy(code, head, sizeof(head));
	memcpy(code + sizeof(head), &target, sizeof(target));
	memcpy(code + sizeof(head) + sizeof(target), tail, sizeof(tail));
	fprintf(map, "%lx %x %s\n", (unsigned long)code, FUNCTION_BYTES, name);
	memcpy(&function, &code, sizeof(function));
	return function;
}

int main(int argc, char **argv)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	memory = mmap(NULL, FUNCTIONS * FUNCTION_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!map || memory == MAP_FAILED)
		return 1;
	fprintf(map, "this is no line\n%lx 10\nzz 10 name\n", (unsigned long)memory);
	device_open();
	make(3, "made_first", device_launch)(4);
	make(3, "made_again", device_launch)(5);
	make(0, "jit_loop<float; 3>", device_launch)(1);
	make(1, "_ZN3jit4stepEi", device_launch)(2);
	make(2, "py::train_step:/src/train.py", device_launch)(3);
	device_close();
	fclose(map);
	printf("%s\n", path);
	if (argc > 1 && !strcmp(argv[1], "--remove"))
		unlink(path);
	return 0;
}
