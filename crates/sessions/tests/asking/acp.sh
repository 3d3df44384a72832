#!/bin/sh
# As an ACP agent speaks. What it says is put in by the test.
say() { printf '%s\n' "$1"; }
reply() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case "$line" in
    *'"method":"initialize"'*)
        reply "$id" '{"protocolVersion":1,"agentInfo":{"name":"x","version":"1"},"agentCapabilities":{}}' ;;
    *'"method":"session/new"'*)
        reply "$id" 'OPENED' ;;
    *'"method":"session/set_mode"'*)
        reply "$id" '{}' ;;
    *'"method":"session/prompt"'*)
        prompt=$id
        cat <<'TURN'
LINES
TURN
        if ENDS; then reply "$prompt" '{"stopReason":"end_turn"}'; fi ;;
    *'"outcome":'*)
        reply "$prompt" '{"stopReason":"end_turn"}' ;;
    *'"method":"session/cancel"'*)
        reply "$prompt" '{"stopReason":"cancelled"}' ;;
    esac
done
