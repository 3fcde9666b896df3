"""Launch templates that AWS Batch launches nodes with."""

import base64
import binascii
import re
from collections.abc import Iterator
from email import errors, message_from_bytes
from email.message import Message
from itertools import chain
from typing import Any, cast

from fabric.rows import mapping, mappings, text, true
from fabric.user_data import MAXIMUM_BYTES
from policy.batch_examples import environment, with_template
from policy.examples import resource
from policy.rule import Finding, Rule, Subject
from policy.tokens import BATCH_ENVIRONMENT, LAUNCH_TEMPLATE

TEMPLATE_PAGE = "https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html"
USER_DATA_PAGE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html"

_RESERVED = re.compile(rb"^[^#\n]*\b(ECS_CLUSTER|ECS_INSTANCE_ATTRIBUTES)\s*=", re.MULTILINE)


def _version(subject: Subject) -> Iterator[Finding]:
    path = "computeResources.launchTemplate"
    template = mapping(subject.at(path))
    named = [(path, template)]
    for index, override in enumerate(mappings(template.get("overrides"))):
        named.append((f"{path}.overrides[{index}]", override))
    for where, one in named:
        version = one.get("version")
        if one and (version is None or version in ("", "$Latest", "$Default")):
            yield Finding(
                path=f"{where}.version",
                value=version or None,
                message="Batch reads it once, and a new version of the template changes nothing",
            )


def _encoded_user_data(subject: Subject) -> str:
    """The user data of a launch template that Batch uses; empty if absent or unknown."""
    used = subject.program.users(subject.row, BATCH_ENVIRONMENT)
    return text(subject.at("userData")) if used else ""


def _user_data(subject: Subject) -> bytes:
    return _decoded(_encoded_user_data(subject)) or b""


def _decoded(encoded: str) -> bytes | None:
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _mime(subject: Subject) -> Iterator[Finding]:
    encoded = _encoded_user_data(subject)
    if not encoded:
        return
    data = _decoded(encoded)
    problem = "is not in base64" if data is None else _mime_problem(data)
    if problem:
        first_line = (data or b"").partition(b"\n")[0][:60].decode("ascii", "replace")
        yield Finding(path="userData", value=first_line or encoded[:60], message=problem)


def _mime_problem(data: bytes) -> str | None:
    document = message_from_bytes(data)
    if document.get_content_maintype() != "multipart" or not document.is_multipart():
        return "is not a MIME multi-part document with a boundary"
    for number, part in enumerate(cast("list[Message]", document.get_payload()), start=1):
        if "Content-Type" not in part:
            return f"part {number} has no Content-Type in the line after its boundary"
        if any(isinstance(each, errors.MissingHeaderBodySeparatorDefect) for each in part.defects):
            return f"part {number} has no blank line between its headers and its text"
    return None


def _size(subject: Subject) -> Iterator[Finding]:
    size = len(_user_data(subject))
    if size > MAXIMUM_BYTES:
        yield Finding(
            path="userData", value=size, message=f"{size} bytes, EC2 takes {MAXIMUM_BYTES}"
        )


def _cluster(subject: Subject) -> Iterator[Finding]:
    for match in _RESERVED.finditer(_user_data(subject)):
        yield Finding(
            path="userData",
            value=match[1].decode("ascii"),
            message="is for Batch to set: it makes a cluster for each environment",
        )


def _ignored(subject: Subject) -> Iterator[Finding]:
    if not subject.program.users(subject.row, BATCH_ENVIRONMENT):
        return
    market = text(subject.at("instanceMarketOptions.marketType"))
    subnets = [
        (f"networkInterfaces[{index}].subnetId", one.get("subnetId"))
        for index, one in enumerate(mappings(subject.at("networkInterfaces")))
    ]
    found: Iterator[tuple[str, Any]] = chain(
        (
            ("instanceType", subject.at("instanceType")),
            ("iamInstanceProfile", subject.at("iamInstanceProfile")),
            ("instanceMarketOptions.marketType", market if market == "spot" else None),
            ("disableApiTermination", true(subject.at("disableApiTermination"))),
        ),
        subnets,
    )
    for path, value in found:
        if value:
            shown = value if isinstance(value, (str, bool)) else None
            yield Finding(path=path, value=shown, message="Batch ignores it")


