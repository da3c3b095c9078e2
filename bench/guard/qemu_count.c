/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugin for qemu-user: counts the instructions of an emulated program, for guard.py. Writes one
 * line to stderr when the program ends. Debian has no header for plugins, so the few functions of
 * version 1 of that interface are declared here.
 */
#include <stdint.h>
#include <stdio.h>

#define EXPORT	     __attribute__((visibility("default")))
#define THREADS_MAX  1024u /* power of two */
#define NO_REGISTERS 0	   /* enum qemu_plugin_cb_flags */

struct qemu_plugin_tb; /* a block of translated code */

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*translated)(uint64_t id,
							      struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
					  void (*executed)(unsigned thread, void *argument),
					  int flags, void *argument);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*ended)(uint64_t id, void *argument),
				    void *argument);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = 1;

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

/* Each thread has its own count, so that none needs an atomic operation. */
static struct {
	uint64_t instructions;
	uint64_t unused[7];
} threads[THREADS_MAX];

static void executed(unsigned thread, void *instructions)
{
	threads[thread % THREADS_MAX].instructions += (uintptr_t)instructions;
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(block, executed, NO_REGISTERS,
					     (void *)qemu_plugin_tb_n_insns(block));
}

static void ended(uint64_t id, void *argument)
{
	uint64_t sum = 0;

	(void)id;
	(void)argument;
	for (unsigned i = 0; i < THREADS_MAX; i++)
		sum += threads[i].instructions;
	fprintf(stderr, "instructions: %llu\n", (unsigned long long)sum);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
