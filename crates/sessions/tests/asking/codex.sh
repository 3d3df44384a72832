#!/bin/sh
# As `codex app-server` speaks. What it says in its turn is put in by the test.
say() { printf '%s\n' "$1"; }
complete() {
    say "{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"t1\",\"turn\":{\"id\":\"u1\",\"items\":[],\"status\":\"$1\",\"error\":null}}}"
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
        say "{\"id\":$id,\"result\":{\"turn\":{\"id\":\"u1\",\"status\":\"inProgress\"}}}"
        say '{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1","rootTurnId":"u1"}}}'
        cat <<'TURN'
LINES
TURN
        if ENDS; then complete completed; fi ;;
    *'"method":"turn/interrupt"'*)
        say "{\"id\":$id,\"result\":{}}"
        complete interrupted ;;
    *'"decision":'*)
        complete completed ;;
    esac
done
