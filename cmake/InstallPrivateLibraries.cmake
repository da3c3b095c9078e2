# SPDX-License-Identifier: Apache-2.0
# Runs at install time: copies what programs and libraries need beyond libc, and what they open by
# path, into private_libdir, each under the name that the loader looks for, with its licence, and
# that of libiberty, which is linked into xtrace.

file(GET_RUNTIME_DEPENDENCIES
	EXECUTABLES ${programs}
	LIBRARIES ${libraries} ${opened}
	RESOLVED_DEPENDENCIES_VAR needed
	UNRESOLVED_DEPENDENCIES_VAR not_found
	DIRECTORIES ${library_folders}
	# The system provides the libraries of libc and the compiler.
	PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so"
		"^lib(asan|ubsan|tsan)\\.so" "^libgcc_s\\.so" "^libstdc\\+\\+\\.so")
if(not_found)
	message(FATAL_ERROR "not found: ${not_found}")
endif()

list(APPEND needed ${opened})
list(REMOVE_DUPLICATES needed)
foreach(library ${needed})
	get_filename_component(name "${library}" NAME)
	file(REAL_PATH "${library}" file)
	file(INSTALL FILES "${file}" RENAME "${name}"
		DESTINATION "${CMAKE_INSTALL_PREFIX}/${private_libdir}")
endforeach()

foreach(package libunwind8 libdw1 libdw1t64 libelf1 libelf1t64 libcjson1 liblzma5 libzstd1 zlib1g libprotobuf-c1 libsqlite3-0
		libbz2-1.0 libevent-2.1-7 libevent-2.1-7t64 libiberty-dev)
	set(licence "${licences}/${package}/copyright")
	if(EXISTS "${licence}")
		file(REAL_PATH "${licence}" file)
		file(INSTALL FILES "${file}" RENAME "copyright.${package}"
			DESTINATION "${CMAKE_INSTALL_PREFIX}/share/doc/xtrace/private-libraries")
	endif()
endforeach()
