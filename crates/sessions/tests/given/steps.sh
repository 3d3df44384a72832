#!/bin/sh
# As `codex exec --json` speaks: one process for one turn, which goes on when its directory has these files. From
# its answer on, it ignores interrupts.
wait_for() { until [ -e "$1" ]; do sleep 0.01; done; }
cat > /dev/null
printf '%s\n' '{"type":"thread.started","thread_id":"01a1e064-31c5-74c3-80fd-daaa3d15f54b"}' '{"type":"turn.started"}'
wait_for say
trap '' INT
printf '%s\n' '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}'
touch said
wait_for go
rm -f go
printf '%s\n' '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
while [ -e stay ]; do sleep 0.01; done
touch gone
