#!/bin/sh
# As Claude speaks. What it does is in the prompt.
say() { printf '%s\n' "$1"; }
text() {
    say "{\"type\":\"assistant\",\"message\":{\"id\":\"m$1\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]},\"session_id\":\"s1\"}"
}
result() {
    say '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","duration_ms":1,"num_turns":1,"usage":{"input_tokens":1,"output_tokens":1}}'
}
while IFS= read -r line; do
    case "$line" in
    *'"subtype":"initialize"'*)
        id=${line#*\"request_id\":\"}
        id=${id%%\"*}
        say "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}" ;;
    *'"subtype":"interrupt"'* | *'"subtype":"mcp_status"'*)
        id=${line#*\"request_id\":\"}
        id=${id%%\"*}
        # Both in one piece.
        say "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}
{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"terminal_reason\":\"aborted_streaming\",\"session_id\":\"s1\",\"duration_ms\":1,\"num_turns\":1,\"usage\":{}}" ;;
    *'"type":"user"'*)
        say '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":["Bash"]}'
        case "$line" in
        *FLOOD*)
            pad=x
            while [ ${#pad} -lt 65536 ]; do pad=$pad$pad; done
            count=0
            while [ $count -lt 400 ]; do
                count=$((count + 1))
                text $count "$pad"
            done
            result ;;
        *ASK*)
            say '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"touch made"}}]},"session_id":"s1"}'
            say '{"type":"control_request","request_id":"p1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch made"},"tool_use_id":"toolu_1"}}' ;;
        *HANG*) ;;
        *)
            text 1 hello
            result ;;
        esac ;;
    *'"request_id":"p1"'*)
        printf '%s\n' "$line" > answer
        say '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"made"}]},"session_id":"s1"}'
        result ;;
    esac
done
