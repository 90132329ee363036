"""Python imports this before the user's script, because ``traindx run`` put this folder on PYTHONPATH. It leaves no trace there."""
import os
import sys


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    settings = os.environ.pop("TRAINDX_BOOT", None)
    rest = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and os.path.abspath(path) != here]
    os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    if not rest:
        del os.environ["PYTHONPATH"]
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  the environment's own, which ours stood before
    except ImportError:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
    if settings:
        try:
            from traindx.boot import begin
            begin(settings)
        except Exception as problem:  # a broken watcher must not stop the script
            sys.stderr.write(f"traindx: not watching ({type(problem).__name__}: {problem})\n")


_begin()
