/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace doctor: says what was found on this machine, and what will work.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture_options.h"
#include "commands.h"
#include "doctor_facts.h"
#include "doctor_probe.h"
#include "json_file.h"
#include "log/base/number_format.h"
#include "page/page.h"
#include "version.h"

struct findings {
	bool as_json;
	struct install_paths paths;
	struct facts facts;
	struct probe probes[PROBE_KINDS];
};

static const struct option_row option_rows[] = {
	{"json", .help = "Print one JSON document", .apply = option_flag,
	 .offset = offsetof(struct findings, as_json)},
	{0},
};

static const struct {
	const char *key, *name;
} probe_names[] = {
	[PROBE_PYTHON] = {"python", "record Python programs"},
	[PROBE_PROGRAM] = {"programs", "record other programs"},
	[PROBE_SIMULATED] = {"simulated", "record on the simulated GPU"},
};

/* "12.8", from CUDA's 1000 * major + 10 * minor. */
static const char *cuda_release(char out[16], uint32_t version)
{
	snprintf(out, 16, "%u.%u", version / 1000, version / 10 % 100);
	return out;
}

/* The probe that saw the GPUs, or else the first. */
static const struct probe *best_probe(const struct findings *found)
{
	const struct probe *probes = found->probes;

	return probes[PROBE_PYTHON].gpu_count >= probes[PROBE_PROGRAM].gpu_count
		       ? &probes[PROBE_PYTHON]
		       : &probes[PROBE_PROGRAM];
}

static bool can_record(const struct findings *found)
{
	return found->probes[PROBE_PYTHON].works || found->probes[PROBE_PROGRAM].works;
}

static void print_gpus(const struct probe *probe)
{
	for (unsigned i = 0, same; i < probe->gpu_count; i += same) {
		for (same = 1; i + same < probe->gpu_count; same++)
			if (strcmp(probe->gpus[i], probe->gpus[i + same]) != 0)
				break;
		printf("%-12s", i ? "" : "GPU");
		if (same > 1)
			printf("%u x ", same);
		printf("%s\n", probe->gpus[i]);
	}
	if (!probe->gpu_count)
		printf("%-12snone found\n", "GPU");
}

static void print_driver(const struct findings *found)
{
	uint32_t version = found->probes[PROBE_PYTHON].cuda_version;
	char release[16];

	if (!version)
		version = found->probes[PROBE_PROGRAM].cuda_version;
	printf("%-12s%s", "driver", *found->facts.driver ? found->facts.driver : "none found");
	if (version)
		printf(", CUDA %s", cuda_release(release, version));
	printf("\n");
}

static void print_python(const struct probe *probe)
{
	if (!*probe->python) {
		printf("%-12snone found\n", "Python");
		return;
	}
	printf("%-12s%s, %s", "Python", probe->python_version, probe->python);
	if (*probe->torch_version)
		printf(", PyTorch %s", probe->torch_version);
	printf("\n");
}

static void print_settings(const struct facts *facts)
{
	if (facts->injection_path)
		printf("%-12sCUDA_INJECTION64_PATH=%s is replaced while xtrace records\n", "note",
		       facts->injection_path);
	if (facts->preload)
		printf("%-12sLD_PRELOAD=%s also applies to recorded programs\n", "note",
		       facts->preload);
}

static void print_facts(const struct findings *found)
{
	const struct facts *facts = &found->facts;
	char commit[64], size[TIME_BYTES];

	version_commit(commit, sizeof(commit));
	printf("%-12s%s, commit %s\n%-12s%s\n", "xtrace", XTRACE_VERSION, commit, "",
	       found->paths.program);
	printf("%-12s%s%s\n", "system", *facts->system ? facts->system : "unknown",
	       facts->is_container ? ", in a container" : "");
	printf("%-12s%s, glibc %s\n", "", facts->kernel, facts->glibc);
	print_driver(found);
	print_gpus(best_probe(found));
	print_python(&found->probes[PROBE_PYTHON]);
	if (*facts->driver)
		printf("%-12sthe driver lets %s profile%s\n", "permissions",
		       facts->restricts_profiling ? "administrators only" : "all users",
		       facts->restricts_profiling && facts->is_administrator ? "; you are one"
									     : "");
	printf("%-12sperf_event_paranoid %s, for CPU sampling; ptrace_scope %s, also for "
	       "xtrace attach\n",
	       *facts->driver ? "" : "permissions", facts->perf_event_paranoid,
	       facts->ptrace_scope);
	format_bytes(size, facts->free_bytes);
	printf("%-12s%s free in this directory%s\n", "disk", size,
	       facts->can_write ? "" : ", which you cannot write to: record with -o DIR");
	print_settings(facts);
}

static void print_answer(bool is_yes, const char *what)
{
	printf("  %-5s%s\n", is_yes ? "yes" : "no", what);
}

static void print_probe(const struct findings *found, enum probe_kind kind)
{
	const struct probe *probe = &found->probes[kind];

	print_answer(probe->works, probe_names[kind].name);
	if (!probe->works)
		printf("       %s\n", probe->reason);
	if (probe->works && kind != PROBE_SIMULATED)
		printf("       with %s\n       (CUPTI %u, %s)\n", probe->cupti_path,
		       probe->cupti_version, probe->cupti_found);
	if (probe->works && kind == PROBE_PYTHON && !probe->has_python_frames)
		printf("       without Python lines: %s\n", *probe->reason ? probe->reason
							    : getenv("XTRACE_PYTHON")
								    ? "XTRACE_PYTHON is off"
								    : "for an unknown reason");
}

