"""What roles may do, and who may take them."""

import json
from collections.abc import Iterator
from typing import Any

from fabric.rows import Row, inputs, mappings, text, texts
from policy.documents import Statement, statements, trusted_services
from policy.examples import resource
from policy.program import Program
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    ACCESS_KEY,
    BATCH_ENVIRONMENT,
    IAM_GROUP_POLICY,
    IAM_POLICY,
    IAM_POLICY_ATTACHMENT,
    IAM_ROLE,
    IAM_ROLE_POLICY,
    IAM_ROLE_POLICY_ATTACHMENT,
    IAM_USER,
    IAM_USER_POLICY,
    NODE_GROUP,
)

HOST = "ec2.amazonaws.com"
COMPUTE = frozenset({HOST, "ecs-tasks.amazonaws.com", "pods.eks.amazonaws.com"})
_ADMINISTRATORS = frozenset({"AdministratorAccess", "IAMFullAccess", "PowerUserAccess"})
_READS_SECRETS = ("secretsmanager:GetSecretValue", "secretsmanager:BatchGetSecretValue")
_POLICIES = frozenset({IAM_GROUP_POLICY, IAM_POLICY, IAM_ROLE, IAM_ROLE_POLICY, IAM_USER_POLICY})
_ATTACHERS = frozenset({IAM_POLICY_ATTACHMENT, IAM_ROLE, IAM_ROLE_POLICY_ATTACHMENT})
_GRANTS = _ATTACHERS | {IAM_ROLE_POLICY}


def _documents(row: Row) -> Iterator[tuple[str, Statement]]:
    """The statements of a policy, or of a role's inline policies, each with its path."""
    for statement in statements(inputs(row).get("policy")):
        yield "policy", statement
    for position, each in enumerate(mappings(inputs(row).get("inlinePolicies"))):
        for statement in statements(each.get("policy")):
            yield f"inlinePolicies[{position}].policy", statement


def _everything(subject: Subject) -> Iterator[Finding]:
    if _is_boundary(subject.row, subject.program):
        return
    for path, statement in _documents(subject.row):
        every = {"*", "*:*"} & set(statement.actions)
        open_ = statement.allows and statement.is_on_everything and not statement.conditional
        if every and open_:
            yield Finding(
                path=path,
                value=sorted(every),
                message=f"statement {statement.position} allows everything",
            )


def _is_boundary(policy: Row, program: Program) -> bool:
    """Whether a policy only limits what others grant."""
    bounded = program.users(policy, IAM_ROLE, IAM_USER)
    return any(
        policy in program.linked(each, "permissionsBoundary", IAM_POLICY) for each in bounded
    )


def _whole_service(subject: Subject) -> Iterator[Finding]:
    for path, statement in _documents(subject.row):
        wide = [each for each in statement.actions if each.endswith(":*") and each != "*:*"]
        wide += statement.other_actions
        open_ = statement.allows and statement.is_on_everything and not statement.conditional
        if wide and open_:
            yield Finding(
                path=path,
                value=wide,
                message=f"statement {statement.position} allows all of a service, on everything",
            )


def _pass_role(subject: Subject) -> Iterator[Finding]:
    for path, statement in _documents(subject.row):
        named = any(each.startswith("iam:") for each in statement.actions)
        passes = named and statement.grants("iam:PassRole") and not statement.conditional
        if passes and statement.is_on_everything:
            yield Finding(
                path=path,
                value="iam:PassRole",
                message=f"statement {statement.position} can hand any role to a service",
            )


def _trusts_anyone(subject: Subject) -> Iterator[Finding]:
    for statement in statements(subject.at("assumeRolePolicy")):
        if statement.is_for_anyone:
            yield Finding(
                path="assumeRolePolicy",
                value="*",
                message=f"statement {statement.position} lets every AWS account assume the role",
            )


def _granted_to(row: Row, program: Program) -> list[Row]:
    """The roles that a row gives something to: itself, or by link or name those it belongs to."""
    if row.get("type") == IAM_ROLE:
        return [row]
    names = {text(inputs(row).get("role")), *texts(inputs(row).get("roles"))} - {""}
    linked = [
        role
        for key in ("role", "roles")
        if inputs(row).get(key)
        for role in program.linked(row, key, IAM_ROLE)
    ]
    return linked or [
        each for each in program.of_type(IAM_ROLE) if text(inputs(each).get("name")) in names
    ]


