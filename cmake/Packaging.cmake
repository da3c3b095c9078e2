# SPDX-License-Identifier: Apache-2.0
# The installed tree, the release tarball and the Debian package (Debian.cmake). Included last,
# because it refers to all targets.
#
#   bin/                    xtrace, xtrace-merge (a link to it)
#   lib/                    libxtrace_inject.so
#   lib/xtrace/             the libraries beyond libc that these need
#   lib/xtrace/simgpu/      the simulated libcuda.so.1, libcupti.so and libnvidia-ml.so.1
#   share/xtrace/           samples/, ci/ (a CI gate), grafana/, and built-from (the commit)
#   share/man, share/doc    manual pages and documents
#
# The component `tests`, which is in no package, has programs for scripts of a checkout, laid out as
# in a build: see bench/places.py.
#
#   libexec/xtrace/         bench/, samples/, and tests/ in a build with tests

set(XTRACE_PRIVATE_LIBDIR lib/xtrace)

# DT_RPATH also applies to the dependencies of the private libraries. DT_RUNPATH does not.
set_target_properties(xtrace PROPERTIES INSTALL_RPATH "$ORIGIN/../${XTRACE_PRIVATE_LIBDIR}")
set_target_properties(xtrace_inject PROPERTIES INSTALL_RPATH "$ORIGIN/xtrace")
foreach(target xtrace xtrace_inject)
	target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()

install(TARGETS xtrace RUNTIME DESTINATION bin)
install(FILES $<TARGET_FILE_DIR:xtrace>/xtrace-merge DESTINATION bin)
# Not in the packages, which run without MPI.
if(TARGET xtrace-mpi)
	install(TARGETS xtrace-mpi RUNTIME DESTINATION bin COMPONENT mpi EXCLUDE_FROM_ALL)
endif()
install(TARGETS xtrace_inject LIBRARY DESTINATION lib)
install(TARGETS simcuda simcupti simnvml LIBRARY DESTINATION ${XTRACE_PRIVATE_LIBDIR}/simgpu)
install(TARGETS ${bench_targets} COMPONENT tests EXCLUDE_FROM_ALL
	RUNTIME DESTINATION libexec/xtrace/bench LIBRARY DESTINATION libexec/xtrace/bench)
install(TARGETS llm_inference COMPONENT tests EXCLUDE_FROM_ALL
	RUNTIME DESTINATION libexec/xtrace/samples)
if(TARGET conformance)
	install(TARGETS conformance conformance_probe COMPONENT tests EXCLUDE_FROM_ALL
		RUNTIME DESTINATION libexec/xtrace/tests LIBRARY DESTINATION libexec/xtrace/tests)
endif()
install(PROGRAMS tools/ci/gate.sh DESTINATION share/xtrace/ci)
install(DIRECTORY tools/ci/github tools/ci/gitlab DESTINATION share/xtrace/ci)
install(FILES tools/ci/rules DESTINATION share/xtrace/ci)
install(FILES tools/grafana/xtrace.json DESTINATION share/xtrace/grafana)
install(TARGETS llm_inference RUNTIME DESTINATION share/xtrace/samples)
install(FILES
	samples/llm_inference.c samples/llm_inference_runtime.cu samples/llm_kernels.ptx.h
	samples/llm_model.c samples/llm_model.h
	DESTINATION share/xtrace/samples)
install(PROGRAMS samples/pytorch_train.py samples/python_work.py DESTINATION share/xtrace/samples)
install(DIRECTORY samples/traces DESTINATION share/xtrace/samples FILES_MATCHING PATTERN "*.xtr")
# bash looks for a file with the name of the command, so the link needs one, too.
set(completions ${PROJECT_BINARY_DIR}/completion)
file(MAKE_DIRECTORY ${completions})
add_custom_command(OUTPUT ${completions}/xtrace ${completions}/_xtrace ${completions}/xtrace-merge
	COMMAND xtrace completion bash > xtrace
	COMMAND xtrace completion zsh > _xtrace
	COMMAND ${CMAKE_COMMAND} -E create_symlink xtrace xtrace-merge
	DEPENDS xtrace
	WORKING_DIRECTORY ${completions})
