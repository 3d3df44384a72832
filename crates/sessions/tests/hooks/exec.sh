#!/bin/sh
# As `codex exec --json` speaks: one process, one turn, the prompt on stdin, one command unasked.
cat >> heard
printf '%s\n' \
    '{"type":"thread.started","thread_id":"01a1e064-31c5-74c3-80fd-daaa3d15f54b"}' \
    '{"type":"turn.started"}' \
    '{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"touch made","aggregated_output":"","exit_code":null,"status":"in_progress"}}' \
    '{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"touch made","aggregated_output":"made","exit_code":0,"status":"completed"}}' \
    '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
