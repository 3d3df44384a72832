#!/bin/sh
# As `codex exec --json` speaks: one process for one turn, which never ends by itself.
cat > /dev/null
printf '%s\n' '{"type":"thread.started","thread_id":"01a1e064-31c5-74c3-80fd-daaa3d15f54b"}' '{"type":"turn.started"}'
exec sleep 600
