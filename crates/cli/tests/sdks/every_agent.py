"""The official Python SDK over every agent: `every_agent.py ROWS PATH_OF_CLI`.

Each row of the matrix is a function. Its outcome is a line of JSON on stdout: `yes`, `no` with the words by
which the client was refused, or `fails`. Rows that need the same options share a session.
"""

import asyncio
import json
import os
import re
import sys
import traceback
import uuid

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    create_sdk_mcp_server,
    query,
    tool,
)

from conversation import CLI, blocks, calls, last, raised, results, text, turn

WORDS = json.loads(os.environ["AGENT_WORDS"])
# Gemini cannot resume a session in the minute in which the session started.
PATIENCE = 150
# What agentwire says of what an agent cannot do.
REFUSAL = re.compile(r"[^\n]*(?:is not supported with \w+|\w+ does not support |is not supported here)[^\n]*")
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SEPARATORS = "a\u2028b\u2029c"
UNKNOWN = "00000000-0000-4000-8000-000000000000"

errors = []
ROWS = {}


class Refused(Exception):
    """The client was refused, in these words."""


def row(name, session=None):
    def keep(function):
        ROWS[name] = (session, function)
        return function

    return keep


def say(words):
    return WORDS["say"].replace("$", words)


def shell(command):
    return WORDS["shell"].replace("$", command)


def script(*steps):
    return "\n".join(steps)


def directory():
    path = os.path.join(os.getcwd(), str(uuid.uuid4()))
    os.mkdir(path)
    return path


def options(**more):
    given = {"cli_path": CLI, "cwd": directory(), "model": WORDS["model"], "stderr": errors.append}
    return ClaudeAgentOptions(**{**given, **more})


async def one(prompt, **more):
    return [message async for message in query(prompt=prompt, options=options(**more))]


def good(messages):
    """The turn's result, which must be a good one."""
    result = last(messages)
    if result.is_error:
        raise Refused(" ".join([*(result.errors or []), result.result or ""]))
    return result


def init(messages):
    found = [m for m in messages if isinstance(m, SystemMessage) and m.subtype == "init"]
    assert found, [type(m).__name__ for m in messages]
    return found[0].data


class Talk:
    """A conversation that several rows share."""

    def __init__(self, kind):
        self.work = directory()
        self.asked = []
        self.seen = []
        self.called = []
        self.decide = lambda name, given, context: PermissionResultAllow()
        more = {"cwd": self.work}
        if kind == "asking":
            more["can_use_tool"] = self.answer
        elif kind == "hooked":
            more["allowed_tools"] = ["Bash", "Read"]
            events = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"]
            more["hooks"] = {event: [HookMatcher(hooks=[self.hook])] for event in events}
        elif kind == "served":

            @tool("add", "Adds two numbers", {"a": float, "b": float})
            async def add(given):
                self.called.append(given)
                return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']}"}]}

            more["mcp_servers"] = {"calc": create_sdk_mcp_server("calc", tools=[add])}
            more["allowed_tools"] = ["mcp__calc__add"]
            more["include_partial_messages"] = True
        self.client = ClaudeSDKClient(options(**more))

    async def answer(self, name, given, context):
        self.asked.append((name, given, context.tool_use_id))
        return self.decide(name, given, context)

    async def hook(self, given, tool_use_id, context):
        self.seen.append(given)
        command = given.get("tool_input", {}).get("command", "")
        if given["hook_event_name"] == "PreToolUse" and "blocked" in command:
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "policy X",
                }
            }
        return {}

    async def turn(self, *steps):
        self.asked.clear()
        self.seen.clear()
        return await turn(self.client, script(*steps))

    def has(self, name):
        return os.path.exists(os.path.join(self.work, name))

    def events(self):
        return [given["hook_event_name"] for given in self.seen]


@row("models in `initialize`", "asking")
async def models(talk):
    info = await talk.client.get_server_info()
    assert isinstance(info["commands"], list), info
    assert info["models"], info
    assert all(m["value"] and m["displayName"] and "description" in m for m in info["models"]), info


