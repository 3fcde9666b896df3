"""What AWS answers when a resource is created, as data: one entry a resource type.

Templates may use `{name}`, `{hex}` (16 hexadecimal digits that follow from type and name), `{uuid}`
(the same as a UUID), `{id}`, `{region}`, `{account}`, `{partition}` and any text among the inputs.
The forms of the ARNs are those of
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rehearsal.model import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How a resource type is identified.

    Attributes:
        arn: Template of what follows `arn:PARTITION:`.
        id: Template of the id; None stands for the ARN.
        name_input: The input that is made up when the program leaves it out,
            https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming. None: no name.
        outputs: More outputs that programs read, templates or plain values.
    """

    arn: str
    id: str | None = "{name}"
    name_input: str | None = "name"
    outputs: Mapping[str, Json] = field(default_factory=dict[str, Json])


def _ec2(prefix: str, kind: str, *, name_input: str | None = None, **outputs: Json) -> Kind:
    return Kind(
        id=f"{prefix}-0{{hex}}",
        arn=f"ec2:{{region}}:{{account}}:{kind}/{{id}}",
        name_input=name_input,
        outputs={"ownerId": "{account}"} | outputs,
    )


def _batch(kind: str, **outputs: Json) -> Kind:
    return Kind(id=None, arn=f"batch:{{region}}:{{account}}:{kind}/{{name}}", outputs=outputs)


def _iam(kind: str) -> Kind:
    return Kind(arn=f"iam::{{account}}:{kind}{{path}}{{name}}", outputs={"uniqueId": "AIDA{hex}"})


DEFAULT = Kind(arn="{service}:{region}:{account}:{kind}/{name}")

KINDS: Mapping[str, Kind] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": Kind(
        arn="batch:{region}:{account}:compute-environment/{name}",
        outputs={
            "ecsClusterArn": "arn:{partition}:ecs:{region}:{account}:cluster/AWSBatch-{name}-{hex}",
            "status": "VALID",
        },
    ),
    "aws:batch/jobDefinition:JobDefinition": Kind(
        id=None,
        arn="batch:{region}:{account}:job-definition/{name}:1",
        outputs={
            "revision": 1,
            "arnPrefix": "arn:{partition}:batch:{region}:{account}:job-definition/{name}",
        },
    ),
    "aws:batch/jobQueue:JobQueue": _batch("job-queue"),
    "aws:batch/schedulingPolicy:SchedulingPolicy": _batch("scheduling-policy"),
    "aws:cloudwatch/logGroup:LogGroup": Kind(arn="logs:{region}:{account}:log-group:{name}"),
    "aws:cloudwatch/metricAlarm:MetricAlarm": Kind(
        arn="cloudwatch:{region}:{account}:alarm:{name}"
    ),
    "aws:ec2/capacityReservation:CapacityReservation": _ec2("cr", "capacity-reservation"),
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _ec2(
        "sg", "security-group", name="default"
    ),
    "aws:ec2/eip:Eip": _ec2("eipalloc", "elastic-ip", allocationId="{id}", publicIp="198.51.100.1"),
    "aws:ec2/flowLog:FlowLog": _ec2("fl", "vpc-flow-log"),
    "aws:ec2/internetGateway:InternetGateway": _ec2("igw", "internet-gateway"),
    "aws:ec2/keyPair:KeyPair": Kind(
        arn="ec2:{region}:{account}:key-pair/{name}",
        name_input="keyName",
        outputs={"keyPairId": "key-0{hex}"},
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": _ec2(
        "lt", "launch-template", name_input="name", latestVersion=1, defaultVersion=1
    ),
    "aws:ec2/natGateway:NatGateway": _ec2("nat", "natgateway", publicIp="198.51.100.1"),
    "aws:ec2/networkInterface:NetworkInterface": _ec2("eni", "network-interface"),
    "aws:ec2/placementGroup:PlacementGroup": Kind(
        arn="ec2:{region}:{account}:placement-group/{name}",
        outputs={"placementGroupId": "pg-0{hex}"},
    ),
    "aws:ec2/routeTable:RouteTable": _ec2("rtb", "route-table"),
    "aws:ec2/securityGroup:SecurityGroup": _ec2("sg", "security-group", name_input="name"),
    "aws:ec2/subnet:Subnet": _ec2("subnet", "subnet"),
    "aws:ec2/vpc:Vpc": _ec2(
        "vpc",
        "vpc",
        defaultSecurityGroupId="sg-0{hex}",
        defaultNetworkAclId="acl-0{hex}",
        defaultRouteTableId="rtb-0{hex}",
        mainRouteTableId="rtb-0{hex}",
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _ec2(
        "vpce", "vpc-endpoint", prefixListId="pl-0{hex}", state="available"
    ),
    "aws:ecr/repository:Repository": Kind(
        arn="ecr:{region}:{account}:repository/{name}",
        outputs={
            "registryId": "{account}",
            "repositoryUrl": "{account}.dkr.ecr.{region}.amazonaws.com/{name}",
        },
    ),
    "aws:efs/fileSystem:FileSystem": Kind(
        id="fs-0{hex}",
        arn="elasticfilesystem:{region}:{account}:file-system/{id}",
        name_input=None,
        outputs={"dnsName": "{id}.efs.{region}.amazonaws.com"},
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Kind(
        id="fs-0{hex}",
        arn="fsx:{region}:{account}:file-system/{id}",
        name_input=None,
        outputs={"dnsName": "{id}.fsx.{region}.amazonaws.com", "mountName": "fsx"},
    ),
    "aws:iam/instanceProfile:InstanceProfile": _iam("instance-profile"),
    "aws:iam/policy:Policy": Kind(id=None, arn="iam::{account}:policy{path}{name}"),
    "aws:iam/role:Role": _iam("role"),
    "aws:kms/key:Key": Kind(
        id="{uuid}",
        arn="kms:{region}:{account}:key/{id}",
        name_input=None,
        outputs={"keyId": "{id}"},
    ),
    "aws:resourcegroups/group:Group": Kind(arn="resource-groups:{region}:{account}:group/{name}"),
    "aws:s3/bucket:Bucket": Kind(arn="s3:::{name}", name_input="bucket"),
    "aws:sns/topic:Topic": Kind(id=None, arn="sns:{region}:{account}:{name}"),
    "aws:ssm/parameter:Parameter": Kind(arn="ssm:{region}:{account}:parameter{name}"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _ec2(
        "sgr", "security-group-rule", securityGroupRuleId="{id}"
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _ec2(
        "sgr", "security-group-rule", securityGroupRuleId="{id}"
    ),
}
