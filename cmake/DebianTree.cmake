# SPDX-License-Identifier: Apache-2.0
# Run by cpack before it packs: turns the tarball's tree into that of the Debian package.
#
#   /usr/bin                     xtrace, xtrace-merge
#   /usr/lib/TRIPLET/xtrace-gpu  lib/ of the tarball without Debian's libraries, and samples/
#   /usr/share/xtrace-gpu        the sample's source, sample traces, the CI gate, the dashboard,
#                                built-from
#   /usr/share/doc/xtrace-gpu    documents
#
# In /usr/lib/xtrace-gpu, cpack would call ldconfig for libraries that no loader should find.
cmake_policy(VERSION 3.25)
set(usr "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr")
set(here "${CMAKE_CURRENT_LIST_DIR}/debian")
set(architecture "")
if(CPACK_XTRACE_SYSROOT)
	set(architecture -a${CPACK_DEBIAN_PACKAGE_ARCHITECTURE} -f)
endif()
execute_process(COMMAND dpkg-architecture ${architecture} -qDEB_HOST_MULTIARCH
	OUTPUT_VARIABLE triplet OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(private lib/${triplet}/xtrace-gpu)
set(doc "${usr}/share/doc/xtrace-gpu")

function(run)
	execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# `from` and `to` are relative to /usr.
function(move from to)
	cmake_path(GET to PARENT_PATH folder)
	file(MAKE_DIRECTORY "${usr}/${folder}")
	file(RENAME "${usr}/${from}" "${usr}/${to}")
endfunction()

file(RENAME "${usr}/lib" "${usr}/all-libraries")
file(RENAME "${usr}/share/xtrace" "${usr}/all-shared")
move(all-libraries/libxtrace_inject.so ${private}/libxtrace_inject.so)
move(all-libraries/xtrace/simgpu ${private}/xtrace/simgpu)
move(all-shared/samples/llm_inference ${private}/samples/llm_inference)
file(GLOB sources RELATIVE "${usr}" "${usr}/all-shared/samples/llm_*")
foreach(file ${sources} all-shared/samples/pytorch_train.py all-shared/samples/python_work.py all-shared/samples/traces all-shared/ci
	all-shared/grafana all-shared/built-from)
	string(REPLACE all-shared share/xtrace-gpu to ${file})
	move(${file} ${to})
endforeach()
file(REMOVE_RECURSE "${usr}/all-libraries" "${usr}/all-shared")

move(share/doc/xtrace share/doc/xtrace-gpu)
file(REMOVE_RECURSE "${doc}/LICENSE" "${doc}/private-libraries")
move(share/zsh/site-functions/_xtrace share/zsh/vendor-completions/_xtrace)
file(REMOVE_RECURSE "${usr}/share/zsh/site-functions")

# Debian's loader finds all libraries, and a path that leads nowhere slows down the start.
file(GLOB libraries "${usr}/${private}/*.so" "${usr}/${private}/xtrace/simgpu/*.so.*")
foreach(binary "${usr}/bin/xtrace" ${libraries})
	file(RPATH_REMOVE FILE "${binary}")
	run(${CPACK_XTRACE_STRIP} --strip-unneeded --remove-section=.comment --remove-section=.note "${binary}")
endforeach()
run(${CPACK_XTRACE_STRIP} --strip-debug "${usr}/${private}/samples/llm_inference")
file(CHMOD ${libraries} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

execute_process(COMMAND date -u -R -d "@$ENV{SOURCE_DATE_EPOCH}"
	OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(XTRACE_MAINTAINER "${CPACK_PACKAGE_CONTACT}")
configure_file("${here}/copyright.in" "${doc}/copyright" @ONLY)
configure_file("${here}/changelog.in" "${doc}/changelog.Debian" @ONLY)
file(RENAME "${doc}/CHANGELOG.md" "${doc}/changelog")
file(GLOB pages "${usr}/share/man/man1/*.1")
run(gzip -9n "${doc}/changelog" "${doc}/changelog.Debian" ${pages})
set(XTRACE_PRIVATE ${private})
configure_file("${here}/lintian-overrides.in" "${usr}/share/lintian/overrides/xtrace-gpu" @ONLY)

# Set the modes explicitly, because the builder's umask may differ. X: folders, and files that are
# executable already.
run(chmod -R u=rwX,go=rX "${usr}")