@row("conversation", "asking")
async def conversation(talk):
    for words in ("first", "second"):
        messages = await talk.turn(say(words))
        good(messages)
        assert text(messages).strip() == words, text(messages)
        assert init(messages)["session_id"] == last(messages).session_id


@row("`can_use_tool`: allow", "asking")
async def allow(talk):
    messages = await talk.turn(shell("touch allowed.txt"), say("done"))
    good(messages)
    ((name, _, tool_use_id),) = talk.asked
    assert name == "Bash" and tool_use_id == calls(messages)[0].id, (talk.asked, calls(messages))
    assert not results(messages)[0].is_error and talk.has("allowed.txt"), messages


@row("`can_use_tool`: deny", "asking")
async def deny(talk):
    talk.decide = lambda *_: PermissionResultDeny(message="not that one")
    messages = await talk.turn(shell("touch denied.txt"), say("done"))
    assert len(talk.asked) == 1 and not talk.has("denied.txt"), talk.asked
    assert results(messages)[0].is_error, messages
    assert len(last(messages).permission_denials or []) == 1, last(messages)


@row("`can_use_tool`: it raises", "asking")
async def callback_fails(talk):
    def fail(*_):
        raise ValueError("boom")

    talk.decide = fail
    messages = await talk.turn(shell("touch raised.txt"), say("done"))
    assert not talk.has("raised.txt") and results(messages)[0].is_error, messages


@row("`can_use_tool`: deny and interrupt", "asking")
async def deny_and_interrupt(talk):
    talk.decide = lambda *_: PermissionResultDeny(message="stop here", interrupt=True)
    messages = await talk.turn(shell("touch stopped.txt"), say("never"))
    assert last(messages).subtype == "error_during_execution", last(messages)
    assert not talk.has("stopped.txt") and "never" not in text(messages), messages
    assert text(await talk.turn(say("after"))).strip() == "after"


@row("`can_use_tool`: changed input", "asking")
async def changed_input(talk):
    talk.decide = lambda *_: PermissionResultAllow(updated_input={"command": "touch changed.txt"})
    messages = await talk.turn(shell("touch original.txt"), say("done"))
    assert not talk.has("original.txt"), messages
    if results(messages)[0].is_error:
        raise Refused(str(results(messages)[0].content))
    assert talk.has("changed.txt"), messages


@row("`can_use_tool`: suggestions given back", "asking")
async def suggestions(talk):
    def keep(name, given, context):
        assert context.suggestions, context
        return PermissionResultAllow(updated_permissions=context.suggestions)

    talk.decide = keep
    asked = []
    for _ in range(2):
        messages = await talk.turn(shell("touch kept.txt"), say("done"))
        good(messages)
        asked.append(len(talk.asked))
    assert asked == [1, 0] and talk.has("kept.txt"), asked


@row("question", "asking")
async def question(talk):
    def decide(name, given, context):
        assert name == "AskUserQuestion", name
        wanted = given["questions"][0]["question"]
        return PermissionResultAllow(updated_input={**given, "answers": {wanted: "Yes"}})

    talk.decide = decide
    if WORDS["questionMode"]:
        await talk.client.set_permission_mode(WORDS["questionMode"])
    messages = await talk.turn(WORDS["question"], WORDS["result"])
    if not talk.asked:
        raise Refused(WORDS["noQuestion"])
    assert "Yes" in text(messages), text(messages)
    if WORDS["questionMode"]:
        await talk.client.set_permission_mode("default")


@row("interrupt", "asking")
async def interrupt(talk):
    await talk.client.query(script(say("before"), WORDS["hang"]))
    messages, is_interrupted = [], False
    # Some agents say their text only when the model has said it all.
    asyncio.get_running_loop().call_later(3, lambda: asyncio.ensure_future(stop()))

    async def stop():
        nonlocal is_interrupted
        if not is_interrupted:
            is_interrupted = True
            await talk.client.interrupt()

    async for message in talk.client.receive_response():
        messages.append(message)
        if isinstance(message, AssistantMessage):
            await stop()
    assert last(messages).subtype == "error_during_execution", last(messages)
    assert text(await talk.turn(say("after"))).strip() == "after"


