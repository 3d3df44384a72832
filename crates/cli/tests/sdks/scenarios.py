"""The official Python SDK drives `agentwire claude`: `scenarios.py NAME PATH_OF_CLI`."""

import asyncio
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    ClaudeSDKError,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultError,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    create_sdk_mcp_server,
    query,
    tool,
)

import agents
import program
from conversation import blocks, calls, ignore, last, one, options, raised, results, text, turn

SEPARATORS = "a\u2028b\u2029c"
# One transparent point.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def simple():
    messages = await one("/think Hm.\n/say hello there")
    assert isinstance(messages[0], SystemMessage) and messages[0].subtype == "init", messages[0]
    assert messages[0].data["cwd"], messages[0]
    assert [block.thinking for block in blocks(messages, ThinkingBlock)] == ["Hm."], messages
    assert text(messages) == "hello there"
    result = last(messages)
    assert not result.is_error and result.result == "hello there" and result.num_turns >= 1
    assert result.session_id == messages[0].data["session_id"]
    assert result.usage["output_tokens"] > 0 and result.total_cost_usd is not None


async def streamed_input():
    async def prompts():
        for words in ("/say one", "/say two {turns}"):
            yield {"type": "user", "message": {"role": "user", "content": words}}

    messages = await one(prompts())
    assert text(messages).startswith("one") and "two" in text(messages), text(messages)


async def client():
    async with ClaudeSDKClient(options()) as session:
        info = await session.get_server_info()
        assert isinstance(info["commands"], list) and isinstance(info["models"], list), info
        assert text(await turn(session, "/say first")) == "first"
        second = await turn(session, "/say turn {turns}")
        assert text(second) == "turn 2", text(second)


async def permissions():
    asked = []

    async def decide(name, given, context):
        asked.append((name, given))
        command = given["command"]
        if command == "echo no":
            return PermissionResultDeny(message="not that one")
        if command == "echo change":
            return PermissionResultAllow(updated_input={"command": "echo changed"})
        if command == "echo raise":
            raise ValueError("boom")
        return PermissionResultAllow()

    async with ClaudeSDKClient(options(can_use_tool=decide)) as session:
        for command, is_error, said in (
            ("echo yes", False, "yes"),
            ("echo no", True, "not that one"),
            ("echo change", False, "changed"),
            ("echo raise", True, "boom"),
        ):
            messages = await turn(session, f"/bash {command}")
            result = results(messages)[0]
            assert bool(result.is_error) == is_error, (command, result)
            assert said in str(result.content), (command, result)
            denials = last(messages).permission_denials or []
            assert len(denials) == int(is_error), (command, denials)
    assert [name for name, _ in asked] == ["Bash"] * 4, asked


async def unasked():
    messages = await one("/bash echo never")
    assert results(messages)[0].is_error, messages
    assert last(messages).permission_denials, messages[-1]


async def allowed():
    messages = await one("/bash echo allowed\n/say {result}", allowed_tools=["Bash"])
    assert not results(messages)[0].is_error, messages
    assert text(messages).strip() == "allowed", text(messages)


async def question():
    async def decide(name, given, context):
        assert name == "AskUserQuestion", name
        wanted = given["questions"][0]["question"]
        return PermissionResultAllow(updated_input={**given, "answers": {wanted: "Yes"}})

    async with ClaudeSDKClient(options(can_use_tool=decide)) as session:
        messages = await turn(session, "/ask Tea? | Yes | No")
        assert "Yes" in text(messages), text(messages)


async def hooks():
    seen = []

    async def before(given, tool_use_id, context):
        seen.append((given["hook_event_name"], tool_use_id))
        if given["tool_input"]["command"] == "echo blocked":
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "policy X",
                }
            }
        return {}

    async def note(given, tool_use_id, context):
        seen.append((given["hook_event_name"], tool_use_id))
        return {}

    wanted = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(hooks=[note])],
        "UserPromptSubmit": [HookMatcher(hooks=[note])],
        "Stop": [HookMatcher(hooks=[note])],
    }
    async with ClaudeSDKClient(options(hooks=wanted, allowed_tools=["Bash"])) as session:
        messages = await turn(session, "/bash echo fine\n/bash echo blocked")
    first, second = results(messages)
    assert not first.is_error and second.is_error and "policy X" in str(second.content), messages
    events = [event for event, _ in seen]
    assert events == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "Stop"], events


