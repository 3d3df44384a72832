#!/bin/sh
# As `gemini -o stream-json` speaks: one process, one turn; the first answer is none, the second is good.
id=none
for word in "$@"; do
    case "$word" in --session-id=* | --resume=*) id=${word#*=} ;; esac
done
prompt=$(cat)
printf '%s\n' "$prompt" >> heard
answer='about forty-two'
case "$prompt" in *'was not accepted'*) answer='{\"answer\":42}' ;; esac
printf '%s\n' \
    "{\"type\":\"init\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"session_id\":\"$id\",\"model\":\"m\"}" \
    '{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","role":"user","content":"x"}' \
    "{\"type\":\"message\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"role\":\"assistant\",\"content\":\"$answer\",\"delta\":true}" \
    '{"type":"result","timestamp":"2026-01-01T00:00:00.000Z","status":"success","stats":{"total_tokens":12,"input_tokens":10,"output_tokens":2,"cached":0,"duration_ms":5,"tool_calls":0}}'
