"""The command line that repeats a comparison of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.inputs import ImageOptions
from kuiper_studio.engine_service.protocol import OtherRun

if TYPE_CHECKING:
    from engine.session import Session
    from kuiper_studio.engine_service.plans import ResolvedPlan
    from kuiper_studio.engine_service.protocol import CompareRequest

__all__ = ["command_of"]


def command_of(
    session: Session, request: CompareRequest, plan: ResolvedPlan | None
) -> tuple[str, ...]:
    """Return the words of the command; none where no command line does the same.

    Parameters
    ----------
    session : Session
        What was compared.
    request : CompareRequest
    plan : ResolvedPlan or None
        What the session was fed with; None where that is not known.
    """
    if plan is None or isinstance(request.reference, OtherRun) or session.overrides:
        return ()
    sources = plan.inputs.values()
    if session.backend == "recorded" or any(each.array is not None for each in sources):
        return ()
    words = ["kuiper-studio", "compare", str(session.graph.param_path)]
    words += ["--reference", str(request.reference)]
    if sources:
        words += ["--input", *(source.text for source in sources)]
    if plan.shapes:
        words += ["--shape", *plan.shapes.texts]
    words += _image_words(plan.options)
    if session.backend != "auto":
        words += ["--backend", session.backend]
    if session.seed:
        words += ["--seed", str(session.seed)]
    if request.tolerance is not None:
        words += ["--tolerance", repr(request.tolerance)]
    return tuple(words)


def _image_words(options: ImageOptions) -> list[str]:
    """Return the options that are not as by default."""
    usual = ImageOptions()
    texts = {
        "size": "x".join(map(str, options.size or ())),
        "fit": options.fit,
        "shorter_side": str(options.shorter_side),
        "border": str(options.border),
        "resampling": options.resampling,
        "order": options.order,
        "scale": repr(options.scale),
        "mean": ",".join(map(repr, options.mean)),
        "std": ",".join(map(repr, options.std)),
    }
    return [
        f"--{name.replace('_', '-')}={text}"  # one word: a mean may begin with a minus
        for name, text in texts.items()
        if getattr(options, name) != getattr(usual, name)
    ]
