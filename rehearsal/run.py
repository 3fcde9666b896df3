"""Runs a project's `__main__.py` once, as the CLI's language host would, against the monitor."""

import asyncio
import contextlib
import contextvars
import gc
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rehearsal.configuration import (
    ConfigurationError,
    StackConfiguration,
    read_configuration,
    stack_name,
)
from rehearsal.model import Json, Problem, Rehearsal, Resource
from rehearsal.pretend_aws import PretendAws

if TYPE_CHECKING:
    from rehearsal.monitor import RecordingEngine, RecordingMonitor

AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
REPOSITORY = Path(__file__).resolve().parent.parent

Judge = Callable[[Sequence[Mapping[str, Json]]], Sequence[Mapping[str, Json]]]
"""Turns resource rows into findings of policy rules."""


def rehearse(
    stack_or_file: str,
    *,
    project: Path = REPOSITORY,
    config_overrides: Mapping[str, Json] | None = None,
    judge: Judge = lambda _: (),
) -> Rehearsal:
    """Run a stack's program and answer everything it would create.

    It may be called any number of times in a process, one call at a time. The working directory,
    `sys.path` and the standard streams are the program's while it runs, and restored afterwards.
    A program that reads the clock takes it from the environment variable SOURCE_DATE_EPOCH, in
    seconds since 1970, https://reproducible-builds.org/specs/source-date-epoch/: set it for an
    answer that does not change from day to day.

    Args:
        stack_or_file: `dev` for Pulumi.dev.yaml, or the path of a file of that form.
        project: Directory with Pulumi.yaml and `__main__.py`.
        config_overrides: Configuration keys that replace those of the file.
        judge: Gives the findings of policy rules.

    Raises nothing for a wrong configuration or program: what is wrong is in `errors`.
    """
    try:
        configuration = read_configuration(
            stack_or_file, project=project, overrides=config_overrides
        )
    except ConfigurationError as error:
        return Rehearsal(stack=stack_name(stack_or_file), errors=error.problems)
    with _no_collections():
        return _rehearse(configuration, project.resolve(), judge)


def _rehearse(configuration: StackConfiguration, project: Path, judge: Judge) -> Rehearsal:
    # here and not above, so that a wrong name is answered before Pulumi's 0.3 s of imports
    from rehearsal.monitor import RecordingEngine, RecordingMonitor

    engine, aws = RecordingEngine(), PretendAws(configuration)
    monitor = RecordingMonitor(stack=configuration.stack, project=configuration.project, aws=aws)
    with _as_program_of(project):
        # a context of its own takes the SDK's settings, configuration and root resource with it
        globals_, errors = contextvars.Context().run(_run, configuration, project, monitor, engine)
    errors += [
        Problem(key="program", value=None, reason=text, fix="see the program's log")
        for text in engine.errors
    ]
    said = tuple(error.key or "" for error in errors)
    errors += [each for each in configuration.problems if not _is_covered(each, said)]
    resources = _in_order(monitor.rows)
    rows = [each.to_json() for each in resources if not each.external]
    facts: dict[str, Any] = {} if errors else _price_and_time(rows, aws.region)
    return Rehearsal(
        stack=configuration.stack,
        region=configuration.region,
        errors=tuple(errors),
        warnings=_warnings(engine.warnings, getattr(globals_.get("stack"), "warnings", ())),
        resources=resources,
        outputs=monitor.outputs,
        findings=judge(rows),
        **facts,
    )


def _run(
    configuration: StackConfiguration,
    project: Path,
    monitor: "RecordingMonitor",
    engine: "RecordingEngine",
) -> tuple[dict[str, Any], list[Problem]]:
    """The program's global names, and what stopped it."""
    from pulumi.runtime import set_all_config
    from pulumi.runtime.settings import Settings, configure
    from pulumi.runtime.stack import run_in_stack

    configure(
        Settings(
            project=configuration.project,
            stack=configuration.stack,
            organization="organization",
            root_directory=str(project),
            monitor=monitor,
            engine=engine,
            dry_run=False,
        )
    )
    set_all_config(configuration.texts, sorted(configuration.secret_keys))
    globals_: dict[str, Any] = {}

    async def program() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(_SameThread())
        loop.set_exception_handler(_ignore)  # the first error is raised, echoes are noise
        await run_in_stack(
            lambda: globals_.update(
                runpy.run_path(str(project / "__main__.py"), run_name="__main__")
            )
        )

    try:
        with asyncio.Runner() as runner:
            runner.run(program())
    except (Exception, SystemExit) as error:
        return globals_, _problems_of(error, project) or list(monitor.problems)
    return globals_, list(monitor.problems)