@row("queued prompts", "asking")
async def queued(talk):
    await talk.client.query(say("one"))
    await talk.client.query(say("two"))
    turns = [text([m async for m in talk.client.receive_response()]).strip() for _ in range(2)]
    assert turns == ["one", "two"], turns


@row("`set_model`", "asking")
async def set_model(talk):
    before = text(await talk.turn(WORDS["sayModel"]))
    await talk.client.set_model(WORDS["otherModel"])
    messages = await talk.turn(WORDS["sayModel"])
    assert text(messages) != before and text(messages), (before, text(messages))
    assert init(messages)["model"] != before.strip(), init(messages)
    await talk.client.set_model(WORDS["model"])


@row("`set_permission_mode`", "asking")
async def set_mode(talk):
    await talk.client.set_permission_mode("acceptEdits")
    messages = await talk.turn(say("on"))
    assert init(messages)["permissionMode"] == "acceptEdits", init(messages)
    told = [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "status"]
    assert any(m.get("permissionMode") == "acceptEdits" for m in told), messages
    await talk.client.set_permission_mode("default")


@row("image", "asking")
async def image(talk):
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    content = [{"type": "text", "text": say("seen")}, {"type": "image", "source": source}]

    async def prompts():
        yield {"type": "user", "message": {"role": "user", "content": content}}

    messages = await turn(talk.client, prompts())
    good(messages)
    assert text(messages).strip() == "seen", text(messages)


@row("U+2028 and U+2029", "asking")
async def separators(talk):
    messages = await talk.turn(say(SEPARATORS))
    assert text(messages).strip() == SEPARATORS, ascii(text(messages))


@row("prompt of 200 kB", "asking")
async def large(talk):
    messages = await talk.turn("x" * 200_000, say("read"))
    good(messages)
    assert text(messages).strip() == "read", text(messages)[:200]


@row("`get_context_usage`", "asking")
async def context_usage(talk):
    await talk.turn(say("some words"))
    usage = await talk.client.get_context_usage()
    assert usage["maxTokens"] >= 0 and isinstance(usage["categories"], list), usage


@row("refused control request", "asking")
async def refused_control(talk):
    for refused in (
        talk.client.toggle_mcp_server("none", True),
        talk.client.rewind_files(UNKNOWN),
        talk.client.reconnect_mcp_server("none"),
    ):
        assert str(await raised(refused))
    assert text(await talk.turn(say("on"))).strip() == "on"


@row("todo list", "asking")
async def todo(talk):
    messages = await talk.turn(WORDS["plan"], say("done"))
    good(messages)
    assert calls(messages), messages
    assert len(results(messages)) >= 1, messages


@row("subagent", "asking")
async def subagent(talk):
    messages = await talk.turn(WORDS["subagent"], say("outside"))
    good(messages)
    assert calls(messages) and "outside" in text(messages), messages


@row("API error", "asking")
async def api_error(talk):
    messages = await talk.turn(WORDS["fail"].replace("$", "out of luck"))
    result = last(messages)
    assert result.is_error and "out of luck" in str((result.errors, result.result)), result
    assert text(await talk.turn(say("after"))).strip() == "after"


@row("`PreToolUse` denies", "hooked")
async def hook_before(talk):
    messages = await talk.turn(shell("touch blocked.txt"), say("done"))
    assert "PreToolUse" in talk.events() and not talk.has("blocked.txt"), talk.seen
    assert results(messages)[0].is_error, messages


@row("`PostToolUse`", "hooked")
async def hook_after(talk):
    messages = await talk.turn(shell("echo fine"), say("done"))
    good(messages)
    after = [given for given in talk.seen if given["hook_event_name"] == "PostToolUse"]
    assert len(after) == 1, talk.events()
    assert after[0]["tool_name"] == "Bash" and "fine" in str(after[0]["tool_response"]), after


@row("`PostToolUseFailure`", "hooked")
async def hook_failure(talk):
    await talk.turn(WORDS["failing"], say("done"))
    after = [given for given in talk.seen if given["hook_event_name"] == "PostToolUseFailure"]
    assert len(after) == 1 and after[0]["tool_name"] and after[0]["error"], talk.seen


