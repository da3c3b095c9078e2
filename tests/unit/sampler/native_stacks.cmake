# SPDX-License-Identifier: Apache-2.0
# Tests of native stacks, which the sampler takes on x86-64 only. Call paths are compiled with the
# options that matter to unwinding.
set(options_o0 -O0 -fno-omit-frame-pointer)
set(options_o0_no_fp -O0 -fomit-frame-pointer)
set(options_o1 -O1 -fno-optimize-sibling-calls)
set(options_o2 -O2 -fno-optimize-sibling-calls)
set(options_o2_fp -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls)
set(options_os_fp -Os -fno-omit-frame-pointer -fno-optimize-sibling-calls)
set(options_o2_fp_protected -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls
	-fstack-protector-strong -fstack-clash-protection -fcf-protection)
foreach(variant o0 o0_no_fp o1 o2 o2_fp os_fp o2_fp_protected)
	add_library(sampler_call_paths_${variant} OBJECT call_paths.c)
	target_compile_definitions(sampler_call_paths_${variant} PRIVATE VARIANT=${variant})
	target_compile_options(sampler_call_paths_${variant} PRIVATE ${options_${variant}} -g1)
	list(APPEND call_paths $<TARGET_OBJECTS:sampler_call_paths_${variant}>)
endforeach()

add_executable(unit_sampler_remote_unwind remote_unwind_test.c traced_child.c ${call_paths})
target_compile_options(unit_sampler_remote_unwind PRIVATE -fno-optimize-sibling-calls)
target_link_libraries(unit_sampler_remote_unwind PRIVATE
	xtrace_sampler ${CMOCKA_LIBRARIES} Threads::Threads)
add_test(NAME unit.sampler.remote_unwind COMMAND unit_sampler_remote_unwind)

if(XTRACE_SANITIZE MATCHES thread)
	# ThreadSanitizer defers the signals of the child, which may then block without a stack.
	set_tests_properties(unit.sampler.remote_unwind PROPERTIES DISABLED TRUE)
endif()

foreach(part frame_size perf_events)
	add_executable(unit_sampler_${part} ${part}_test.c)
	target_link_libraries(unit_sampler_${part} PRIVATE
		xtrace_sampler ${CMOCKA_LIBRARIES} Threads::Threads)
	add_test(NAME unit.sampler.${part} COMMAND unit_sampler_${part})
endforeach()
