"""Ways to open a good stack to others."""

import json

from tests.policy.edits import Break, add, both, drop, named, put
from tests.policy.mutations import Mutation, Rows, of_type

ANYONE = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
POLICY = "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
KEY = "aws:iam/accessKey:AccessKey"
HOST = ("Role", "batch-host")
TEMPLATE = ("LaunchTemplate", "batch-g4dn")
BLOCK = ("BucketPublicAccessBlock", "research-data")
IMAGES = ("Repository", "batch-images")


def _ours(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="dev", what=what, breaks=breaks)


def _files(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="file-systems", what=what, breaks=breaks)


def _document(**statement: object) -> str:
    allow = {"Effect": "Allow", "Resource": "*", **statement}
    return json.dumps({"Version": "2012-10-17", "Statement": [allow]})


def _for_anyone(action: str) -> str:
    return json.dumps({"Statement": {**ANYONE, "Action": action}})


def _may(action: object, **more: object) -> Break:
    """Give the role of the hosts an inline policy."""
    document = _document(Action=action, **more)
    return add(ROLE_POLICY, "more", {"role": HOST}, role="batch-host-1", policy=document)


def _attached(policy: str) -> Break:
    arn = f"arn:aws:iam::aws:policy/{policy}"
    return add(ATTACHMENT, "more", {"role": HOST}, role="batch-host-1", policyArn=arn)


def _managed(policy: str) -> Break:
    return put(*HOST, "managedPolicyArns", [f"arn:aws:iam::aws:policy/{policy}"])


def _trusts(principal: object) -> Break:
    return put(*HOST, "assumeRolePolicy", _document(Principal=principal, Action="sts:AssumeRole"))


def _jobs_with_roles(rows: Rows) -> None:
    for row in of_type(rows, "JobDefinition"):
        row["inputs"]["nodeProperties"] = '{"container": {"jobRoleArn": "arn:aws:iam::1:role/job"}}'


def _no_user_data(rows: Rows) -> None:
    _jobs_with_roles(rows)
    del named(rows, *TEMPLATE)["inputs"]["userData"]


