#!/bin/sh
# As an ACP agent speaks: every prompt wants to run one command.
say() { printf '%s\n' "$1"; }
update() {
    say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":$1}}"
}
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case "$line" in
    *'"method":"initialize"'*)
        say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"x\",\"version\":\"1\"},\"agentCapabilities\":{}}}" ;;
    *'"method":"session/new"'*)
        say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s1\"}}" ;;
    *'"method":"session/prompt"'*)
        prompt=$id
        say "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\",\"options\":[{\"optionId\":\"once\",\"name\":\"Allow\",\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_once\"}],\"toolCall\":{\"toolCallId\":\"c1\",\"status\":\"pending\",\"title\":\"touch made\",\"kind\":\"execute\",\"locations\":[],\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"makes it\"}}]}}}" ;;
    *'"optionId":"once"'*)
        update "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":\"completed\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"made\"}}]}"
        say "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"end_turn\"}}" ;;
    *'"optionId":"no"'*)
        update "{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":\"failed\"}"
        say "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"end_turn\"}}" ;;
    *'"method":"session/cancel"'*)
        say "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"cancelled\"}}" ;;
    esac
done