def _encoded(script: str) -> str:
    return base64.b64encode(script.encode("ascii")).decode("ascii")


def _template(**settings: Any) -> dict[str, Any]:
    return resource(LAUNCH_TEMPLATE, "template", **settings)


_MIME = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="=="

--==
Content-Type: text/x-shellscript

#!/bin/bash
echo ECS_LOGLEVEL=debug >> /etc/ecs/ecs.config
--==--
"""

RULES = (
    Rule(
        id="batch-template-version",
        references=("R60",),
        family="batch",
        level="mandatory",
        level_because="updates never arrive",
        sentence="A compute environment names its launch templates' versions by number.",
        why="Batch resolves $Latest and $Default when it makes the environment, and at no change "
        "of the template afterwards; no version means $Default.",
        fix="set version to the template's latestVersion",
        url=TEMPLATE_PAGE,
        types=frozenset({BATCH_ENVIRONMENT}),
        check=_version,
        good=[with_template()],
        bad=[environment(launchTemplate={"launchTemplateId": "lt-1", "version": "$Latest"})],
    ),
    Rule(
        id="batch-user-data-mime",
        references=("R64",),
        family="batch",
        level="mandatory",
        level_because="the script does not run, or the environment becomes INVALID",
        sentence="User data for Batch is a MIME multi-part document, each part with its type.",
        why="Batch adds parts of its own. A blank line after a boundary ends the headers, so that "
        "what follows is text that nobody runs.",
        fix="start with a multipart/mixed header; after each boundary line put Content-Type, a "
        "blank line and then the script",
        url=TEMPLATE_PAGE,
        types=frozenset({LAUNCH_TEMPLATE}),
        check=_mime,
        whole_program=True,
        good=[_template(userData=_encoded(_MIME)), with_template()],
        bad=[
            _template(userData=_encoded(_MIME.replace("--==\nContent", "--==\n\nContent"))),
            with_template(),
        ],
    ),
    Rule(
        id="batch-user-data-size",
        references=("R64",),
        family="batch",
        level="mandatory",
        level_because="EC2 refuses the template",
        sentence="User data for Batch has at most 16 KB before it is encoded.",
        why="EC2 takes no more, and Batch adds parts of its own.",
        fix="move scripts into the machine image, or fetch them from S3",
        url=USER_DATA_PAGE,
        types=frozenset({LAUNCH_TEMPLATE}),
        check=_size,
        whole_program=True,
        good=[_template(userData=_encoded(_MIME)), with_template()],
        bad=[_template(userData=_encoded(_MIME + "#" * MAXIMUM_BYTES)), with_template()],
    ),
    Rule(
        id="batch-user-data-cluster",
        references=("R64",),
        family="batch",
        level="mandatory",
        level_because="nodes join no cluster that Batch knows, and jobs never start",
        sentence="User data for Batch sets neither ECS_CLUSTER nor ECS_INSTANCE_ATTRIBUTES.",
        why="The node registers elsewhere while Batch waits for it and pays for it.",
        fix="take the line out",
        url=TEMPLATE_PAGE,
        types=frozenset({LAUNCH_TEMPLATE}),
        check=_cluster,
        whole_program=True,
        good=[_template(userData=_encoded(_MIME)), with_template()],
        bad=[
            _template(userData=_encoded(_MIME.replace("ECS_LOGLEVEL=debug", "ECS_CLUSTER=mine"))),
            with_template(),
        ],
    ),
    Rule(
        id="batch-template-ignored",
        references=(),
        family="batch",
        level="advisory",
        level_because="nodes launch all the same, by the environment's own settings",
        sentence="A launch template for Batch sets nothing that Batch ignores.",
        why="Instance type, profile, subnets, Spot and termination protection of the template have "
        "no effect, whoever relies on them.",
        fix="set it in computeResources, or take it out",
        url=TEMPLATE_PAGE,
        types=frozenset({LAUNCH_TEMPLATE}),
        check=_ignored,
        whole_program=True,
        good=[_template(), with_template()],
        bad=[_template(instanceMarketOptions={"marketType": "spot"}), with_template()],
    ),
)