MUTATIONS = (
    _ours(
        "imds-version-1-off", "a template", put(*TEMPLATE, "metadataOptions.httpTokens", "optional")
    ),
    _files(
        "imds-version-1-off",
        "an instance",
        put("Instance", "login", "metadataOptions", {"httpTokens": "optional"}),
    ),
    _ours("imds-version-2-stated", "no options", drop(*TEMPLATE, "metadataOptions")),
    _ours("imds-version-2-stated", "no tokens", drop(*TEMPLATE, "metadataOptions.httpTokens")),
    _ours("batch-host-blocks-metadata", "no user data", _no_user_data),
    _files(
        "batch-host-blocks-metadata",
        "other user data",
        put("LaunchTemplate", "hosts", "userData", "bHMK"),
    ),
    _ours(
        "node-without-public-address",
        "an interface",
        put(*TEMPLATE, "networkInterfaces.0.associatePublicIpAddress", "true"),
    ),
    _files(
        "node-without-public-address",
        "an instance",
        put("Instance", "login", "associatePublicIpAddress", True),
    ),
    _files(
        "resource-policy-not-for-anyone",
        "a bucket",
        put("BucketPolicy", "research-data", "policy", _for_anyone("s3:PutObject")),
    ),
    _ours(
        "resource-policy-not-for-anyone",
        "a key",
        add(
            "aws:kms/key:Key",
            "key",
            policy=json.dumps({"Statement": [{**ANYONE, "Principal": {"AWS": ["*"]}}]}),
        ),
    ),
    _ours(
        "resource-policy-not-for-anyone",
        "a queue",
        add("aws:sqs/queuePolicy:QueuePolicy", "queue", policy=_for_anyone("sqs:*")),
    ),
    _files(
        "resource-policy-not-for-anyone",
        "inside a bucket of the old type",
        add("aws:s3/bucketV2:BucketV2", "old", policy=_for_anyone("s3:*")),
    ),
    _files(
        "bucket-acl-not-public",
        "every account",
        put("Bucket", "research-data", "acl", "authenticated-read"),
    ),
    _files(
        "bucket-acl-not-public",
        "of the old type",
        add("aws:s3/bucketAclV2:BucketAclV2", "acl", acl="public-read-write"),
    ),
    _files(
        "only-websites-are-public",
        "a policy",
        put("BucketPolicy", "research-data", "policy", _for_anyone("s3:GetObject")),
    ),
    _files(
        "only-websites-are-public",
        "inside a bucket",
        put("Bucket", "research-data", "policy", _for_anyone("s3:GetObject")),
    ),
    _files(
        "only-websites-are-public", "an ACL", put("Bucket", "research-data", "acl", "public-read")
    ),
    _files(
        "bucket-acl-not-public",
        "to write",
        add("aws:s3/bucketAcl:BucketAcl", "acl", bucket="research-data", acl="public-read-write"),
    ),
    _files("bucket-public-access-blocked", "policies", put(*BLOCK, "blockPublicPolicy", False)),
    _files("bucket-public-access-blocked", "ACLs", drop(*BLOCK, "ignorePublicAcls")),
    _ours("image-scanned-on-push", "left out", drop(*IMAGES, "imageScanningConfiguration")),
    _ours(
        "image-scanned-on-push", "off", put(*IMAGES, "imageScanningConfiguration.scanOnPush", False)
    ),
    _ours("image-tags-immutable", "left out", drop(*IMAGES, "imageTagMutability")),
    _ours("image-tags-immutable", "mutable", put(*IMAGES, "imageTagMutability", "MUTABLE")),
    _ours("iam-not-everything", "all actions", _may("*")),
    _ours("iam-not-everything", "by an ARN", _may("*:*", Resource="arn:aws:*:*:*:*")),
    _ours(
        "iam-not-everything",
        "a user",
        add("aws:iam/userPolicy:UserPolicy", "all", user="ci", policy=_document(Action="*:*")),
    ),
    _ours(
        "iam-not-everything",
        "a group",
        add("aws:iam/groupPolicy:GroupPolicy", "all", group="ci", policy=_document(Action="*")),
    ),
    _ours(
        "iam-not-whole-service",
        "all but some",
        add(POLICY, "most", policy=_document(NotAction="iam:*")),
    ),
    _ours("iam-not-whole-service", "S3", _may("s3:*")),
    _ours(
        "iam-not-whole-service",
        "inline",
        put(*HOST, "inlinePolicies", [{"policy": _document(Action=["ec2:*"])}]),
    ),
    _ours("iam-pass-role-names-roles", "by name", _may("iam:PassRole")),
    _ours("iam-pass-role-names-roles", "by wildcard", _may(["iam:Pass*"])),
    _ours("role-trust-names-somebody", "everybody", _trusts("*")),
    _ours("role-trust-names-somebody", "every account", _trusts({"AWS": "*"})),
    _ours("compute-role-no-administrator", "attached", _attached("AdministratorAccess")),
    _ours("compute-role-no-administrator", "in the role", _managed("PowerUserAccess")),
    _ours(
        "compute-role-no-administrator",
        "attached to several",
        add(
            "aws:iam/policyAttachment:PolicyAttachment",
            "more",
            {"roles": HOST},
            roles=["batch-host-1"],
            policyArn="arn:aws:iam::aws:policy/AdministratorAccess",
        ),
    ),
    _ours("compute-role-no-full-access", "attached", _attached("AmazonS3FullAccess")),
    _ours("compute-role-no-full-access", "in the role", _managed("AmazonFSxFullAccess")),
    _ours(
        "host-role-no-secrets",
        "inline",
        _may("secretsmanager:Get*", Resource="arn:aws:secretsmanager:*"),
    ),
    _ours("host-role-no-secrets", "managed", _attached("SecretsManagerReadWrite")),
    _ours(
        "host-role-no-secrets",
        "a policy of its own",
        both(
            add(POLICY, "secrets", policy=_document(Action="secretsmanager:GetSecretValue")),
            add(
                ATTACHMENT,
                "secrets",
                {"role": HOST, "policyArn": ("Policy", "secrets")},
                role="batch-host-1",
                policyArn="arn:aws:iam::123456789012:policy/secrets",
            ),
        ),
    ),
    _ours("no-access-keys", "for a user", add(KEY, "ci", user="ci")),
    _files("no-access-keys", "in another program", add(KEY, "upload", user="upload")),
)
