#!/bin/sh
# As `codex exec --json` speaks. It misses the interrupt that arrives before its turn has started.
trap 'missed=1' INT
printf '%s\n' '{"type":"thread.started","thread_id":"01a1e064-31c5-74c3-80fd-daaa3d15f54b"}'
while [ -z "$missed" ]; do sleep 0.01; done
trap - INT
printf '%s\n' '{"type":"turn.started"}'
exec sleep 600