@row("`UserPromptSubmit`, `Stop`", "hooked")
async def hook_turn(talk):
    await talk.turn(say("hello"))
    assert talk.events() == ["UserPromptSubmit", "Stop"], talk.events()


@row("tools of in-process MCP servers in `init`", "served")
async def mcp_names(talk):
    messages = await talk.turn(say("hello"))
    assert "mcp__calc__add" in init(messages)["tools"], init(messages)
    status = await talk.client.get_mcp_status()
    assert [entry["name"] for entry in status["mcpServers"]] == ["calc"], status


@row("in-process MCP tool called", "served")
async def mcp_tool(talk):
    messages = await talk.turn(WORDS["add"], WORDS["result"])
    assert len(talk.called) == 1 and "sum 3" in text(messages), (talk.called, text(messages))
    assert [call.name for call in calls(messages)] == ["mcp__calc__add"], calls(messages)


@row("partial messages", "served")
async def partial(talk):
    messages = await talk.turn(say("one two three"))
    events = [m.event for m in messages if isinstance(m, StreamEvent)]
    pieces = [e["delta"] for e in events if e["type"] == "content_block_delta"]
    said = "".join(piece.get("text", "") for piece in pieces)
    assert said.strip() == text(messages).strip() == "one two three", (said, text(messages))


@row("`query()`")
async def one_shot():
    messages = await one(script(WORDS["think"], say("hello there")))
    assert init(messages)["cwd"], messages[0]
    result = good(messages)
    assert text(messages).strip() == "hello there" and result.result.strip() == "hello there"
    assert result.session_id == init(messages)["session_id"] and result.num_turns >= 1
    assert result.usage["output_tokens"] > 0 and result.total_cost_usd is not None, result
    assert blocks(messages, ThinkingBlock), messages


@row("streamed input")
async def streamed_input():
    async def prompts():
        for words in ("one", "two"):
            content = say(words)
            yield {"type": "user", "message": {"role": "user", "content": content}}

    messages = await one(prompts())
    # Claude may take two prompts as one turn.
    assert "two" in text(messages), text(messages)


@row("nobody to ask")
async def unasked():
    work = directory()
    messages = await one(script(shell("touch never.txt"), say("done")), cwd=work)
    assert not os.listdir(work) and results(messages)[0].is_error, messages
    assert last(messages).permission_denials, last(messages)


@row("`allowed_tools`")
async def allowed_tools():
    work = directory()
    good(await one(script(shell("touch a.txt"), say("done")), cwd=work, allowed_tools=["Bash"]))
    assert os.listdir(work) == ["a.txt"], os.listdir(work)


@row("`disallowed_tools`")
async def disallowed_tools():
    work = directory()
    more = {"disallowed_tools": ["Bash"], "permission_mode": "bypassPermissions"}
    await raised_or_not(one(script(shell("touch a.txt"), say("done")), cwd=work, **more))
    assert not os.listdir(work), os.listdir(work)


@row("`bypassPermissions`")
async def bypass():
    work = directory()
    more = {"permission_mode": "bypassPermissions"}
    good(await one(script(shell("touch a.txt"), say("done")), cwd=work, **more))
    assert os.listdir(work) == ["a.txt"], os.listdir(work)


@row("plan mode")
async def plan_mode():
    messages = await one(say("planned"), permission_mode="plan")
    good(messages)
    assert init(messages)["permissionMode"] == "plan", init(messages)


@row("`max_turns`")
async def max_turns():
    work = directory()
    prompt = script(shell("touch one.txt"), shell("touch two.txt"), say("done"))
    error = await raised(one(prompt, cwd=work, max_turns=1, allowed_tools=["Bash"]))
    if getattr(error, "subtype", None) != "error_max_turns":
        raise error
    assert "two.txt" not in os.listdir(work), os.listdir(work)


@row("`resume`, `continue_conversation`")
async def resume():
    work, other = directory(), directory()
    first = good(await one(say("one"), cwd=work))
    last_one = good(await one(say("one"), cwd=other))
    again = await one(say("two"), cwd=work, resume=first.session_id)
    assert good(again).session_id == first.session_id and text(again).strip() == "two", again
    more = await one(say("three"), cwd=other, continue_conversation=True)
    assert good(more).session_id == last_one.session_id and text(more).strip() == "three", more