def _attached(subject: Subject) -> Iterator[tuple[str, str]]:
    """The managed policies of AWS that a row attaches, by path and name."""
    arns = [(f"managedPolicyArns[{n}]", arn) for n, arn in _numbered(subject, "managedPolicyArns")]
    for path, arn in [*arns, ("policyArn", text(subject.at("policyArn")))]:
        if ":iam::aws:policy/" in arn:
            yield path, arn.rpartition("/")[2]


def _numbered(subject: Subject, key: str) -> Iterator[tuple[int, str]]:
    yield from enumerate(texts(subject.at(key)))


def _attached_to_compute(subject: Subject) -> Iterator[tuple[str, str]]:
    attached = list(_attached(subject))
    if attached and any(COMPUTE & trusted_services(each) for each in _roles(subject)):
        yield from attached


def _roles(subject: Subject) -> list[Row]:
    return _granted_to(subject.row, subject.program)


def _administrator(subject: Subject) -> Iterator[Finding]:
    for path, policy in _attached_to_compute(subject):
        if policy in _ADMINISTRATORS:
            yield Finding(path=path, value=policy, message="a job or its host runs the account")


def _full_access(subject: Subject) -> Iterator[Finding]:
    for path, policy in _attached_to_compute(subject):
        if policy.endswith("FullAccess") and policy not in _ADMINISTRATORS:
            yield Finding(
                path=path, value=policy, message="a job or its host may do all of a service"
            )


