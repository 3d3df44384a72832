"""What the crawler of the server's description must know.

Sessions are the demo agent's, for no other agent is there; those that were created are what later
requests ask for, so that they find something.
"""

import itertools
import uuid

import schemathesis

PROMPT = "/say hi\n/bash true"

found = []
turn = itertools.count()


def is_uuid(text):
    try:
        return str(uuid.UUID(text)) == text
    except (TypeError, ValueError, AttributeError):
        return False


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.path_parameters
    # What is no id stays: it must be refused.
    if found and isinstance(path, dict) and is_uuid(path.get("id")):
        path["id"] = found[next(turn) % len(found)]
    body = case.body
    if isinstance(body, dict):
        for name in ("agentType", "agentId"):
            if body.get(name) in ("claude", "codex", "gemini", "acp"):
                body[name] = "demo"
        if isinstance(body.get("prompt"), str):
            body["prompt"] = PROMPT
        # The path names the request.
        if isinstance(body.get("requestId"), str):
            del body["requestId"]


@schemathesis.hook
def after_call(context, case, response):
    if case.method == "POST" and case.path in ("/v1/sessions", "/api/sessions") and response.status_code in (200, 201):
        found.append(response.json()["id"])
        del found[:-8]
