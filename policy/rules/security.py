"""What is open to others: instance metadata, public addresses, buckets, keys, images."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from fabric.rows import Row, inputs, mapping, mappings, text, true
from policy.documents import Statement, statements
from policy.examples import resource
from policy.rule import Finding, Rule, Subject
from policy.tokens import (
    BATCH_ENVIRONMENT,
    BATCH_JOB_DEFINITION,
    BUCKET,
    BUCKET_ACL,
    BUCKET_ACL_V2,
    BUCKET_POLICY,
    BUCKET_PUBLIC_ACCESS_BLOCK,
    BUCKET_V2,
    BUCKET_WEBSITE,
    BUCKET_WEBSITE_V2,
    ECR_REPOSITORY,
    ECR_REPOSITORY_POLICY,
    INSTANCE,
    KMS_KEY,
    LAUNCH_TEMPLATE,
    SQS_QUEUE,
    SQS_QUEUE_POLICY,
)
from policy.values import is_unknown

IMDS_PAGE = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html"
)
BLOCK_IMDS = "ECS_AWSVPC_BLOCK_IMDS"
_PUBLIC_ACCESS = (
    "blockPublicAcls",
    "blockPublicPolicy",
    "ignorePublicAcls",
    "restrictPublicBuckets",
)
_BUCKETS = frozenset({BUCKET, BUCKET_V2})
_ACLS = frozenset({BUCKET_ACL, BUCKET_ACL_V2})
_BUCKET_POLICIES = _BUCKETS | {BUCKET_POLICY}
_PUBLIC_READ = "public-read"


def _tokens_optional(subject: Subject) -> Iterator[Finding]:
    options = mapping(subject.at("metadataOptions"))
    if text(options.get("httpTokens")) == "optional" and _has_metadata(options):
        yield Finding(
            path="metadataOptions.httpTokens",
            value="optional",
            message="instance metadata answers without a session token (IMDSv1)",
        )


def _tokens_left_out(subject: Subject) -> Iterator[Finding]:
    options = mapping(subject.at("metadataOptions"))
    silent = not options.get("httpTokens") and _has_metadata(options)
    if silent and not is_unknown(subject.at("metadataOptions")):
        yield Finding(
            path="metadataOptions.httpTokens",
            value=None,
            message="whether metadata needs a session token is left to the image and the account",
        )


def _has_metadata(options: Mapping[str, Any]) -> bool:
    endpoint = options.get("httpEndpoint")
    return text(endpoint) != "disabled" and not is_unknown(endpoint)


def _batch_host_metadata(subject: Subject) -> Iterator[Finding]:
    user_data = subject.at("userData")
    program = subject.program
    if is_unknown(user_data) or not program.users(subject.row, BATCH_ENVIRONMENT):
        return
    roles = any(_has_job_role(inputs(each)) for each in program.of_type(BATCH_JOB_DEFINITION))
    if roles and BLOCK_IMDS not in _decoded(user_data):
        yield Finding(
            path="userData", value=None, message=f"no {BLOCK_IMDS}, though jobs have roles"
        )


def _has_job_role(properties: Mapping[str, Any]) -> bool:
    written = [properties.get(key) for key in ("nodeProperties", "containerProperties")]
    return any('"jobRoleArn"' in text(each) for each in written)


def _decoded(user_data: object) -> str:
    try:
        return base64.b64decode(text(user_data), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return text(user_data)


def _public_address(subject: Subject) -> Iterator[Finding]:
    for position, each in enumerate(mappings(subject.at("networkInterfaces"))):
        if true(each.get("associatePublicIpAddress")):
            yield _public(f"networkInterfaces[{position}].associatePublicIpAddress")
    if true(subject.at("associatePublicIpAddress")):
        yield _public("associatePublicIpAddress")


def _public(path: str) -> Finding:
    return Finding(path=path, value=True, message="the node can be reached from the internet")


def _anyone(subject: Subject) -> Iterator[Finding]:
    for statement in statements(subject.at("policy")):
        if statement.is_for_anyone and not _only_reads_objects(subject.row, statement):
            yield Finding(
                path="policy",
                value="*",
                message=f"statement {statement.position} lets anybody in, without a condition",
            )


def _only_reads_objects(row: Row, statement: Statement) -> bool:
    """Whether it grants what a website does, of which `_read_by_anyone` judges."""
    return row.get("type") in _BUCKET_POLICIES and set(statement.actions) == {"s3:getobject"}


def _public_acl(subject: Subject) -> Iterator[Finding]:
    acl = text(subject.at("acl"))
    if acl in ("public-read-write", "authenticated-read"):
        yield Finding(path="acl", value=acl, message="strangers can write to, or list, the bucket")


def _read_by_anyone(subject: Subject) -> Iterator[Finding]:
    if _is_website(subject):
        return
    for statement in statements(subject.at("policy")):
        if statement.is_for_anyone and _only_reads_objects(subject.row, statement):
            yield Finding(
                path="policy",
                value="s3:GetObject",
                message=f"statement {statement.position} lets anybody read, and it is no website",
            )
    if subject.at("acl") == _PUBLIC_READ:
        yield Finding(
            path="acl", value=_PUBLIC_READ, message="anybody can list it, and it is no website"
        )


def _is_website(subject: Subject) -> bool:
    """Whether a bucket, or the bucket that a policy or ACL is for, is a website."""
    program, row = subject.program, subject.row
    buckets = [row] if row.get("type") in _BUCKETS else subject.linked("bucket", *_BUCKETS)
    name = text(subject.at("bucket"))
    return any(inputs(each).get("website") for each in buckets) or any(
        (name and inputs(site).get("bucket") == name)
        or any(each in buckets for each in program.linked(site, "bucket", *_BUCKETS))
        for site in program.of_type(BUCKET_WEBSITE, BUCKET_WEBSITE_V2)
    )


def _public_access_allowed(subject: Subject) -> Iterator[Finding]:
    for key in _PUBLIC_ACCESS:
        value = subject.at(key)
        if not true(value) and not is_unknown(value):
            yield Finding(path=key, value=value, message="the bucket may be made public")


def _no_scan(subject: Subject) -> Iterator[Finding]:
    value = subject.at("imageScanningConfiguration")
    if not is_unknown(value) and not true(mapping(value).get("scanOnPush")):
        yield Finding(
            path="imageScanningConfiguration.scanOnPush",
            value=mapping(value).get("scanOnPush"),
            message="images are not scanned",
        )


def _mutable_tags(subject: Subject) -> Iterator[Finding]:
    value = subject.at("imageTagMutability")
    if not is_unknown(value) and not text(value).startswith("IMMUTABLE"):
        yield Finding(
            path="imageTagMutability", value=value, message="a tag can be moved to another image"
        )


_READ_BY_ANYONE = json.dumps(
    {
        "Statement": [
            {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}
        ]
    }
)
_ALL_BY_ANYONE = _READ_BY_ANYONE.replace("s3:GetObject", "s3:*")
_ALL_BY_ACCOUNT = _ALL_BY_ANYONE.replace('"*"', '"123456789012"', 1)
_JOB = '{"image": "example", "jobRoleArn": "arn:aws:iam::123456789012:role/job"}'


def _batch_host(user_data: str) -> list[dict[str, Any]]:
    encoded = base64.b64encode(user_data.encode()).decode()
    return [
        resource(LAUNCH_TEMPLATE, "host", userData=encoded),
        resource(
            BATCH_ENVIRONMENT,
            "environment",
            links={"computeResources": ["host"]},
            computeResources={"launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0"}},
        ),
        resource(BATCH_JOB_DEFINITION, "job", containerProperties=_JOB),
    ]


RULES = (
    Rule(
        id="imds-version-1-off",
        references=("R76",),
        family="security",
        level="mandatory",
        level_because="it exposes the credentials of the node's role",
        sentence="Instance metadata is not set to answer requests without a session token.",
        why="With IMDSv1 one forged web request from a job hands out the node's credentials.",
        fix="set metadataOptions.httpTokens to `required`",
        url=IMDS_PAGE,
        types=frozenset({LAUNCH_TEMPLATE, INSTANCE}),
        check=_tokens_optional,
        good=[resource(LAUNCH_TEMPLATE, metadataOptions={"httpTokens": "required"})],
        bad=[resource(LAUNCH_TEMPLATE, metadataOptions={"httpTokens": "optional"})],
    ),
    Rule(
        id="imds-version-2-stated",
        references=("R76",),
        family="security",
        level="advisory",
        level_because="many images and accounts require tokens by themselves",
        sentence="A launch template or instance says that metadata needs a session token.",
        why="Left out, the image and the account decide, and older ones admit IMDSv1.",
        fix="set metadataOptions.httpTokens to `required`",
        url=IMDS_PAGE,
        types=frozenset({LAUNCH_TEMPLATE, INSTANCE}),
        check=_tokens_left_out,
        good=[resource(LAUNCH_TEMPLATE, metadataOptions={"httpTokens": "required"})],
        bad=[resource(LAUNCH_TEMPLATE, instanceType="p5.48xlarge")],
    ),
    Rule(
        id="batch-host-blocks-metadata",
        references=("R76",),
        family="security",
        level="advisory",
        level_because="only jobs that look for the host's credentials get them",
        sentence="Hosts of Batch jobs with roles keep those jobs from the host's own credentials.",
        why="A multi-node job reaches the metadata of its host, and so a second, wider role.",
        fix=f"write {BLOCK_IMDS}=true to /etc/ecs/ecs.config in the user data",
        url="https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-config.html",
        types=frozenset({LAUNCH_TEMPLATE}),
        check=_batch_host_metadata,
        whole_program=True,
        good=_batch_host(f"echo {BLOCK_IMDS}=true >>/etc/ecs/ecs.config"),
        bad=_batch_host("echo hello"),
    ),
    Rule(
        id="node-without-public-address",
        references=(),
        family="security",
        level="advisory",
        level_because="its security groups still decide who gets in",
        sentence="Nodes have no public address.",
        why="A node that the internet can reach is one security group rule away from strangers.",
        fix="use private subnets with a NAT gateway or endpoints, and Session Manager for a shell",
        url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-instance-addressing.html",
        types=frozenset({LAUNCH_TEMPLATE, INSTANCE}),
        check=_public_address,
        good=[resource(INSTANCE, associatePublicIpAddress=False)],
        bad=[resource(LAUNCH_TEMPLATE, networkInterfaces=[{"associatePublicIpAddress": "true"}])],
    ),
    Rule(
        id="resource-policy-not-for-anyone",
        references=(),
        family="security",
        level="mandatory",
        level_because="it exposes data, images or a key",
        sentence="A bucket, key, queue or image repository lets in only whom its policy names.",
        why='Principal "*" without a condition is every AWS account, and for S3 everybody.',
        fix="name accounts or roles as principals, or add a condition such as aws:PrincipalOrgID",
        url="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html",
        types=_BUCKET_POLICIES | {KMS_KEY, ECR_REPOSITORY_POLICY, SQS_QUEUE, SQS_QUEUE_POLICY},
        check=_anyone,
        good=[resource(BUCKET_POLICY, policy=_ALL_BY_ACCOUNT)],
        bad=[resource(BUCKET_POLICY, policy=_ALL_BY_ANYONE)],
    ),
    Rule(
        id="bucket-acl-not-public",
        references=(),
        family="security",
        level="mandatory",
        level_because="it exposes data sets and checkpoints",
        sentence="No bucket's access control list lets strangers write, or every account in.",
        why="With public-read-write everybody can replace what training reads.",
        fix="use the ACL `private`, or none, and grant access by policies",
        url="https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl",
        types=_BUCKETS | _ACLS,
        check=_public_acl,
        good=[resource(BUCKET, acl="private")],
        bad=[resource(BUCKET_ACL, bucket="data", acl="public-read-write")],
    ),
    Rule(
        id="only-websites-are-public",
        references=(),
        family="security",
        level="mandatory",
        level_because="it exposes data sets and checkpoints",
        sentence="Everybody can read a bucket only if it is a website.",
        why="What training reads and writes is then anybody's, unless it was meant to be shown.",
        fix="name who may read, or make an aws.s3.BucketWebsiteConfiguration for the bucket",
        url="https://docs.aws.amazon.com/AmazonS3/latest/userguide/WebsiteAccessPermissionsReqd.html",
        types=_BUCKET_POLICIES | _ACLS,
        check=_read_by_anyone,
        whole_program=True,
        good=[
            resource(BUCKET_POLICY, bucket="pages", policy=_READ_BY_ANYONE),
            resource(BUCKET_WEBSITE, "website", bucket="pages"),
        ],
        bad=[resource(BUCKET_POLICY, bucket="data", policy=_READ_BY_ANYONE)],
    ),
    Rule(
        id="bucket-public-access-blocked",
        references=(),
        family="security",
        level="advisory",
        level_because="nothing is public yet; the block only rules it out",
        sentence="A public access block of a bucket blocks all four ways of making it public.",
        why="A later policy or object ACL can open what the block leaves out.",
        fix="set all four settings of the block to true",
        url="https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html",
        types=frozenset({BUCKET_PUBLIC_ACCESS_BLOCK}),
        check=_public_access_allowed,
        good=[resource(BUCKET_PUBLIC_ACCESS_BLOCK, **dict.fromkeys(_PUBLIC_ACCESS, True))],
        bad=[resource(BUCKET_PUBLIC_ACCESS_BLOCK, blockPublicAcls=True)],
    ),
    Rule(
        id="image-scanned-on-push",
        references=(),
        family="security",
        level="advisory",
        level_because="the registry may scan all repositories by its own configuration",
        sentence="An image repository scans each image that is pushed.",
        why="Known holes in the job's image stay unknown until somebody asks.",
        fix="set imageScanningConfiguration.scanOnPush",
        url="https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-scanning.html",
        types=frozenset({ECR_REPOSITORY}),
        check=_no_scan,
        good=[resource(ECR_REPOSITORY, imageScanningConfiguration={"scanOnPush": True})],
        bad=[resource(ECR_REPOSITORY, imageScanningConfiguration={"scanOnPush": False})],
    ),
    Rule(
        id="image-tags-immutable",
        references=("R74",),
        family="security",
        level="advisory",
        level_because="the job runs, but perhaps not the code that was tested",
        sentence="Tags of an image repository cannot be moved.",
        why="A job definition that names a tag runs whatever image has it that day.",
        fix="set imageTagMutability to IMMUTABLE",
        url="https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-tag-mutability.html",
        types=frozenset({ECR_REPOSITORY}),
        check=_mutable_tags,
        good=[resource(ECR_REPOSITORY, imageTagMutability="IMMUTABLE")],
        bad=[resource(ECR_REPOSITORY, imageTagMutability="MUTABLE")],
    ),
)
