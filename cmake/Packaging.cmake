# SPDX-License-Identifier: Apache-2.0
# What is installed where, and the tarball. Included last: it refers to the targets of all rooms.
#
#   bin/                    xtrace, xtrace-merge, xtrace-diff, xtrace-baseline, xtrace-dump
#   lib/                    libxtrace_inject.so
#   lib/xtrace/             the libraries that these need beyond libc, for our eyes only
#   lib/xtrace/simgpu/      the simulated libcuda.so.1, libcupti.so and libnvidia-ml.so.1
#   libexec/xtrace/         the conformance program, of a build with tests
#   share/xtrace/           samples, ci/ (a gate for CI), gpu-check.sh, patterns.sh, gpu-python.py, bench.sh, bench/; built-from, the commit that this is of
#   share/man, share/doc    the manual pages; documents; the licences of the libraries beside us

set(XTRACE_PRIVATE_LIBDIR lib/xtrace)

# DT_RPATH rather than DT_RUNPATH: it holds for what the private libraries need in turn, too.
set_target_properties(xtrace xtrace-merge xtrace-diff xtrace-baseline PROPERTIES INSTALL_RPATH "$ORIGIN/../${XTRACE_PRIVATE_LIBDIR}")
set_target_properties(xtrace_inject PROPERTIES INSTALL_RPATH "$ORIGIN/xtrace")
foreach(target xtrace xtrace-merge xtrace-diff xtrace-baseline xtrace_inject)
	target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()

install(TARGETS xtrace xtrace-merge xtrace-diff xtrace-baseline RUNTIME DESTINATION bin)
install(PROGRAMS tools/xtrace-dump DESTINATION bin)
install(TARGETS xtrace_inject LIBRARY DESTINATION lib)
install(TARGETS simcuda simcupti simnvml LIBRARY DESTINATION ${XTRACE_PRIVATE_LIBDIR}/simgpu)
install(PROGRAMS tools/gpu-check.sh tools/gpu-gate.sh tools/gpu-python.py tools/check-trace.py tools/bench.sh
	DESTINATION share/xtrace)
install(TARGETS ${bench_targets}
	RUNTIME DESTINATION share/xtrace/bench LIBRARY DESTINATION share/xtrace/bench)
install(PROGRAMS bench/bench.py bench/python_cost.py bench/torch_step.py DESTINATION share/xtrace/bench)
install(FILES bench/children.py bench/cpu.py bench/gpu.py bench/paired.py bench/tables.py DESTINATION share/xtrace/bench)
install(PROGRAMS tools/ci/gate.sh DESTINATION share/xtrace/ci)
install(DIRECTORY tools/ci/github tools/ci/gitlab DESTINATION share/xtrace/ci)
install(TARGETS llm_inference RUNTIME DESTINATION share/xtrace/samples)
install(FILES
	samples/llm_inference.c samples/llm_inference_runtime.cu samples/llm_kernels.ptx.h
	samples/llm_model.c samples/llm_model.h samples/llm_options.c samples/llm_options.h
	DESTINATION share/xtrace/samples)
install(PROGRAMS samples/pytorch_train.py tests/gpu/torch_work.py tests/gpu/python_work.py
	DESTINATION share/xtrace/samples)
install(PROGRAMS tests/gpu/yield.py DESTINATION share/xtrace RENAME gpu-yield.py)
install(PROGRAMS tests/gpu/nccl.py DESTINATION share/xtrace RENAME gpu-nccl.py)
install(PROGRAMS tests/gpu/diff.sh DESTINATION share/xtrace RENAME gpu-diff.sh)
install(FILES tests/gpu/work.c DESTINATION share/xtrace/samples)
install(PROGRAMS tests/gpu/patterns.sh DESTINATION share/xtrace)
install(PROGRAMS samples/patterns/pytorch_patterns.py DESTINATION share/xtrace/samples/patterns)
if(TARGET conformance)
	install(TARGETS conformance conformance_probe
		RUNTIME DESTINATION libexec/xtrace LIBRARY DESTINATION libexec/xtrace)
