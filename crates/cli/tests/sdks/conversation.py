"""What the scenarios share: one question or a conversation, and what came of it."""

import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

CLI = sys.argv[2]


def options(**more):
    # What the program says on stderr in a clean run is shown to users: there must be nothing.
    return ClaudeAgentOptions(cli_path=CLI, **{"stderr": complain, **more})


def complain(line):
    raise SystemExit(f"stderr: {line}")


def ignore(line):
    """For runs that are not clean."""


async def one(prompt, **more):
    return [message async for message in query(prompt=prompt, options=options(**more))]


async def turn(client, prompt):
    await client.query(prompt)
    return [message async for message in client.receive_response()]


async def raised(awaitable):
    """What the SDK raised."""
    try:
        given = await awaitable
    except Exception as error:
        return error
    raise AssertionError(f"no exception: {given}")


def blocks(messages, kind):
    speakers = (m for m in messages if isinstance(m, (AssistantMessage, UserMessage)))
    contents = (m.content for m in speakers if isinstance(m.content, list))
    return [block for content in contents for block in content if isinstance(block, kind)]


def text(messages):
    said = [m for m in messages if isinstance(m, AssistantMessage)]
    return "".join(block.text for block in blocks(said, TextBlock))


def calls(messages):
    return blocks(messages, ToolUseBlock)


def results(messages):
    return blocks(messages, ToolResultBlock)


def last(messages):
    assert isinstance(messages[-1], ResultMessage), messages[-1]
    assert sum(isinstance(m, ResultMessage) for m in messages) == 1
    return messages[-1]
