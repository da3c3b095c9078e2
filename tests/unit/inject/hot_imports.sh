#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the hot-path rules at build time: the objects whose code runs at every launch import only
# the symbols on this list. Usage: hot_imports.sh NM OBJECT...
set -eu
nm=$1
shift
allowed='
clock_gettime
memcpy
pthread_self
memmove
memset
__memcpy_chk
__stack_chk_fail
_GLOBAL_OFFSET_TABLE_
cupti
recorded_apis
api_uses
activity_complete
activity_header_of
activity_make_or_wait
activity_take_free
thread_buffer_calls_missed
thread_buffer_claim
thread_buffer_recover_from_jump
ring_turn
budget_take
budget_give_back
call_on_stack
python_module_codes
python_modules_spend
python_modules_wanted
python_runtime
python_walk
python_walk_none
thread_buffers_are_stalled
unsafe_kinds_note_context
unsafe_kinds_note_free
recording_paused
recording_was_paused
cupti_module_unloads
loader_generation_word
profiler_call_of
ring_wait_for_room
capture_stack
capture_marked_stack
crash_buffer_count_after_end
stack_capture_audit_interval
stack_cache_add
stack_cache_clear
cupti_subscriber_records_calls
skipped_call_began_unseen
skipped_call_count_unmatched
skipped_call_enter
skipped_call_leave
graph_instantiation
graph_level_enter_call
graph_level_enter_launch
graph_level_epoch
graph_level_give_up
graph_level_leave
graph_level_note_sync
graph_node
graph_node_added
graph_node_captured
graph_node_set
graph_node_starts
stack_cache_drop
stack_cache_find_other
stack_cache_frames_are_equal
stack_cache_have_room
stack_cache_make_room
stack_cache_place_entry
stack_cache_place_variant
stack_cache_take
stack_cache_variant_hash
stack_modules_clear
stack_modules_define
stack_walk
torch_capture
torch_thread_clear
torch_give_up
torch_has_thread_state
torch_is_module
torch_node_check
torch_nodes_accepted
torch_python_node_object
torch_python_node_type
torch_python_object_type
torch_runtime
torch_slots_find
torch_threads_seen
current_thread_buffer
'
# On aarch64, atomic operations are calls into libgcc, which choose an instruction.
ignored='^__([atu].*san_|aarch64_(cas|swp|ldadd|ldclr|ldset|ldeor)[1248]_)'
bad=0
for object in "$@"; do
	for symbol in $("$nm" -u --format=posix "$object" | cut -d' ' -f1 | grep -vE "$ignored"); do
		if ! printf '%s' "$allowed" | grep -qx "$symbol"; then
			echo "$object: imports $symbol, which is not allowed on the hot path"
			bad=1
		fi
	done
done
[ $# -ge 3 ] || { echo "three objects were expected"; bad=1; }
exit $bad