endif()
install(DIRECTORY samples/traces DESTINATION share/xtrace/samples FILES_MATCHING PATTERN "*.xtr")
# Completion, as the programs themselves say it.
set(bash_completion ${PROJECT_BINARY_DIR}/completion/xtrace-merge ${PROJECT_BINARY_DIR}/completion/xtrace)
# (bash looks for a file of the command's name.)
set(bash_links ${PROJECT_BINARY_DIR}/completion/xtrace-diff ${PROJECT_BINARY_DIR}/completion/xtrace-baseline)
set(zsh_completion ${PROJECT_BINARY_DIR}/completion/_xtrace-merge ${PROJECT_BINARY_DIR}/completion/_xtrace)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
add_custom_command(OUTPUT ${bash_completion} ${bash_links} ${zsh_completion}
	COMMAND xtrace-merge --completion bash > xtrace-merge
	COMMAND xtrace-merge --completion zsh > _xtrace-merge
	COMMAND xtrace completion bash > xtrace
	COMMAND xtrace completion zsh > _xtrace
	COMMAND ${CMAKE_COMMAND} -E create_symlink xtrace xtrace-diff
	COMMAND ${CMAKE_COMMAND} -E create_symlink xtrace xtrace-baseline
	DEPENDS xtrace-merge xtrace
	WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
add_custom_target(completion ALL DEPENDS ${bash_completion} ${zsh_completion})
install(FILES ${bash_completion} ${bash_links} DESTINATION share/bash-completion/completions)
install(FILES ${zsh_completion} DESTINATION share/zsh/site-functions)

install(FILES docs/man/xtrace.1 docs/man/xtrace-merge.1 docs/man/xtrace-diff.1 docs/man/xtrace-baseline.1 DESTINATION share/man/man1)
install(FILES LICENSE README.md CONTRIBUTING.md CHANGELOG.md DESTINATION share/doc/xtrace)
install(DIRECTORY docs DESTINATION share/doc/xtrace FILES_MATCHING PATTERN "*.md"
	PATTERN "*.schema.json"
	PATTERN "*.png"
	PATTERN man EXCLUDE)

# The libraries beyond libc. libunwind is opened by path at run time, so nothing names it as a
# dependency: it is found here. libzstd serves xtrace-dump, which is no program of ours to link.
find_library(XTRACE_LIBUNWIND NAMES libunwind-x86_64.so.8 REQUIRED)
find_library(XTRACE_LIBZSTD NAMES libzstd.so.1 REQUIRED)
install(CODE "
	set(private_libdir \"${XTRACE_PRIVATE_LIBDIR}\")
	set(programs \"$<TARGET_FILE:xtrace>\" \"$<TARGET_FILE:xtrace-merge>\"
		\"$<TARGET_FILE:xtrace-diff>\" \"$<TARGET_FILE:xtrace-baseline>\")
	set(opened \"${XTRACE_LIBUNWIND}\" \"${XTRACE_LIBZSTD}\")
	set(libraries \"$<TARGET_FILE:xtrace_inject>\")
	include(\"${CMAKE_CURRENT_LIST_DIR}/InstallPrivateLibraries.cmake\")
")

install(CODE "
	execute_process(COMMAND git -C \"${PROJECT_SOURCE_DIR}\" describe --always --dirty --abbrev=12
		OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
	if(NOT commit)
		set(commit \"an unknown commit\")
	endif()
	file(WRITE \"${PROJECT_BINARY_DIR}/built-from\" \"\${commit}\\n\")
	file(INSTALL FILES \"${PROJECT_BINARY_DIR}/built-from\"
		DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/xtrace\")
")

if(BUILD_TESTING AND NOT XTRACE_SANITIZE)
	add_test(NAME package.install COMMAND ${PROJECT_SOURCE_DIR}/tools/check-install.sh
		${PROJECT_BINARY_DIR})
	# What is built on newer systems binds to newer symbols: releases are built on Debian 12.
	execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc_version)
	string(REGEX MATCH "[0-9.]+" glibc_version "${glibc_version}")
	if(glibc_version VERSION_LESS_EQUAL 2.36)
		add_test(NAME house.glibc COMMAND ${PROJECT_SOURCE_DIR}/tools/check-glibc.sh
			$<TARGET_FILE:xtrace> $<TARGET_FILE:xtrace-merge> $<TARGET_FILE:xtrace-diff>
			$<TARGET_FILE:xtrace-baseline>
			$<TARGET_FILE:xtrace_inject> $<TARGET_FILE:simcuda>
			$<TARGET_FILE:simcupti> $<TARGET_FILE:simnvml> $<TARGET_FILE:llm_inference>
			${XTRACE_LIBUNWIND} ${XTRACE_LIBZSTD})
	else()
		message(STATUS "glibc ${glibc_version}: what is built here is not for older systems")
	endif()
endif()

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME xtrace)
set(CPACK_PACKAGE_VENDOR "the xtrace authors")
set(CPACK_PACKAGE_FILE_NAME xtrace-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
include(CPack)
