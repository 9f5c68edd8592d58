"""How long each step of an application took, by when it and the next one began."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel


def seconds_per_step(steps: Sequence[tuple[float, str]]) -> dict[str, float]:
    """From one step's beginning to the next one's: finer than the report inside the write's transaction."""
    ends = [at for at, _ in steps[1:]]
    seconds: dict[str, float] = {}
    for (began, name), ended in zip(steps, ends, strict=False):  # the last one's end is not told
        seconds[name] = seconds.get(name, 0.0) + ended - began
    return seconds


def seconds_of(report: BaseModel, per_step: Mapping[str, float]) -> dict[str, float]:
    """The same, with the report's own numbers where it has some: of steps that hold others, those of all of it."""
    told = getattr(report, "seconds", {})  # of an initialization one number
    return {**per_step, **(told if isinstance(told, Mapping) else {})}
