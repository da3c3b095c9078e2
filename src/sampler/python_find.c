/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/python_find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sampler/process_modules.h"
#include "sampler/process_read.h"

#define PUBLISHED_BYTES 1024 /* the table at the start of _PyRuntime, since 3.13 */

enum symbol { RUNTIME, VERSION, LOOP, COLD_LOOP, ONLY_SINCE_3_10, ONLY_SINCE_3_9, SYMBOLS };

static const char *const symbol_names[SYMBOLS] = {
	[RUNTIME] = "_PyRuntime",
	[VERSION] = "Py_Version", /* since 3.11 */
	[LOOP] = "_PyEval_EvalFrameDefault",
	[COLD_LOOP] = "_PyEval_EvalFrameDefault.cold",
	[ONLY_SINCE_3_10] = "PyIter_Send",
	[ONLY_SINCE_3_9] = "PyFrame_GetBack",
};

/* Accepts "python3", "python3.12", "libpython3.12.so.1.0", but not the stub "libpython3.so". */
static bool has_python_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *rest = slash ? slash + 1 : path;
	bool is_library = !strncmp(rest, "lib", 3);
	size_t numbers;

	rest += is_library ? 3 : 0;
	if (strncmp(rest, "python3", 7) != 0)
		return false;
	rest += 6;
	numbers = strspn(rest, "0123456789.");
	rest += numbers;
	rest += strspn(rest, "tdm"); /* build flags */
	if (!is_library)
		return !rest[0];
	return numbers > 2 &&
	       (!strncmp(rest, ".so", 3) || (rest[-1] == '.' && !strncmp(rest, "so", 2)));
}

static void program_path(pid_t pid, char out[PATH_MAX])
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	length = readlink(link, out, PATH_MAX - 1);
	out[length > 0 ? length : 0] = '\0';
}

static bool find_symbols(const struct process_module *module, struct elf_symbol symbols[SYMBOLS])
{
	for (int s = 0; s < SYMBOLS; s++)
		symbols[s] = (struct elf_symbol){.name = symbol_names[s]};
	return elf_symbols_find(module->elf->fd, symbols, SYMBOLS) == 0 && symbols[RUNTIME].address;
}

/* In the format of PY_VERSION_HEX; 0: older than all known versions. */
static uint32_t version_of(pid_t pid, uint64_t bias, const struct elf_symbol *symbols)
{
	uint64_t version;

	if (symbols[VERSION].address &&
	    process_memory_read(pid, &version, bias + symbols[VERSION].address, sizeof(version)))
		return (uint32_t)version;
	if (symbols[ONLY_SINCE_3_10].address)
		return PYTHON_VERSION(3, 10);
	return symbols[ONLY_SINCE_3_9].address ? PYTHON_VERSION(3, 9) : 0;
}

static int use_module(struct python_place *out, const struct process_module *module,
		      const struct elf_symbol *symbols, char *why, size_t why_bytes)
{
	uint32_t version = version_of(out->pid, module->bias, symbols);
	uint64_t published[PUBLISHED_BYTES / 8] = {0}, head;

	snprintf(out->path, sizeof(out->path), "%s", module->path);
	python_version_name(version, out->version, sizeof(out->version));
	out->runtime = module->bias + symbols[RUNTIME].address;
	out->runtime_bytes = symbols[RUNTIME].bytes;
	if (symbols[LOOP].address) {
		out->loop_start = module->bias + symbols[LOOP].address;
		out->loop_end = out->loop_start + symbols[LOOP].bytes;
	}
	if (symbols[COLD_LOOP].address) {
		out->cold_start = module->bias + symbols[COLD_LOOP].address;
		out->cold_end = out->cold_start + symbols[COLD_LOOP].bytes;
	}
	if (!process_memory_read_some(out->pid, published, out->runtime, sizeof(published))) {
		snprintf(why, why_bytes, "its memory cannot be read");
		return -EINVAL;
	}
	if (python_layout_find(version, published, &out->layout, why, why_bytes))
		return -EINVAL;
	if (!process_memory_read(out->pid, &head, out->runtime + out->layout.runtime_head,
				 sizeof(head)) ||
	    !head)
		return -EAGAIN;
	return 0;
}

int python_find_in(struct python_place *out, pid_t pid, const struct process_modules *modules,
		   char *why, size_t why_bytes)
{
	struct elf_symbol symbols[SYMBOLS];
	char program[PATH_MAX];

	*out = (struct python_place){.pid = pid};
	program_path(pid, program);
	out->is_program = has_python_name(program);
	for (size_t i = 0; i < modules->count; i++) {
		const struct process_module *module = &modules->list[i];
		bool is_program = !strcmp(module->path, program);

		/* A program of any name may contain an interpreter. */
		if (!is_program && !has_python_name(module->path))
			continue;
		if (find_symbols(module, symbols))
			return use_module(out, module, symbols, why, why_bytes);
	}
	return -ENOENT;
}