async def mcp():
    calls = []

    @tool("add", "Adds two numbers", {"a": float, "b": float})
    async def add(given):
        calls.append(given)
        return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']}"}]}

    server = create_sdk_mcp_server("calc", tools=[add])
    more = {"mcp_servers": {"calc": server}, "allowed_tools": ["mcp__calc__add"]}
    async with ClaudeSDKClient(options(**more)) as session:
        messages = await turn(session, '/tool mcp__calc__add {"a":1,"b":2}\n/say {result}')
        assert "sum 3" in text(messages), (text(messages), calls)
        status = await session.get_mcp_status()
        names = [entry["name"] for entry in status["mcpServers"]]
        assert names == ["calc"], status


async def interrupt():
    async with ClaudeSDKClient(options()) as session:
        await session.query("/say before\n/hang")
        messages = []
        async for message in session.receive_response():
            messages.append(message)
            if isinstance(message, AssistantMessage):
                await session.interrupt()
        result = last(messages)
        assert result.is_error and result.subtype == "error_during_execution", result
        assert text(await turn(session, "/say after")) == "after"


async def models():
    async with ClaudeSDKClient(options(model="first-model")) as session:
        assert text(await turn(session, "/say {model}")) == "first-model"
        await session.set_model("second-model")
        assert text(await turn(session, "/say {model}")) == "second-model"
        await session.set_permission_mode("plan")
        messages = await turn(session, "/say {mode}")
        assert text(messages) == "plan", text(messages)
        init = next(m for m in messages if isinstance(m, SystemMessage) and m.subtype == "init")
        assert init.data["model"] == "second-model" and init.data["permissionMode"] == "plan"


async def partial():
    messages = await one("/say one two three", include_partial_messages=True)
    deltas = [m.event for m in messages if isinstance(m, StreamEvent)]
    pieces = [e["delta"]["text"] for e in deltas if e["type"] == "content_block_delta"]
    assert len(pieces) > 1 and "".join(pieces) == "one two three", pieces
    plain = await one("/say one two three")
    assert not any(isinstance(m, StreamEvent) for m in plain)


async def errors():
    error = await raised(one("/fail out of luck"))
    assert isinstance(error, ResultError) and "out of luck" in str(error), error
    async with ClaudeSDKClient(options(max_turns=1)) as session:
        result = last(await turn(session, "/bash echo one\n/bash echo two"))
        assert result.subtype == "error_max_turns" and result.is_error, result
    error = await raised(one("/usage 9000000 9 9 9\n/bash echo", max_budget_usd=0.01))
    assert error.subtype == "error_max_budget_usd" and error.exit_code == 1, error


async def large():
    messages = await one("/pad 2000000", max_buffer_size=8 << 20)
    assert len(text(messages)) == 2_000_000
    prompt = "x" * 2_000_000 + "\n/say read"
    assert text(await one(prompt)) == "read"


async def separators():
    messages = await one(f"/say {SEPARATORS}")
    assert text(messages) == SEPARATORS, ascii(text(messages))


async def resume():
    first = last(await one("/say one"))
    again = await one("/say turn {turns}", resume=first.session_id)
    assert text(again) == "turn 2" and last(again).session_id == first.session_id, again
    forked = await one("/say turn {turns}", resume=first.session_id, fork_session=True)
    assert text(forked) == "turn 3" and last(forked).session_id != first.session_id, forked
    more = await one("/say turn {turns}", continue_conversation=True)
    assert text(more).startswith("turn "), more
    unknown = "00000000-0000-4000-8000-000000000000"
    error = await raised(one("/say never", resume=unknown, stderr=ignore))
    assert "No conversation found" in str(error), error


async def structured():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    more = {"output_format": {"type": "json_schema", "schema": schema}}
    messages = await one('/tool StructuredOutput {"n":7}', **more)
    assert last(messages).structured_output == {"n": 7}, last(messages)


async def suggestions():
    """What the program suggests can be given back, and is then no more asked about."""
    asked = []

    async def decide(name, given, context):
        asked.append(given["command"])
        assert context.tool_use_id and context.suggestions, context
        return PermissionResultAllow(updated_permissions=context.suggestions)

    async with ClaudeSDKClient(options(can_use_tool=decide)) as session:
        for _ in range(2):
            messages = await turn(session, "/bash touch one")
            assert not results(messages)[0].is_error, messages
    assert asked == ["touch one"], asked


