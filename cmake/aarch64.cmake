# SPDX-License-Identifier: Apache-2.0
# Cross build for aarch64 with Debian's gcc-aarch64-linux-gnu. The libraries come from the folder
# XTRACE_ARM64_ROOT, which tools/arm64-root.sh makes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

if(NOT XTRACE_ARM64_ROOT)
	set(XTRACE_ARM64_ROOT "$ENV{XTRACE_ARM64_ROOT}")
endif()
if(NOT XTRACE_ARM64_ROOT)
	message(FATAL_ERROR "set XTRACE_ARM64_ROOT to a folder made by tools/arm64-root.sh")
endif()
set(XTRACE_ARM64_ROOT "${XTRACE_ARM64_ROOT}" CACHE PATH "Folder with Debian's arm64 packages")
# The checks that find the compiler read this file again, without the cache.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES XTRACE_ARM64_ROOT)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT "${XTRACE_ARM64_ROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${XTRACE_ARM64_ROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
	"${XTRACE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${XTRACE_ARM64_ROOT}/usr/share/pkgconfig")

# The name that an arm64 system has, too: tests may run in a chroot.
set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python of the tests")

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${XTRACE_ARM64_ROOT}")