@row("`fork_session`")
async def fork():
    work = directory()
    first = good(await one(say("one"), cwd=work))
    given = {"cwd": work, "resume": first.session_id, "fork_session": True}
    forked = await one(say("two"), **given)
    assert good(forked).session_id != first.session_id and text(forked).strip() == "two", forked


@row("`resume` of what is not there")
async def resume_unknown():
    error = await raised(one(say("never"), resume=UNKNOWN))
    assert f"No conversation found with session ID: {UNKNOWN}" in str(error), error
    errors.clear()


@row("`session_id`")
async def session_id():
    chosen = str(uuid.uuid4())
    assert good(await one(say("x"), session_id=chosen)).session_id == chosen


@row("structured output")
async def structured():
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    more = {"output_format": {"type": "json_schema", "schema": schema}}
    result = good(await one(WORDS["structured"], **more))
    assert result.structured_output == {"n": 7}, result


@row("`system_prompt`")
async def system_prompt():
    messages = await one(WORDS["saySystem"], system_prompt="be brief, said the client")
    good(messages)
    assert "be brief, said the client" in text(messages), text(messages)[-2000:]


@row("`system_prompt`, appended")
async def append_system_prompt():
    more = {"type": "preset", "preset": "claude_code", "append": "be kind, said the client"}
    # Agents without a place for it get it before the first prompt.
    messages = await one(WORDS["sayInput"], system_prompt=more)
    good(messages)
    assert "be kind, said the client" in text(messages), text(messages)[-2000:]


@row("`add_dirs`")
async def add_dirs():
    messages = await one(say("added"), add_dirs=[directory()])
    good(messages)


@row("`resume_session_at`, another turn than `resume_drops_turn`")
async def wrong_drop():
    work = directory()
    async with ClaudeSDKClient(options(cwd=work)) as client:
        first = await turn(client, say("one"))
        await turn(client, say("two"))
    at = [m for m in first if isinstance(m, AssistantMessage)][-1]
    more = {"resume_session_at": at.uuid, "resume_drops_turn": UNKNOWN}
    error = await raised(one(say("x"), cwd=work, resume=good(first).session_id, **more))
    if "Resume rejected by --resume-drops-turn:" not in str(error):
        raise error
    errors.clear()


async def raised_or_not(awaitable):
    try:
        await awaitable
    except Exception as error:
        return error


async def play(name, talk):
    """Plays a row: its outcome, and why."""
    session, function = ROWS[name]
    try:
        await asyncio.wait_for(function(talk) if session else function(), PATIENCE)
        return ("fails", f"stderr: {errors}") if errors else ("yes", None)
    except asyncio.TimeoutError:
        return "fails", f"nothing came in {PATIENCE} s"
    except AssertionError as error:
        return "fails", "".join(traceback.format_exception(error))
    except Exception as error:
        said = "\n".join([str(error), *errors])
        found = REFUSAL.search(said)
        if found or isinstance(error, Refused) and said.strip() == WORDS["noQuestion"]:
            return "no", (found.group(0) if found else said).strip()
        return "fails", "".join(traceback.format_exception(error)) + said


async def main(names):
    talk, kind = None, None
    for name in names:
        errors.clear()
        session, _ = ROWS[name]
        why = None
        if talk and session != kind:
            await close(talk)
            talk = None
        if session and not talk:
            talk, kind = Talk(session), session
            why = await raised_or_not(asyncio.wait_for(talk.client.connect(), PATIENCE))
        if talk:
            talk.decide = lambda *_: PermissionResultAllow()
        outcome = ("fails", repr((why, errors))) if why else await play(name, talk)
        if outcome[0] != "yes" and talk:
            await close(talk)
            talk = None
        print(json.dumps({"row": name, "outcome": outcome[0], "why": outcome[1]}), flush=True)
    if talk:
        await close(talk)


async def close(talk):
    await raised_or_not(asyncio.wait_for(talk.client.disconnect(), PATIENCE))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