async def deny_and_stop():
    async def decide(name, given, context):
        return PermissionResultDeny(message="stop here", interrupt=True)

    async with ClaudeSDKClient(options(can_use_tool=decide)) as session:
        messages = await turn(session, "/bash touch one\n/say never")
        assert last(messages).subtype == "error_during_execution", messages[-1]
        assert results(messages)[0].is_error and not text(messages), messages
        assert text(await turn(session, "/say after")) == "after"


async def context_usage():
    async with ClaudeSDKClient(options()) as session:
        usage = await session.get_context_usage()
        assert usage["maxTokens"] > 0 and isinstance(usage["categories"], list), usage


async def refused_control():
    """A request that fails raises, and the conversation goes on."""
    async with ClaudeSDKClient(options()) as session:
        for refused in (
            session.toggle_mcp_server("none", True),
            session.rewind_files("00000000-0000-4000-8000-000000000000"),
            session.reconnect_mcp_server("none"),
        ):
            assert str(await raised(refused))
        assert text(await turn(session, "/say on")) == "on"


async def queued():
    """A prompt that comes while a turn runs is the next turn."""
    async with ClaudeSDKClient(options()) as session:
        await session.query("/say one\n/sleep 300")
        await session.query("/say two {turns}")
        turns = [text([m async for m in session.receive_response()]) for _ in range(2)]
    assert turns == ["one", "two 2"], turns


async def agent_dies():
    """An agent that dies in its turn is an error, not silence."""
    error = await raised(one("/say before\n/exit 3"))
    assert isinstance(error, ResultError) and error.exit_code == 1, error
    assert error.subtype == "error_during_execution", error
    async with ClaudeSDKClient(options()) as session:
        assert last(await turn(session, "/exit 3")).is_error


async def subagent():
    """What a subagent does is told with the call that began it; what it says only if wanted."""
    prompt = "/task look\n/say inside\n/read gone.txt\n/end\n/say outside"
    for more, words in (({}, []), ({"forward_subagent_text": True}, ["inside"])):
        messages = await one(prompt, **more)
        (task,) = [call for call in calls(messages) if call.name == "Task"]
        speakers = [m for m in messages if isinstance(m, AssistantMessage)]
        inner = [m for m in speakers if m.parent_tool_use_id]
        assert {m.parent_tool_use_id for m in inner} == {task.id}, inner
        assert [call.name for call in calls(inner)] == ["Read"], inner
        assert [text([m]) for m in inner if text([m])] == words, inner
        assert text([m for m in speakers if not m.parent_tool_use_id]) == "outside", messages
        kinds = [m.subtype for m in messages if isinstance(m, SystemMessage)]
        assert "task_started" in kinds and "task_notification" in kinds, kinds


async def todo():
    messages = await one("/plan first | second")
    (call,) = calls(messages)
    assert call.name == "TodoWrite"
    assert [item["content"] for item in call.input["todos"]] == ["first", "second"], call
    assert results(messages)[0].tool_use_id == call.id


async def image():
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    content = [{"type": "text", "text": "/say seen"}, {"type": "image", "source": source}]

    async def prompts():
        yield {"type": "user", "message": {"role": "user", "content": content}}

    assert text(await one(prompts())) == "seen"


async def system_prompt():
    assert text(await one("/say {system}", system_prompt="be brief")) == "be brief"


async def left_in_turn():
    """Who leaves in the middle of a turn leaves nothing behind."""
    async with ClaudeSDKClient(options()) as session:
        await session.query("/say running\n/hang")
        async for message in session.receive_messages():
            if text([message]):
                break


async def start_fails():
    """A program that ends before it has read anything: the SDK raises, by what it notices first."""
    error = await raised(one("/say x", extra_args={"no-such-flag": None}, stderr=ignore))
    assert isinstance(error, ClaudeSDKError), error


SCENARIOS = {**globals(), **vars(program), **vars(agents)}

if __name__ == "__main__":
    asyncio.run(SCENARIOS[sys.argv[1]]())
    print("ok", sys.argv[1])