add_custom_target(completion ALL
	DEPENDS ${completions}/xtrace ${completions}/_xtrace ${completions}/xtrace-merge)
install(FILES ${completions}/xtrace ${completions}/xtrace-merge
	DESTINATION share/bash-completion/completions)
install(FILES ${completions}/_xtrace DESTINATION share/zsh/site-functions)

install(FILES docs/man/xtrace.1 docs/man/xtrace-merge.1 docs/man/xtrace-diff.1 docs/man/xtrace-baseline.1
	docs/man/xtrace-history.1 DESTINATION share/man/man1)
install(FILES LICENSE README.md CONTRIBUTING.md CHANGELOG.md DESTINATION share/doc/xtrace)
install(DIRECTORY docs DESTINATION share/doc/xtrace FILES_MATCHING PATTERN "*.md"
	PATTERN "*.schema.json"
	PATTERN "*.png"
	PATTERN man EXCLUDE)

# The libraries beyond libc. No binary depends on libunwind: it is opened by path at run time.
find_library(XTRACE_LIBUNWIND NAMES libunwind-${CMAKE_SYSTEM_PROCESSOR}.so.8 REQUIRED)
set(XTRACE_LICENCES ${CMAKE_SYSROOT}/usr/share/doc CACHE PATH "Folders of Debian's packages with their licences")
if(CMAKE_SYSROOT)
	set(library_folders "${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()
install(CODE "
	set(library_folders ${library_folders})
	set(private_libdir \"${XTRACE_PRIVATE_LIBDIR}\")
	set(licences \"${XTRACE_LICENCES}\")
	set(programs \"$<TARGET_FILE:xtrace>\")
	set(opened \"${XTRACE_LIBUNWIND}\")
	set(libraries \"$<TARGET_FILE:xtrace_inject>\")
	include(\"${CMAKE_CURRENT_LIST_DIR}/InstallPrivateLibraries.cmake\")
")

install(CODE "
	execute_process(COMMAND git -C \"${PROJECT_SOURCE_DIR}\" describe --always --dirty --abbrev=12 --exclude=*
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
	# The installation writes built-from.
	set_tests_properties(package.install PROPERTIES RESOURCE_LOCK install)
	# The check must fail on what is not portable.
	set(check_portable ${PROJECT_SOURCE_DIR}/tools/check-portable.py)
	add_test(NAME house.portable_glibc COMMAND ${check_portable} --glibc 2.2 $<TARGET_FILE:xtrace>)
	add_test(NAME house.portable_library COMMAND ${check_portable} $<TARGET_FILE:xtrace>)
	add_test(NAME house.portable_path COMMAND ${check_portable} $<TARGET_FILE:xtrace>)
	set_tests_properties(house.portable_glibc PROPERTIES PASS_REGULAR_EXPRESSION
		"xtrace: needs [a-z_]+ of glibc 2[.][0-9]+")
	set_tests_properties(house.portable_library PROPERTIES PASS_REGULAR_EXPRESSION
		"xtrace: needs the library libdw.so.1")
	set_tests_properties(house.portable_path PROPERTIES PASS_REGULAR_EXPRESSION
		"xtrace: searches .* for libraries")
endif()

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME xtrace)
set(CPACK_PACKAGE_VENDOR "the xtrace authors")
set(CPACK_PACKAGE_FILE_NAME xtrace-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
# The publisher of the Debian package sets an address that works.
set(XTRACE_MAINTAINER "The xtrace authors <xtrace@example.org>" CACHE STRING
	"The name and address in the Debian package")
set(CPACK_PACKAGE_CONTACT "${XTRACE_MAINTAINER}")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/Debian.cmake)
set(CPACK_XTRACE_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_XTRACE_SYSROOT ${CMAKE_SYSROOT})
set(CPACK_XTRACE_LIBRARIES ${library_folders})
set(CPACK_XTRACE_STRIP ${CMAKE_STRIP})
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
	set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_XTRACE_SIMGPU ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/xtrace/simgpu)
include(CPack)
