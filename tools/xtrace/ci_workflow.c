/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CI systems of xtrace ci init, and the workflow of each.
 */
#include "ci.h"

#include <string.h>

/*
 * Writes a text as a YAML scalar in double quotes. GitHub evaluates ${{ }} even there, so write it
 * as an expression that evaluates to itself.
 */
static void put_yaml(FILE *out, const char *text, bool is_github)
{
	static const char expression[] = "${{";

	fputc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (is_github && !strncmp((const char *)p, expression, strlen(expression))) {
			fputs("${{ '${{' }}", out);
			p += strlen(expression) - 1;
		} else if (*p == '"' || *p == '\\') {
			fprintf(out, "\\%c", *p);
		} else if (*p < ' ' || *p == 0x7f) {
			fprintf(out, "\\x%02x", *p);
		} else {
			fputc(*p, out);
		}
	}
	fputc('"', out);
}

/* How to change from the simulated GPU to a real one. */
static void put_switch(FILE *out, const struct ci_setup *setup, const char *indent,
		       const char *runner, const char *option)
{
	if (!setup->is_simulated) {
		fprintf(out,
			"%s# A machine with the kind of GPU that the baseline in " CI_BASELINE
			" is from.\n",
			indent);
		return;
	}
	fprintf(out,
		"%s# This job uses the simulated GPU, whose times are invented. To measure a real "
		"one:\n"
		"%s# 1. Replace the next line with the labels of a machine with a GPU:\n"
		"%s#    %s\n"
		"%s# 2. Delete the line with %s.\n"
		"%s# 3. On that machine, measure again, without --simulate:\n"
		"%s#    xtrace ci init %s --force -- COMMAND\n",
		indent, indent, indent, runner, indent, option, indent, indent, setup->host->name);
}

static void put_github_steps(FILE *out, const struct ci_setup *setup)
{
	fputs("    steps:\n"
	      "      - uses: actions/checkout@v4\n",
	      out);
	if (!setup->xtrace)
		fputs("      - name: Install xtrace\n"
		      "        run: |\n"
		      "          python3 -m venv \"$RUNNER_TEMP/xtrace\"\n"
		      "          \"$RUNNER_TEMP/xtrace/bin/pip\" install "
		      "xtrace-gpu==" XTRACE_VERSION "\n",
		      out);
	fputs("      # The report is in the summary of the job. action.yml lists all inputs.\n"
	      "      - uses: ./" CI_SCRIPTS "/github\n"
	      "        with:\n"
	      "          command: ",
	      out);
	put_yaml(out, setup->line, true);
	fprintf(out, "\n          runs: \"%u\"\n          xtrace: ", setup->runs);
	if (setup->xtrace)
		put_yaml(out, setup->xtrace, true);
	else
		fputs("${{ runner.temp }}/xtrace", out);
	if (setup->xtrace && strstr(setup->xtrace, "://"))
		fputs("\n          # sha256: CHECKSUM", out);
	if (setup->is_simulated)
		fputs("\n          bench-options: --simulate", out);
	fputs("\n"
	      "          # To also comment on the pull request, grant pull-requests: write above.\n"
	      "          # comment: \"true\"\n"
	      "      - uses: actions/upload-artifact@v4\n"
	      "        if: always()\n"
	      "        with:\n"
	      "          name: gpu-time\n"
	      "          path: |\n"
	      "            xtrace-gate/report.md\n"
	      "            xtrace-gate/junit.xml\n"
	      "            xtrace-gate/flame.html\n",
	      out);
}

static void write_github(FILE *out, const struct ci_setup *setup)
{
	fputs("# Fails a pull request that makes the program slower on the GPU.\n"
	      "# Written by 'xtrace ci init'. The rules are in " CI_RULES ".\n"
	      "name: GPU time\n"
	      "on: pull_request\n"
	      "jobs:\n"
	      "  gpu-time:\n",
	      out);
	put_switch(out, setup, "    ", "runs-on: [self-hosted, gpu]", "bench-options");
	fprintf(out, "    runs-on: %s\n",
		setup->is_simulated ? "ubuntu-latest" : "[self-hosted, gpu]");
	fputs("    permissions:\n"
	      "      contents: read\n",
	      out);
	put_github_steps(out, setup);
}

/* GitLab replaces $NAME in variables, except with expand: false. */
static void put_gitlab_variable(FILE *out, const char *name, const char *value)
{
	bool is_literal = strchr(value, '$') != NULL;

	fprintf(out, "    %s: %s", name, is_literal ? "{expand: false, value: " : "");
	put_yaml(out, value, false);
	fputs(is_literal ? "}\n" : "\n", out);
}

static void put_gitlab_script(FILE *out, const struct ci_setup *setup)
{
	fputs("  script:\n", out);
	if (!setup->xtrace)
		fputs("    - python3 -m venv xtrace-gate/venv\n"
		      "    - xtrace-gate/venv/bin/pip install xtrace-gpu==" XTRACE_VERSION "\n",
		      out);
	fputs("    - sh " CI_SCRIPTS "/gate.sh\n", out);
}

static void write_gitlab(FILE *out, const struct ci_setup *setup)
{
	fputs("# Fails a merge request that makes the program slower on the GPU.\n"
	      "# Written by 'xtrace ci init'. The rules are in " CI_RULES ".\n"
	      "include:\n"
	      "  - local: " CI_SCRIPTS "/gitlab/xtrace-gate.yml\n"
	      "gpu-time:\n"
	      "  extends: .xtrace-gate\n"
	      "  rules:\n"
	      "    - if: $CI_PIPELINE_SOURCE == \"merge_request_event\"\n",
	      out);
	put_switch(out, setup, "  ", "tags: [gpu]", "XTRACE_GATE_BENCH_OPTIONS");
	fputs(setup->is_simulated ? "  image: python:3.12\n" : "  tags: [gpu]\n", out);
	fputs("  variables:\n", out);
	put_gitlab_variable(out, "XTRACE_GATE_COMMAND", setup->line);
	fprintf(out, "    XTRACE_GATE_RUNS: \"%u\"\n", setup->runs);
	put_gitlab_variable(out, "XTRACE_GATE_XTRACE",
			    setup->xtrace ? setup->xtrace : "xtrace-gate/venv");
	if (setup->xtrace && strstr(setup->xtrace, "://"))
		fputs("    # XTRACE_GATE_SHA256: CHECKSUM\n", out);
	if (setup->is_simulated)
		put_gitlab_variable(out, "XTRACE_GATE_BENCH_OPTIONS", "--simulate");
	put_gitlab_script(out, setup);
}

static const struct ci_host hosts[] = {
	{"github", ".github/workflows/gpu-time.yml", ".github", write_github},
	{"gitlab", ".gitlab-ci.yml", ".gitlab-ci.yml", write_gitlab},
};

const struct ci_host *ci_host_find(const char *name)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (!strcmp(hosts[i].name, name))
			return &hosts[i];
	return NULL;
}
