"""Ways to break good file systems and volumes."""

from tests.policy.edits import Break, add, both, drop, named, put, remove
from tests.policy.mutations import Mutation, Rows

ASSOCIATION = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
NFS = ("SecurityGroupIngressRule", "home-nfs")


def _broken(rule: str, what: str, breaks: Break) -> Mutation:
    return Mutation(rule=rule, stack="file-systems", what=what, breaks=breaks)


def _data(key: str, value: object) -> Break:
    return put("LustreFileSystem", "data", key, value)


def _checkpoints(key: str, value: object) -> Break:
    return put("LustreFileSystem", "checkpoints", key, value)


def _move(short: str, name: str, key: str) -> Break:
    """Take the subnet of the other zone."""

    def change(rows: Rows) -> None:
        urns = named(rows, short, name)["propertyDependencies"][key]
        urns[:] = [urn.replace("::private-a", "::private-b") for urn in urns]

    return change


def _eight_more(rows: Rows) -> None:
    for number in range(8):
        links = {"fileSystemId": ("LustreFileSystem", "data")}
        add(ASSOCIATION, f"more-{number}", links, fileSystemPath=f"/{number}")(rows)


MUTATIONS = (
    _broken(
        "fsx-deployment-type-stated", "one", drop("LustreFileSystem", "data", "deploymentType")
    ),
    _broken("fsx-deployment-type-stated", "empty", _checkpoints("deploymentType", "")),
    _broken("fsx-storage-capacity", "between", _data("storageCapacity", 3000)),
    _broken("fsx-storage-capacity", "SCRATCH_1's step", _data("storageCapacity", "3600")),
    _broken("fsx-throughput", "PERSISTENT_1's", _data("perUnitStorageThroughput", 200)),
    _broken("fsx-throughput", "none", drop("LustreFileSystem", "data", "perUnitStorageThroughput")),
    _broken("fsx-throughput", "for scratch", _checkpoints("deploymentType", "SCRATCH_2")),
    _broken("fsx-lustre-version", "2.10", _data("fileSystemTypeVersion", "2.10")),
    _broken("fsx-lustre-version", "2.12 with metadata", _data("fileSystemTypeVersion", "2.12")),
    _broken(
        "fsx-efa-needs", "no metadata", drop("LustreFileSystem", "data", "metadataConfiguration")
    ),
    _broken("fsx-efa-needs", "PERSISTENT_1", _data("deploymentType", "PERSISTENT_1")),
    _broken("fsx-import-path", "import", _data("importPath", "s3://research-data")),
    _broken("fsx-import-path", "policy", _data("autoImportPolicy", "NEW")),
    _broken(
        "fsx-one-subnet",
        "two",
        _data("subnetIds", ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]),
    ),
    _broken(
        "fsx-one-subnet",
        "the same twice",
        _checkpoints("subnetIds", ["subnet-0123456789abcdef0"] * 2),
    ),
    _broken(
        "fsx-ports-open", "988 only", put("SecurityGroup", "scratch", "ingress.1.toPort", 1018)
    ),
    _broken(
        "fsx-ports-open", "no 988", put("SecurityGroup", "scratch", "ingress.0.protocol", "udp")
    ),
    _broken("fsx-ports-open", "nothing", drop("SecurityGroup", "scratch", "ingress")),
    _broken("fsx-efa-group", "no ingress", drop("SecurityGroup", "nodes", "ingress")),
    _broken("fsx-efa-group", "egress to anywhere only", drop("SecurityGroup", "nodes", "egress.0")),
    _broken("fsx-data-repository", "nine", _eight_more),
    _broken(
        "fsx-data-repository", "with an export path", _data("exportPath", "s3://research-data")
    ),
    _broken("fsx-data-repository", "on SCRATCH_1", _data("deploymentType", "SCRATCH_1")),
    _broken(
        "fsx-zone-of-nodes", "file system moved", _move("LustreFileSystem", "data", "subnetIds")
    ),
    _broken(
        "fsx-zone-of-nodes",
        "nodes moved",
        _move("ComputeEnvironment", "prepare", "computeResources"),
    ),
    _broken("fsx-persistent-backed-up", "0 days", _checkpoints("automaticBackupRetentionDays", 0)),
    _broken(
        "fsx-persistent-backed-up", "no repository", remove("DataRepositoryAssociation", "data")
    ),
    _broken("efs-mount-target-in-each-zone", "removed", remove("MountTarget", "home-a")),
    _broken(
        "efs-mount-target-in-each-zone",
        "only elsewhere",
        both(
            remove("MountTarget", "home-a"),
            put("Subnet", "private-b", "availabilityZone", "us-east-2c"),
        ),
    ),
    _broken(
        "efs-port-open", "another port", both(put(*NFS, "fromPort", 111), put(*NFS, "toPort", 111))
    ),
    _broken("efs-port-open", "no rule", remove(*NFS)),
    _broken("efs-encrypted", "off", put("FileSystem", "home", "encrypted", False)),
    _broken("efs-encrypted", "left out", drop("FileSystem", "home", "encrypted")),
    _broken("volume-encrypted", "a volume", put("Volume", "models", "encrypted", False)),
    _broken("volume-encrypted", "a root", drop("Instance", "login", "rootBlockDevice.encrypted")),
    _broken(
        "volume-encrypted",
        "a template",
        put("LaunchTemplate", "hosts", "blockDeviceMappings.0.ebs.encrypted", "false"),
    ),
    _broken("volume-type-current", "a volume", put("Volume", "models", "type", "gp2")),
    _broken(
        "volume-type-current",
        "a template",
        put("LaunchTemplate", "hosts", "blockDeviceMappings.0.ebs.volumeType", "standard"),
    ),
)
