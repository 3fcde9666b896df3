"""trainyard: the place where distributed training runs on AWS, as a stack's settings say."""

import pulumi
import pulumi_aws as aws

from components.batch_mnp import BatchMNP
from components.network import Network, look_up_subnets
from components.placement_and_odcr import PlacementAndODCR
from settings.errors import SettingsError
from settings.load import load_settings
from settings.pulumi_config import clock, configured_sections

try:
    stack = load_settings(
        configured_sections(),
        stack_name=pulumi.get_stack(),
        region=aws.config.region,
        now=clock(),
        look_up_subnets=look_up_subnets,
    )
except SettingsError as error:
    raise pulumi.RunError(str(error)) from error

for warning in stack.warnings:
    pulumi.log.warn(str(warning))

network = Network("network", stack) if stack.network else None
placement = PlacementAndODCR("placement", stack)
if network:
    pulumi.export("network", network.outputs)
if stack.placement:
    pulumi.export("placement", placement.outputs)
if network and stack.batch:
    pulumi.export("batch", BatchMNP("batch", stack, network, placement).outputs)
