"""FSx for Lustre: what it takes and what it refuses."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from fabric.rows import number, text, texts, true
from policy.examples import resource
from policy.rule import Finding, Rule, Subject
from policy.tokens import LUSTRE_FILE_SYSTEM
from policy.values import is_unknown

CREATE_PAGE = "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html"
CAPACITY_PAGE = "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html"
EFA_PAGE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html"
# MB/s for each TiB: CREATE_PAGE
_THROUGHPUTS: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
_HDD_STEPS = {12: 6000, 40: 1800}  # GiB, by MB/s for each TiB: CAPACITY_PAGE


def _kind(subject: Subject) -> tuple[str, str] | None:
    """Deployment and storage type with the API's defaults; None while one is unknown.

    One that is left out beside a backup is the backup's.
    """
    given = (subject.at("deploymentType"), subject.at("storageType"))
    if is_unknown(list(given)) or (subject.at("backupId") and not all(given)):
        return None
    return text(given[0]) or "SCRATCH_1", text(given[1]) or "SSD"


def _deployment_type(subject: Subject) -> Iterator[Finding]:
    given = subject.at("deploymentType")
    if not given and not subject.at("backupId"):
        yield Finding(path="deploymentType", value=None, message="left out, it is SCRATCH_1")


def _capacity(subject: Subject) -> Iterator[Finding]:
    kind, size = _kind(subject), number(subject.at("storageCapacity"))
    throughput = number(subject.at("perUnitStorageThroughput"))
    if kind is None or size is None or kind[1] == "INTELLIGENT_TIERING":
        return
    smallest: tuple[int, ...] = (1200, 2400)
    step = 3600 if kind[0] == "SCRATCH_1" else 2400
    if kind[1] == "HDD":
        if throughput not in _HDD_STEPS:
            return
        smallest, step = (), _HDD_STEPS[int(throughput)]
    if size not in smallest and (size == 0 or size % step):
        first = "".join(f"{each}, " for each in smallest)
        yield Finding(
            path="storageCapacity",
            value=subject.at("storageCapacity"),
            message=f"{kind[0]} with {kind[1]} takes {first}or a multiple of {step} GiB",
        )


def _throughput(subject: Subject) -> Iterator[Finding]:
    given = subject.at("perUnitStorageThroughput")
    kind = _kind(subject)
    allowed = _THROUGHPUTS.get(kind) if kind else None
    if allowed and not is_unknown(given) and number(given) not in allowed:
        if given or not subject.at("backupId"):
            listed = ", ".join(map(str, allowed))
            yield Finding(
                path="perUnitStorageThroughput",
                value=given,
                message=f"{' '.join(kind or ())} takes {listed} MB/s for each TiB",
            )
    elif given and kind and kind[0].startswith("SCRATCH"):
        yield Finding(
            path="perUnitStorageThroughput",
            value=number(given),
            message=f"{kind[0]} does not take it",
        )


def _version(subject: Subject) -> Iterator[Finding]:
    version = text(subject.at("fileSystemTypeVersion"))
    if text(subject.at("deploymentType")) != "PERSISTENT_2":
        return
    if version == "2.10" or (version == "2.12" and subject.at("metadataConfiguration")):
        yield Finding(
            path="fileSystemTypeVersion",
            value=version,
            message=f"PERSISTENT_2 {'with metadata ' if version == '2.12' else ''}refuses it",
        )


def _efa(subject: Subject) -> Iterator[Finding]:
    kind = _kind(subject)
    if not true(subject.at("efaEnabled")) or kind is None:
        return
    if kind[0] != "PERSISTENT_2":
        yield Finding(path="deploymentType", value=kind[0], message="EFA takes PERSISTENT_2")
    if kind[1] == "SSD" and not subject.at("metadataConfiguration"):
        yield Finding(
            path="metadataConfiguration", value=None, message="EFA takes a metadata configuration"
        )


def _import_path(subject: Subject) -> Iterator[Finding]:
    for key in ("importPath", "exportPath", "autoImportPolicy"):
        given = subject.at(key)
        is_set = given and given != "NONE"  # a policy of NONE is none
        if is_set and text(subject.at("deploymentType")) == "PERSISTENT_2":
            yield Finding(
                path=key, value=text(given) or None, message="PERSISTENT_2 does not take it"
            )


def _several_subnets(subject: Subject) -> Iterator[Finding]:
    given = subject.at("subnetIds")
    subnets = cast("list[object]", given) if isinstance(given, list) else []
    if len(subnets) > 1:
        yield Finding(
            path="subnetIds", value=texts(subnets) or None, message="it takes one subnet, not more"
        )


def _lustre(**more: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "deploymentType": "PERSISTENT_2",
        "storageType": "SSD",
        "storageCapacity": 4800,
        "perUnitStorageThroughput": 250,
        "fileSystemTypeVersion": "2.15",
    }
    return resource(LUSTRE_FILE_SYSTEM, **(settings | more))


_ONLY_LUSTRE = frozenset({LUSTRE_FILE_SYSTEM})

RULES = (
    Rule(
        id="fsx-deployment-type-stated",
        references=("R93",),
        family="storage",
        level="mandatory",
        level_because="it silently loses the durability that was thought to be there",
        sentence="An FSx for Lustre file system says which deployment type it has.",
        why="Left out it is SCRATCH_1, which keeps no second copy: a failed server takes its data.",
        fix="set deploymentType: PERSISTENT_2 to keep data, SCRATCH_2 for what can be made again",
        url=CREATE_PAGE,
        types=_ONLY_LUSTRE,
        check=_deployment_type,
        good=[_lustre()],
        bad=[_lustre(deploymentType=None)],
    ),
    Rule(
        id="fsx-storage-capacity",
        references=("R92",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="The storage capacity of an FSx for Lustre file system is one that its type has.",
        why="FSx refuses other sizes.",
        fix="use 1200, 2400, or a multiple of 2400 GiB (3600 for SCRATCH_1)",
        url=CAPACITY_PAGE,
        types=_ONLY_LUSTRE,
        check=_capacity,
        good=[_lustre(storageCapacity=7200)],
        bad=[_lustre(storageCapacity=3600)],
    ),
    Rule(
        id="fsx-throughput",
        references=("R92",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="A persistent FSx for Lustre file system has a throughput that its type offers.",
        why="FSx refuses other values, and any value for scratch file systems.",
        fix="use 125, 250, 500 or 1000 for PERSISTENT_2; 50, 100 or 200 for PERSISTENT_1 on SSD",
        url=CREATE_PAGE,
        types=_ONLY_LUSTRE,
        check=_throughput,
        good=[_lustre(perUnitStorageThroughput=1000)],
        bad=[_lustre(perUnitStorageThroughput=200)],
    ),
    Rule(
        id="fsx-lustre-version",
        references=("R92",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="PERSISTENT_2 has Lustre 2.12 or 2.15, with a metadata configuration 2.15.",
        why="FSx refuses the older versions there.",
        fix="set fileSystemTypeVersion to 2.15",
        url=CAPACITY_PAGE,
        types=_ONLY_LUSTRE,
        check=_version,
        good=[_lustre()],
        bad=[_lustre(fileSystemTypeVersion="2.10")],
    ),
    Rule(
        id="fsx-efa-needs",
        references=("R95",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="FSx for Lustre with EFA is PERSISTENT_2 with a metadata configuration.",
        why="Only those file servers have EFA.",
        fix="set deploymentType to PERSISTENT_2 and metadataConfiguration.mode to AUTOMATIC",
        url=EFA_PAGE,
        types=_ONLY_LUSTRE,
        check=_efa,
        good=[_lustre(efaEnabled=True, metadataConfiguration={"mode": "AUTOMATIC"})],
        bad=[_lustre(efaEnabled=True)],
    ),
    Rule(
        id="fsx-import-path",
        references=("R96",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="PERSISTENT_2 has no import or export path of its own.",
        why="It is linked to a bucket by data repository associations instead.",
        fix="make an aws.fsx.DataRepositoryAssociation and drop the paths",
        url=CREATE_PAGE,
        types=_ONLY_LUSTRE,
        check=_import_path,
        good=[_lustre()],
        bad=[_lustre(importPath="s3://data")],
    ),
    Rule(
        id="fsx-one-subnet",
        references=("R97",),
        family="storage",
        level="mandatory",
        level_because="it cannot be created",
        sentence="An FSx for Lustre file system is in one subnet.",
        why="Its servers are in one Availability Zone, and FSx refuses a second subnet.",
        fix="name the subnet of the nodes that mount it",
        url=CAPACITY_PAGE,
        types=_ONLY_LUSTRE,
        check=_several_subnets,
        good=[_lustre(subnetIds="subnet-0123456789abcdef0")],
        bad=[_lustre(subnetIds=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"])],
    ),
)
