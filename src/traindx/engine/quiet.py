"""What the environment of a re-run tells libraries: keep to yourself, and to one thread."""
from __future__ import annotations

import os

# trackers and hubs that would call home; a program that insists in its own code meets the loopback network
QUIET = {"WANDB_MODE": "disabled", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "COMET_AUTO_LOG_DISABLE": "1",
         "NEPTUNE_MODE": "debug", "CLEARML_OFFLINE_MODE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "MPLBACKEND": "Agg"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(network: bool, threads: int = 1) -> dict[str, str]:
    """Of the server and so of all children. ``threads`` alike for all, or results would differ in the last digits;
    one seed for the hashes of strings, or sets would be walked in another order each time."""
    changed = {**QUIET, **({} if network else OFFLINE), **dict.fromkeys(_THREADS, str(threads)), "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **changed, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
