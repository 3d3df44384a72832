#!/bin/sh
# As Claude speaks: it has hooks of its own, and raises one before it asks.
say() { printf '%s\n' "$1"; }
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    case "$line" in
    *'"subtype":"initialize"'*)
        id=${line#*\"request_id\":\"}
        id=${id%%\"*}
        say "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}" ;;
    *'"type":"user"'*)
        say '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":["Bash"]}'
        say '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"touch made"}}]},"session_id":"s1"}'
        say '{"type":"control_request","request_id":"h1","request":{"subtype":"hook_callback","callback_id":"PreToolUse","tool_use_id":"toolu_1","input":{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch made"},"tool_use_id":"toolu_1"}}}' ;;
    *'"request_id":"h1"'*)
        say '{"type":"control_request","request_id":"p1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch made"},"tool_use_id":"toolu_1"}}' ;;
    *'"request_id":"p1"'*)
        say '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"made"}]},"session_id":"s1"}'
        say '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","duration_ms":1,"num_turns":1,"usage":{"input_tokens":1,"output_tokens":1}}' ;;
    esac
done
