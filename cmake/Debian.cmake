# SPDX-License-Identifier: Apache-2.0
# Included by cpack for each generator: the fields of the Debian package. It has its own name,
# because Debian has another package `xtrace`.
if(NOT CPACK_GENERATOR STREQUAL DEB)
	return()
endif()

set(CPACK_DEBIAN_PACKAGE_NAME xtrace-gpu)
set(CPACK_DEBIAN_PACKAGE_VERSION ${CPACK_PACKAGE_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "shows which line of code causes which GPU time")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"xtrace records the CUDA calls of a program with their call stacks, native and
Python, and the GPU work that they cause. It needs no change of the program.

Reports are flame graphs, timelines, tables and findings. Runs can be compared
with statistics. Recording needs NVIDIA's driver and CUPTI, or the simulated
GPU of this package.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# dpkg-shlibdeps finds what is linked. The recorder opens libunwind at run time. Debian's serves:
# all our tests run with it. The recorder's own libzstd is linked statically, so it meets no other.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The sample needs libcuda.so.1, of the driver or of the simulated GPU.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CPACK_XTRACE_SIMGPU} ${CPACK_XTRACE_LIBRARIES})
if(CPACK_XTRACE_SYSROOT)
	set(ENV{DPKG_ADMINDIR} "${CPACK_XTRACE_SYSROOT}/var/lib/dpkg")
	set(ENV{DEB_HOST_ARCH} ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libunwind8, python3:any")

# Debian's xtrace, a tracer of X11, also has /usr/bin/xtrace and its manual page. Debian's policy
# (10.1) would rename ours, but the command is the interface of all our packages. Until one of the
# packages renames its program, both cannot be installed. Neither replaces the other.
set(CPACK_DEBIAN_PACKAGE_CONFLICTS xtrace)

# Same input, same bytes: cpack gives all files the date of the commit.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
	execute_process(COMMAND git -C "${CPACK_XTRACE_SOURCE_DIR}" log -1 --format=%ct
		OUTPUT_VARIABLE epoch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	if(NOT epoch) # a source without git
		string(TIMESTAMP epoch %s UTC)
	endif()
	set(ENV{SOURCE_DATE_EPOCH} ${epoch})
endif()
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/DebianTree.cmake")