def _ignore(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Handle nothing."""


class _SameThread(ThreadPoolExecutor):
    """Runs work at once: a call that takes microseconds is not worth a thread, or a race."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _problems_of(error: BaseException, project: Path) -> list[Problem]:
    """What an exception says: the structured problems of its causes, else its own text.

    Empty for a refusal, which the monitor has kept already.
    """
    for cause in _causes(error):
        if problems := getattr(cause, "problems", None):
            return [Problem(key=p.key, value=p.value, reason=p.reason, fix=p.fix) for p in problems]
        if hasattr(cause, "problem"):
            return []
    frames = traceback.extract_tb(error.__traceback__)
    where = [f for f in frames if Path(f.filename).is_relative_to(project)]
    if isinstance(error, SyntaxError) and error.filename:
        place = f" ({Path(error.filename).name}:{error.lineno})"
    elif where:
        name = Path(where[-1].filename).relative_to(project)
        place = f" ({name}:{where[-1].lineno})"
    else:
        place = ""
    return [
        Problem(
            key="program",
            value=type(error).__name__,
            reason=f"{error}{place}",
            fix="correct the program at that line" if place else "correct the program",
        )
    ]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what it was raised from; the SDK raises some from themselves."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _is_covered(problem: Problem, said: Sequence[str]) -> bool:
    return any(key == problem.key or key.startswith(f"{problem.key}.") for key in said)


def _warnings(logged: Sequence[str], structured: Sequence[Any]) -> tuple[Problem, ...]:
    """Each logged text, with its structure where the program's settings have it."""
    known = {str(each): each for each in structured}
    return tuple(
        Problem(key=each.key, value=each.value, reason=each.reason, fix=each.fix)
        if (each := known.get(text)) is not None
        else Problem(key=None, value=None, reason=text, fix=None)
        for text in logged
    )


def _in_order(rows: Mapping[str, Resource]) -> tuple[Resource, ...]:
    """Parents before children, siblings by type and name: registration order is no order."""

    def path(row: Resource) -> tuple[tuple[str, str], ...]:
        above = path(rows[row.parent]) if row.parent else ()
        return (*above, (row.type, row.name))

    return tuple(sorted(rows.values(), key=path))


def _price_and_time(rows: Sequence[Mapping[str, Json]], region: str) -> dict[str, Json]:
    from fabric.creation_times import time_until_ready
    from fabric.prices import price_of

    return {
        "price": price_of(rows, region=region).to_json(),
        "ready": time_until_ready(rows).to_json(),
    }


@contextlib.contextmanager
def _no_collections() -> Generator[None]:
    """Pulumi and its AWS SDK make 100 MB of objects that live on: collecting costs 0.4 s."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _as_program_of(project: Path) -> Generator[None]:
    """Directory, path, arguments and output as a program of the project expects them."""
    path, arguments = sys.path[:], sys.argv[:]
    sys.path.insert(0, str(project))
    sys.argv[:] = [str(project / "__main__.py")]
    try:
        with (
            _without_region_of_the_shell(),
            contextlib.chdir(project),
            contextlib.redirect_stdout(sys.stderr),
            _modules_of(project),
        ):
            yield
    finally:
        sys.path[:], sys.argv[:] = path, arguments


@contextlib.contextmanager
def _without_region_of_the_shell() -> Generator[None]:
    """The provider's SDK takes a region from these, and a rehearsal says the same everywhere."""
    kept = {key: os.environ.pop(key) for key in AWS_REGIONS if key in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


@contextlib.contextmanager
def _modules_of(project: Path) -> Generator[None]:
    """Let the project's modules hide ours of the same name; our own project keeps them loaded."""
    if project == REPOSITORY:
        yield
        return
    theirs = {each.stem for each in project.iterdir() if each.suffix == ".py" or each.is_dir()}
    theirs -= {"__main__", "rehearsal"}

    def taken_out() -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name.split(".")[0] in theirs]
        return {name: sys.modules.pop(name) for name in names}

    ours = taken_out()
    try:
        yield
    finally:
        taken_out()
        sys.modules.update(ours)
