"""Agents that are not Claude, as recorded, behind the same SDK."""

import json
from pathlib import Path

from claude_agent_sdk import ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny

from conversation import calls, last, one, options, raised, results, text, turn


def deciding(decide):
    """Options with a decision, and what was asked."""
    asked = []

    async def can_use_tool(name, given, context):
        asked.append((name, given, context.tool_use_id))
        return decide(context)

    return asked, options(can_use_tool=can_use_tool)


def answers():
    """What the agent was told of its questions."""
    told = (Path.home() / "told.jsonl").read_text().splitlines()
    return [line["result"] for line in map(json.loads, told) if "method" not in line]


async def codex_text():
    messages = await one("Say hello.")
    assert text(messages) == "Hello from the fake model.", messages
    result = last(messages)
    assert result.subtype == "success" and result.result == text(messages), result
    assert result.usage["output_tokens"] == 20, result.usage
    assert messages[0].data["session_id"] == result.session_id


async def codex_allow():
    asked, allowing = deciding(lambda context: PermissionResultAllow())
    async with ClaudeSDKClient(allowing) as session:
        messages = await turn(session, "Escalate.")
    (call,) = calls(messages)
    ((name, given, tool_use_id),) = asked
    assert (name, tool_use_id) == (call.name, call.id) == ("Bash", call.id), (asked, call)
    assert "escalated.txt" in given["command"], given
    (result,) = results(messages)
    assert result.tool_use_id == call.id and not result.is_error, result
    assert "data" in str(result.content), result
    assert text(messages) == "Escalated command handled." and not last(messages).is_error
    assert answers() == [{"decision": "accept"}], answers()


async def codex_once():
    """The command asks to leave the sandbox: an allow cannot be kept, so that no rule is suggested."""

    def decide(context):
        assert context.suggestions == [], context.suggestions
        return PermissionResultAllow()

    asked, allowing = deciding(decide)
    async with ClaudeSDKClient(allowing) as session:
        assert not last(await turn(session, "Escalate.")).is_error
    assert len(asked) == 1, asked
    assert answers() == [{"decision": "accept"}], answers()


async def codex_fails():
    error = await raised(one("Fail."))
    assert "high demand" in str(error), error


async def acp_allow():
    asked, allowing = deciding(lambda context: PermissionResultAllow())
    async with ClaudeSDKClient(allowing) as session:
        messages = await turn(session, "Run it.")
    (call,) = calls(messages)
    assert [tool_use_id for _, _, tool_use_id in asked] == [call.id], (asked, call)
    (result,) = results(messages)
    assert result.tool_use_id == call.id and not result.is_error, result
    assert text(messages).endswith("The command ran."), text(messages)
    assert last(messages).subtype == "success"
    assert answers() == [{"outcome": {"outcome": "selected", "optionId": "proceed_once"}}], answers()


async def gemini_deny():
    asked, denying = deciding(lambda context: PermissionResultDeny(message="not now"))
    async with ClaudeSDKClient(denying) as session:
        messages = await turn(session, "Run it.")
    assert len(asked) == 1, asked
    (result,) = results(messages)
    assert result.is_error, result
    assert len(last(messages).permission_denials) == 1, messages[-1]
    assert answers() == [{"outcome": {"outcome": "selected", "optionId": "cancel"}}], answers()
