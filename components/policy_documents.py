"""IAM policy documents as JSON texts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Statement = Mapping[str, Any]


def policy_document(*statements: Statement) -> str:
    """An IAM policy document with these statements.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html
    """
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(actions: Sequence[str], resources: Sequence[str], **rest: object) -> Statement:
    """A statement that allows actions on resources; `rest` adds Principal or Condition."""
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources), **rest}


def assumed_by(service: str) -> str:
    """The trust policy of a role that one AWS service assumes, such as `ec2.amazonaws.com`."""
    return policy_document(
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    )
