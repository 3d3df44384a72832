#!/bin/sh
# As `codex app-server` speaks. What it is told is kept in the file `heard`.
turn=0
say() { printf '%s\n' "$1"; }
item() {
    output='"made"'
    case "$2" in declined) output=null ;; esac
    say "{\"method\":\"item/$1\",\"params\":{\"item\":{\"type\":\"commandExecution\",\"id\":\"call$turn\",\"command\":\"touch made\",\"cwd\":\"/w\",\"status\":\"$2\",\"commandActions\":[],\"aggregatedOutput\":$output,\"exitCode\":$3},\"threadId\":\"t1\",\"turnId\":\"u$turn\"}}"
}
complete() {
    say "{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"t1\",\"turn\":{\"id\":\"u$turn\",\"items\":[],\"status\":\"$1\",\"error\":null,\"durationMs\":1}}}"
}
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case "$line" in
    *'"method":"initialize"'*)
        say "{\"id\":$id,\"result\":{\"userAgent\":\"codex/0.166.0 (x)\",\"codexHome\":\"/h\"}}" ;;
    *'"method":"thread/start"'*)
        say "{\"id\":$id,\"result\":{\"thread\":{\"id\":\"t1\"},\"model\":\"m\",\"cwd\":\"/w\"}}" ;;
    *'"method":"turn/start"'*)
        turn=$((turn + 1))
        say "{\"id\":$id,\"result\":{\"turn\":{\"id\":\"u$turn\",\"items\":[],\"status\":\"inProgress\",\"error\":null}}}"
        say "{\"method\":\"turn/started\",\"params\":{\"threadId\":\"t1\",\"turn\":{\"id\":\"u$turn\",\"items\":[],\"status\":\"inProgress\",\"error\":null}}}"
        case "$line" in
        *ASK*)
            item started inProgress null
            say "{\"method\":\"item/commandExecution/requestApproval\",\"id\":$turn,\"params\":{\"kind\":\"command\",\"threadId\":\"t1\",\"turnId\":\"u$turn\",\"itemId\":\"call$turn\",\"reason\":\"why\",\"command\":\"touch made\",\"cwd\":\"/w\",\"commandActions\":[],\"availableDecisions\":[\"accept\",\"cancel\"]}}" ;;
        *LATER*)
            item started inProgress null ;;
        *ALONE*)
            item started inProgress null
            item completed completed 0
            complete completed ;;
        *BROKEN*)
            item started inProgress null
            item completed failed 1
            complete completed ;;
        *HANG*) ;;
        *DIE*) exit 3 ;;
        *) complete completed ;;
        esac ;;
    *'"method":"turn/interrupt"'*)
        say "{\"id\":$id,\"result\":{}}"
        complete interrupted ;;
    *'"decision":"accept"'*)
        item completed completed 0
        complete completed ;;
    *'"decision":"decline"'*)
        item completed declined null
        complete completed ;;
    *'"decision":"cancel"'*)
        item completed declined null
        complete interrupted ;;
    esac
done
