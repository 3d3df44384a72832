"""The official Python SDK drives `agentwire claude`: `scenarios.py NAME PATH_OF_CLI`."""

import asyncio
import sys

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
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

CLI = sys.argv[2]
SEPARATORS = "a\u2028b\u2029c"


def options(**more):
    # What the program says on stderr in a clean run is shown to users: there must be nothing.
    return ClaudeAgentOptions(cli_path=CLI, stderr=complain, **more)


def complain(line):
    raise SystemExit(f"stderr: {line}")


async def one(prompt, **more):
    return [message async for message in query(prompt=prompt, options=options(**more))]


async def turn(client, prompt):
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def text(messages):
    blocks = (b for m in messages if isinstance(m, AssistantMessage) for b in m.content)
    return "".join(b.text for b in blocks if isinstance(b, TextBlock))


def results(messages):
    users = (m for m in messages if isinstance(m, UserMessage) and isinstance(m.content, list))
    return [b for m in users for b in m.content if isinstance(b, ToolResultBlock)]


def last(messages):
    assert isinstance(messages[-1], ResultMessage), messages[-1]
    assert sum(isinstance(m, ResultMessage) for m in messages) == 1
    return messages[-1]


async def simple():
    messages = await one("/think Hm.\n/say hello there")
    assert isinstance(messages[0], SystemMessage) and messages[0].subtype == "init", messages[0]
    assert messages[0].data["cwd"], messages[0]
    blocks = [b for m in messages if isinstance(m, AssistantMessage) for b in m.content]
    thinking = [b for b in blocks if isinstance(b, ThinkingBlock)]
    assert thinking[0].thinking == "Hm.", blocks
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
    try:
        messages = await one("/fail out of luck")
    except Exception as error:  # The SDK raises what the last result said.
        assert "out of luck" in str(error), error
    else:
        raise AssertionError(f"no exception: {messages}")
    async with ClaudeSDKClient(options(max_turns=1)) as session:
        result = last(await turn(session, "/bash echo one\n/bash echo two"))
        assert result.subtype == "error_max_turns" and result.is_error, result


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
    try:
        await one("/say never", resume="00000000-0000-4000-8000-000000000000")
    except Exception as error:
        assert "No conversation found" in str(error), error
    else:
        raise AssertionError("an unknown session was resumed")


async def structured():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    more = {"output_format": {"type": "json_schema", "schema": schema}}
    messages = await one('/tool StructuredOutput {"n":7}', **more)
    assert last(messages).structured_output == {"n": 7}, last(messages)


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]]())
    print("ok", sys.argv[1])