static void print_text(const struct findings *found)
{
	print_facts(found);
	printf("\nWhat will work\n");
	for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
		print_probe(found, kind);
	print_answer(page_is_there(), "report in the browser");
	if (!page_is_there())
		printf("       xtrace was built without node: xtrace report prints text\n");
}

static void add_text(cJSON *object, const char *name, const char *text)
{
	if (text && *text)
		cJSON_AddStringToObject(object, name, text);
	else
		cJSON_AddNullToObject(object, name);
}

static void add_facts(cJSON *root, const struct findings *found)
{
	const struct facts *facts = &found->facts;
	const struct probe *best = best_probe(found);
	cJSON *gpus = cJSON_AddArrayToObject(root, "gpus");
	char commit[64];

	version_commit(commit, sizeof(commit));
	for (unsigned i = 0; i < best->gpu_count; i++)
		cJSON_AddItemToArray(gpus, cJSON_CreateString(best->gpus[i]));
	add_text(root, "commit", commit);
	add_text(root, "program", found->paths.program);
	add_text(root, "system", facts->system);
	add_text(root, "kernel", facts->kernel);
	add_text(root, "glibc_version", facts->glibc);
	add_text(root, "driver_version", facts->driver);
	cJSON_AddBoolToObject(root, "is_container", facts->is_container);
	cJSON_AddBoolToObject(root, "driver_restricts_profiling", facts->restricts_profiling);
	cJSON_AddBoolToObject(root, "is_administrator", facts->is_administrator);
	add_text(root, "perf_event_paranoid", facts->perf_event_paranoid);
	add_text(root, "ptrace_scope", facts->ptrace_scope);
	cJSON_AddBoolToObject(root, "can_write", facts->can_write);
	cJSON_AddNumberToObject(root, "free_bytes", (double)facts->free_bytes);
	add_text(root, "cuda_injection64_path", facts->injection_path);
	add_text(root, "ld_preload", facts->preload);
}

static void add_probe(cJSON *root, enum probe_kind kind, const struct probe *probe)
{
	cJSON *object = cJSON_AddObjectToObject(root, probe_names[kind].key);

	cJSON_AddBoolToObject(object, "works", probe->works);
	add_text(object, "reason", probe->reason);
	cJSON_AddNumberToObject(object, "cuda_version", probe->cuda_version);
	cJSON_AddNumberToObject(object, "cupti_version", probe->cupti_version);
	add_text(object, "cupti_path", probe->cupti_path);
	add_text(object, "cupti_found", probe->cupti_found);
	if (kind != PROBE_PYTHON)
		return;
	add_text(object, "python", probe->python);
	add_text(object, "python_version", probe->python_version);
	add_text(object, "torch_version", probe->torch_version);
	cJSON_AddBoolToObject(object, "has_python_frames", probe->has_python_frames);
}

static int print_json(const struct findings *found)
{
	cJSON *root = cJSON_CreateObject(), *works;
	char *text;

	cJSON_AddStringToObject(root, "format", "xtrace.doctor");
	cJSON_AddNumberToObject(root, "format_version", 1);
	cJSON_AddStringToObject(root, "xtrace_version", XTRACE_VERSION);
	cJSON_AddBoolToObject(root, "can_record", can_record(found));
	add_facts(root, found);
	works = cJSON_AddObjectToObject(root, "recording");
	for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
		add_probe(works, kind, &found->probes[kind]);
	cJSON_AddBoolToObject(root, "has_page", page_is_there());
	text = json_file_text(root);
	cJSON_Delete(root);
	if (text)
		fputs(text, stdout);
	free(text);
	return text ? 0 : -1;
}

static int run_doctor(const struct command *command, int argc, char **argv)
{
	struct findings found = {0};
	int status, count;

	if (argc == 2 && !strcmp(argv[1], PROBE_OPERAND))
		return probe_main();
	status = command_parse(command, NULL, &found, argc, argv, 0, &count);
	if (status != COMMAND_GO_ON)
		return status;
	status = capture_find_parts(&(struct capture_options){.simulates = true}, &found.paths);
	if (status)
		return status;
	found.facts = facts_read();
	for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
		probe_run(kind, &found.paths, &found.probes[kind]);
	if (!found.as_json)
		print_text(&found);
	else if (print_json(&found)) {
		print_error("out of memory");
		return STATUS_FAILED;
	}
	return can_record(&found) ? STATUS_OK : STATUS_INCOMPLETE;
}

static const char details[] =
	"Records a small program on the GPU, from Python and from C, and on the simulated GPU.\n"
	"It tests the Python that 'xtrace record' uses for scripts.\n\n"
	"Exit status: 0 if programs can be recorded on a GPU, 1 if not, 2 for wrong usage.\n";

const struct command command_doctor = {
	.name = "doctor",
	.arguments = "[--json]",
	.summary = "Check this machine and report what will work",
	.details = details,
	.options = option_rows,
	.run = run_doctor,
};
