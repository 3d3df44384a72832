#!/bin/sh
# As an ACP agent speaks that has no form of answers: a prompt names what it answers, first and again.
say() { printf '%s\n' "$1"; }
update() {
    say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":$1}}"
}
text() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
spend() { update '{"sessionUpdate":"usage_update","used":12,"size":100,"cost":{"amount":1,"currency":"USD"}}'; }
end() {
    say "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":10,\"outputTokens\":2,\"totalTokens\":12}}}"
}
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case "$line" in
    *'"method":"initialize"'*)
        say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"x\",\"version\":\"1\"},\"agentCapabilities\":{\"loadSession\":true}}}" ;;
    *'"method":"session/new"'*)
        say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s1\"}}" ;;
    *'"method":"session/load"'*)
        update '{"sessionUpdate":"available_commands_update","availableCommands":[]}'
        say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
    *'"method":"session/cancel"'*)
        # Some end as if nobody had cancelled them.
        case "$plan" in spent | spoilt | late | waits) end && continue ;; esac
        say "{\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"cancelled\"}}" ;;
    *'"method":"session/prompt"'*)
        prompt=$id
        part=again
        case "$line" in *PLAN-*)
            part=first
            plan=${line#*PLAN-}
            plan=${plan%%[!a-z]*} ;;
        esac
        case "$plan-$part" in
        good-first | mended-again) text '{\"answer\":' && text '42}' ;;
        waits-first) text '{\"answer\":42}' && continue ;;
        spent-first) text '{\"answer\":42}' && spend && continue ;;
        spoilt-first | late-again) text 'about forty-two' && spend && continue ;;
        fenced-first) text '```json\n{\n  \"answer\": 42\n}\n```' ;;
        *-first | never-again) text 'about forty-two' ;;
        dies-again) exit 7 ;;
        hangs-again) text 'well' && continue ;;
        esac
        end ;;
    esac
done