def _host_secrets(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    if not any(program.of_type(BATCH_ENVIRONMENT, NODE_GROUP)):
        return
    found = [path for path, policy in _attached(subject) if policy == "SecretsManagerReadWrite"]
    found += [
        path
        for row, path in _policy_rows(subject)
        for _, statement in _documents(row)
        if any(statement.grants(action) for action in _READS_SECRETS)
    ]
    if found and any(HOST in trusted_services(each) for each in _roles(subject)):
        yield Finding(path=found[0], value=None, message="every job on the host can read secrets")


def _policy_rows(subject: Subject) -> Iterator[tuple[Row, str]]:
    """The row itself, and the policies of this program that it attaches, with their paths."""
    yield subject.row, "policy" if subject.at("policy") else "inlinePolicies"
    if subject.at("policyArn"):
        for policy in subject.linked("policyArn", IAM_POLICY):
            yield policy, "policyArn"


def _access_key(subject: Subject) -> Iterator[Finding]:
    yield Finding(
        path="user",
        value=text(subject.at("user")) or None,
        message="a key without an end date, kept in state",
    )


def _allow(action: object, resources: object = "*", **more: object) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": resources, **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _trust(principal: object) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _host_with(policy: str) -> list[dict[str, Any]]:
    return [
        resource(IAM_ROLE, "host", assumeRolePolicy=_trust({"Service": HOST})),
        resource(
            IAM_ROLE_POLICY_ATTACHMENT,
            links={"role": ["host"]},
            role="host-0123456",
            policyArn=f"arn:aws:iam::aws:policy/{policy}",
        ),
    ]


def _reader(service: str) -> list[dict[str, Any]]:
    return [
        resource(IAM_ROLE, "reader", assumeRolePolicy=_trust({"Service": service})),
        resource(
            IAM_ROLE_POLICY,
            links={"role": ["reader"]},
            role="reader-0123456",
            policy=_allow("secretsmanager:GetSecretValue"),
        ),
        resource(BATCH_ENVIRONMENT, "hosts", type="MANAGED"),
    ]


RULES = (
    Rule(
        id="iam-not-everything",
        references=("R75",),
        family="security",
        level="mandatory",
        level_because="it exposes the account to whoever gets the credentials",
        sentence="No policy allows every action on every resource, without a condition.",
        why="Code from the internet runs in training jobs; with this it owns the account.",
        fix="name the actions and the resources that the workload needs",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
        types=_POLICIES,
        check=_everything,
        whole_program=True,
        good=[resource(IAM_POLICY, policy=_allow("s3:GetObject", "arn:aws:s3:::data/*"))],
        bad=[resource(IAM_POLICY, policy=_allow("*"))],
    ),
    Rule(
        id="iam-not-whole-service",
        references=("R75",),
        family="security",
        level="advisory",
        level_because="the damage ends at the service",
        sentence="No policy allows all actions of a service, or all but some, on every resource.",
        why="A job that may read data may then delete it, in every bucket of the account.",
        fix="name the actions, or the resources, or add a condition",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
        types=_POLICIES,
        check=_whole_service,
        good=[resource(IAM_POLICY, policy=_allow("s3:*", "arn:aws:s3:::data/*"))],
        bad=[resource(IAM_POLICY, policy=_allow(["logs:PutLogEvents", "s3:*"]))],
    ),
    Rule(
        id="iam-pass-role-names-roles",
        references=("R75",),
        family="security",
        level="advisory",
        level_because="it takes a second permission to use the role",
        sentence="A policy that can pass roles says which, or to which service.",
        why="Who can pass any role to an instance or a job can become any role.",
        fix="list role ARNs as resources, or add a condition on iam:PassedToService",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html",
        types=_POLICIES,
        check=_pass_role,
        good=[
            resource(
                IAM_POLICY, policy=_allow("iam:PassRole", "arn:aws:iam::123456789012:role/job")
            )
        ],
        bad=[resource(IAM_POLICY, policy=_allow("iam:PassRole"))],
    ),
    Rule(
        id="role-trust-names-somebody",
        references=(),
        family="security",
        level="mandatory",
        level_because="it exposes the role to every AWS account",
        sentence="A role's trust policy names who may assume it.",
        why='Principal "*" without a condition is everybody with an AWS account.',
        fix="name a service, an account or a role, or add a condition",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html",
        types=frozenset({IAM_ROLE}),
        check=_trusts_anyone,
        good=[resource(IAM_ROLE, assumeRolePolicy=_trust({"Service": HOST}))],
        bad=[resource(IAM_ROLE, assumeRolePolicy=_trust({"AWS": "*"}))],
    ),
    Rule(
        id="compute-role-no-administrator",
        references=("R75",),
        family="security",
        level="mandatory",
        level_because="it exposes the account to every job",
        sentence="No role of a node, task or pod is an administrator.",
        why="Whatever runs in a job can use the role: packages, data loaders, a wrong command.",
        fix="attach policies for what the workload does",
        url="https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AdministratorAccess.html",
        types=_ATTACHERS,
        check=_administrator,
        whole_program=True,
        good=_host_with("AmazonSSMManagedInstanceCore"),
        bad=_host_with("AdministratorAccess"),
    ),
    Rule(
        id="compute-role-no-full-access",
        references=("R75",),
        family="security",
        level="advisory",
        level_because="the damage ends at the service",
        sentence="No role of a node, task or pod has a managed policy with full access.",
        why="Such a policy covers every bucket, repository or file system of the account.",
        fix="grant the actions on the resources that the workload uses",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
        types=_ATTACHERS,
        check=_full_access,
        whole_program=True,
        good=_host_with("AmazonSSMManagedInstanceCore"),
        bad=_host_with("AmazonS3FullAccess"),
    ),
    Rule(
        id="host-role-no-secrets",
        references=("R75",),
        family="security",
        level="advisory",
        level_because="only jobs on these hosts can misuse it",
        sentence="Where jobs have roles of their own, the role of their host reads no secrets.",
        why="Every job that reaches the host's metadata has the host's secrets, whoever owns it.",
        fix="give the secret to the job role, or to the pod's role",
        url="https://docs.aws.amazon.com/AmazonECS/latest/developerguide/security-iam-roles.html",
        types=_GRANTS,
        check=_host_secrets,
        whole_program=True,
        good=_reader("ecs-tasks.amazonaws.com"),
        bad=_reader(HOST),
    ),
    Rule(
        id="no-access-keys",
        references=(),
        family="security",
        level="advisory",
        level_because="the key may be guarded well elsewhere",
        sentence="A program makes no long-lived access keys.",
        why="The secret half is in the state file and never expires.",
        fix="use roles: instance profiles, job roles, Pod Identity, or OIDC for CI",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#bp-workloads-use-roles",
        types=frozenset({ACCESS_KEY}),
        check=_access_key,
        good=[resource(IAM_ROLE, assumeRolePolicy=_trust({"Service": HOST}))],
        bad=[resource(ACCESS_KEY, user="ci")],
    ),
)
