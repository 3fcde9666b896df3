"""What the look-up `aws:iam/getPolicyDocument` answers: it only writes JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal.model import Json

_LISTS = {
    "actions": "Action",
    "notActions": "NotAction",
    "resources": "Resource",
    "notResources": "NotResource",
}
_PRINCIPALS = {"principals": "Principal", "notPrincipals": "NotPrincipal"}


def policy_document(arguments: Mapping[str, Any]) -> dict[str, Json]:
    """The answer: `json` and `minifiedJson`, both with the same text.

    Source: https://www.pulumi.com/registry/packages/aws/api-docs/iam/getpolicydocument/
    """
    statements = [_statement(each) for each in arguments.get("statements") or ()]
    document = {"Version": arguments.get("version") or "2012-10-17", "Statement": statements}
    text = json.dumps(document)
    return {"id": "policy-document", "json": text, "minifiedJson": text}


def _statement(given: Mapping[str, Any]) -> dict[str, Any]:
    statement: dict[str, Any] = {"Effect": given.get("effect") or "Allow"}
    if given.get("sid"):
        statement["Sid"] = given["sid"]
    for key, word in _LISTS.items():
        if given.get(key):
            statement[word] = given[key]
    for key, word in _PRINCIPALS.items():
        if given.get(key):
            statement[word] = _principals(given[key])
    for condition in given.get("conditions") or ():
        tests = statement.setdefault("Condition", {})
        tests.setdefault(condition["test"], {})[condition["variable"]] = condition["values"]
    return statement


def _principals(given: Sequence[Mapping[str, Any]]) -> str | dict[str, list[str]]:
    if any(each["type"] == "*" for each in given):
        return "*"
    return {each["type"]: list(each["identifiers"]) for each in given}
