"""The launch template of a node: its interfaces, capacity, disks, metadata and user data."""

from collections.abc import Mapping

import pulumi_aws as aws
from pulumi import Input, ResourceOptions

from components.placement_and_odcr import LaunchPlacement
from fabric.catalogue import InstanceType
from fabric.interfaces import InterfaceLayout, NetworkInterface


def node_launch_template(
    name: str,
    *,
    instance_type: InstanceType,
    layout: InterfaceLayout | None,
    security_group_id: Input[str],
    placement: LaunchPlacement,
    threads_per_core: int | None,
    root_device_name: str,
    root_volume_gib: int,
    kms_key: str | None,
    user_data: str,
    tags: Mapping[str, str],
    opts: ResourceOptions,
) -> aws.ec2.LaunchTemplate:
    """Create the template; `layout` None leaves the one plain interface to who launches.

    `user_data` is in base64. The subnet, the instance type and the machine image come from the
    service that launches: https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html
    """
    return aws.ec2.LaunchTemplate(
        name,
        update_default_version=True,
        network_interfaces=[_interface(each, security_group_id) for each in layout.interfaces]
        if layout
        else None,
        capacity_reservation_specification=placement.capacity_reservation_specification,
        instance_market_options=placement.instance_market_options,
        cpu_options=aws.ec2.LaunchTemplateCpuOptionsArgs(
            # EC2 wants both: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateCpuOptionsRequest.html
            core_count=instance_type.cores,
            threads_per_core=threads_per_core,
        )
        if threads_per_core not in (None, instance_type.threads_per_core)
        else None,
        block_device_mappings=[
            aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                device_name=root_device_name,
                ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                    volume_type="gp3",
                    volume_size=root_volume_gib,
                    encrypted="true",
                    kms_key_id=kms_key,
                    delete_on_termination="true",
                ),
            )
        ],
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            # for the host alone; single-node jobs, which share its network, are on the host, too
            http_put_response_hop_limit=1,
        ),
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags)
            for kind in ("instance", "volume", "network-interface")
        ],
        user_data=user_data,
        tags=tags,
        opts=opts,
    )


def _interface(
    interface: NetworkInterface, security_group_id: Input[str]
) -> aws.ec2.LaunchTemplateNetworkInterfaceArgs:
    return aws.ec2.LaunchTemplateNetworkInterfaceArgs(
        network_card_index=interface.network_card_index,
        device_index=interface.device_index,
        interface_type=interface.interface_type,
        security_groups=[security_group_id],
        delete_on_termination="true",
        # no public-address field: EC2 refuses it beside several interfaces
    )
