"""The program as older SDKs and shells start it, without the protocol on stdin."""

import json
import subprocess

from conversation import CLI

SEPARATORS = "a\u2028b\u2029c"
STREAM = ("--output-format", "stream-json", "--verbose")


def run(*args, stdin=""):
    return subprocess.run([CLI, *args], input=stdin.encode(), capture_output=True, check=False)


def messages(output):
    return [json.loads(line) for line in output.stdout.splitlines()]


async def old_style():
    """Python SDKs up to 0.1.30 ask for the version, then give the prompt as an argument."""
    version = run("-v")
    assert version.stdout == b"2.1.325 (Claude Code)\n" and not version.stderr, version
    output = run(*STREAM, "--print", "--", "/say old style")
    assert output.returncode == 0 and not output.stderr, output
    init, assistant, result = messages(output)
    assert (init["type"], init["subtype"]) == ("system", "init"), init
    assert assistant["message"]["content"] == [{"type": "text", "text": "old style"}], assistant
    assert (result["type"], result["result"]) == ("result", "old style"), result
    assert len({message["session_id"] for message in (init, assistant, result)}) == 1


async def one_shot():
    """What a shell sees: the answer, and whether it is one."""
    for args, stdin, code, stdout, stderr in (
        (("-p", "/say hello"), "", 0, "hello\n", ""),
        (("-p",), "/say from stdin", 0, "from stdin\n", ""),
        (("-p", "/fail out of luck"), "", 1, "out of luck\n", ""),
        (("-p",), "", 1, "", "Error: Input must be provided"),
        (("--no-such-flag",), "", 1, "", "error: unknown option '--no-such-flag'"),
        (("-p", "--output-format", "stream-json", "x"), "", 1, "", "--verbose"),
    ):
        output = run(*args, stdin=stdin)
        assert output.returncode == code, (args, output)
        assert output.stdout.decode() == stdout, (args, output)
        assert stderr in output.stderr.decode() and bool(stderr) == bool(output.stderr), output
    (result,) = messages(run("-p", "/say whole", "--output-format", "json"))
    assert (result["type"], result["result"]) == ("result", "whole"), result


async def no_raw_separators():
    """Readers that split lines at U+2028 and U+2029 never see them."""
    output = run(*STREAM, "-p", f"/say {SEPARATORS}\n/bash echo '{SEPARATORS}'")
    assert output.returncode == 0, output
    assert "\u2028" not in output.stdout.decode() and "\u2029" not in output.stdout.decode()
    assert messages(output)[-1]["type"] == "result"
    assert any(SEPARATORS in json.dumps(m, ensure_ascii=False) for m in messages(output))
