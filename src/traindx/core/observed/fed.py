"""What the model was fed with: rows by their content, columns by their statistics, labels in their order."""

from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Columns:
    """Input columns over the distinct rows of a group; at most 256 of the ``total`` elements of a row, chosen once.

    ``low``/``high`` are over all elements seen. ``levels`` counts the distinct values in a sample of rows, ``spacing``
    is the smallest gap between two of them, ``at_low``/``at_high`` are the shares of that sample that lie at its very
    ends. ``lows``/``highs`` are by column.
    """

    rows: int
    total: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    low: float
    high: float
    levels: int
    spacing: float
    at_low: float
    at_high: float
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fed(Observation):
    """Rows that one model was fed with, in training (``group`` is ``train``) or at one place of evaluation. ``key`` is
    ``fed-<model>-<group>``.

    ``model`` stands for a set of weights: wrappers of one module are one model. ``bits`` estimates how much a row says
    (two continuous columns: 64), so that equal rows by chance can be told from copies; ``whole`` means that all
    elements are whole numbers. ``target_lows``/``target_highs`` are the ends of its float targets, by column.
    ``inputs`` counts the tensors of one call. ``known`` is the share of the latest rows
    that training had met before: 1 when all its rows are known. ``skipped`` batches were not looked at. ``loader`` and
    ``dataset`` are 0 where no DataLoader delivered the batches. ``trained`` counts the distinct evaluated rows that
    training had seen before, ``known_at_first`` those it had seen when they were first evaluated, and ``rounds`` how often it had gone round
    its rows when this evaluation first ran; of the last pass, ``full`` and ``clean`` count the batches of which (nearly) all and
    (nearly) no rows were. ``compared`` rows at the same places of two passes, ``changed`` of which differ although
    their labels do not. ``epoch_rows``/``epoch_distinct``: the first fully seen epoch of a loader whose sampler draws
    without replacement; ``repeated_labels`` are the labels of rows met again in it. ``run`` is the longest run of steps
    that were fed the same rows, ending at ``run_last``; ``run_held`` of them used the very same memory.
    ``storage_rows`` is how many such rows the memory of the batch holds.
    """

    model: int
    group: str
    site: Site | None
    loader: int = 0
    dataset: int = 0
    loader_site: Site | None = None
    iter_site: Site | None = None
    sampler: str = ""
    dataset_size: int | None = None
    workers: int = 0
    row_shape: tuple[int, ...] = ()
    dtype: str = ""
    batch_size: int = 0
    batches: int = 0
    rows: int = 0
    distinct: int = 0
    skipped: int = 0
    passes: int = 0
    inputs: int = 1
    bits: float = 0.0
    whole: bool = False
    columns: Columns | None = None
    target_lows: tuple[float, ...] = ()
    target_highs: tuple[float, ...] = ()
    known: float = 0.0
    trained: int = 0
    earlier: int = 0
    known_at_first: int = 0
    rounds: float = 0.0
    full: int = 0
    clean: int = 0
    middle: int = 0
    compared: int = 0
    changed: int = 0
    epoch_rows: int = 0
    epoch_distinct: int = 0
    repeated_labels: dict[int, int] | None = None
    run: int = 0
    run_held: int = 0
    run_last: int = 0
    iterations: int = 0
    storage_rows: int = 0


@dataclass(frozen=True)
class Neighbours:
    """How much the label is foretold by the nearest other rows, on at most 1500 distinct training rows.

    Classes: share of the 5 nearest rows with the same label; values: correlation with their mean. ``expected`` and
    ``spread`` are mean and standard deviation of the same under shuffled labels. ``column_z``: the strongest single
    column's correlation, in standard errors.
    """

    rows: int
    agreement: float
    expected: float
    spread: float
    column_z: float


@dataclass(frozen=True)
class Giveaway:
    """The input column that gives the target away best. ``error`` is the largest residual of an exact straight line, in
    target standard deviations (0: the column is the target); ``columns`` counts those with such an exact line;
    ``one_to_one`` for class labels. ``in_order`` are the columns (a few) whose values stand in the target's order on every row,
    though on no straight line with it.
    """

    column: int
    rows: int
    error: float
    columns: int
    one_to_one: bool
    values: int
    in_order: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MapsFed(Observation):
    """Targets that are maps over the images of training (masks, depths). ``key`` is ``maps-<model>``.

    Of ``seen`` maps, ``lying`` fit their image clearly better as they lie than turned over in any way, ``turned`` only when turned, by how;
    the shares are of the image's variance that such maps explain (medians, 0 .. 1).
    """

    model: int
    site: Site | None
    seen: int
    lying: int
    turned: dict[str, int]
    share_lying: float
    share_turned: float
    first_forward: Site | None = None
    loader_site: Site | None = None
    written: tuple[Site, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Labels(Observation):
    """Targets that came with training rows, one per row. ``key`` is ``labels-<model>``; ``classes`` is the width of the
    logits (0: values).

    ``pure`` is the share of equal pairs among the labels of one step, ``pure_expected`` the same for a shuffled order;
    ``run`` is the mean length of runs of one label along the whole order of training. ``distinct`` counts different
    rows by label. ``again`` counts rows met again, ``again_same`` those with the same label; ``conflicting`` distinct
    rows that had two labels. ``written``: lines of the user's ``__getitem__`` or collate function that give a sample back.
    ``recall`` is by class, over the latest training batches. ``held_out`` counts the labels
    seen in evaluation.
    """

    model: int
    site: Site | None
    function: str
    classes: int
    counts: dict[int, int]
    distinct: dict[int, int]
    steps: int
    first_forward: Site | None = None
    loader: int = 0
    loader_site: Site | None = None
    written: tuple[Site, ...] = ()
    sampler: str = ""
    pure: float = 0.0
    pure_expected: float = 0.0
    run: float = 0.0
    again: int = 0
    again_same: int = 0
    conflicting: int = 0
    bits: float = 0.0
    weighted: bool = False
    recall: dict[int, float] | None = None
    held_out: dict[int, int] | None = None
    rising: float = 0.0
    value_distinct: int = 0
    value_columns: int = 0
    value_mean: tuple[float, ...] = ()
    value_std: tuple[float, ...] = ()
    neighbours: Neighbours | None = None
    giveaway: Giveaway | None = None


@dataclass(frozen=True, kw_only=True)
class NonFiniteFed(Observation):
    """A batch with NaN or infinity in it. ``what`` is input or target; ``rows`` are positions in the batch, ``columns``
    in a row (some). ``key`` is ``nonfinite-<model>-<what>``; of all ``batches`` of training, ``skipped`` had such inputs
    and were not trained on. ``breaks``: lines that divide or take a root or logarithm, of the dataset or the collate
    function, or, where no loader delivered the batch, of what leads to it.
    """

    model: int
    what: str
    site: Site | None
    loader_site: Site | None
    breaks: tuple[Site, ...] = ()
    nans: int
    infinities: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    batch: int
    training: bool
    skipped: int = 0
    batches: int = 0


@dataclass(frozen=True, kw_only=True)
class FirstWeights(Observation):
    """What enters the first layer that has weights, on the first steps. ``key`` is ``first-<model>``.

    ``rms`` is the root mean square by feature (last dimension, channels of a convolution), over all batches looked at;
    ``centre`` the mean. ``binary``: only zeros and ones were seen. ``raw``: the tensor is the model's own input, no
    operation in between.
    """

    model: int
    module_class: str
    site: Site | None
    forward_site: Site | None
    loader_site: Site | None
    rms: tuple[float, ...]
    centre: tuple[float, ...]
    low: float
    high: float
    binary: bool
    whole: bool
    samples: int


@dataclass(frozen=True, kw_only=True)
class ScalerFitted(Observation):
    """A scikit-learn scaler that was fitted. ``key`` is ``scaler-<n>``. ``centre``/``scale`` are the statistics by
    column (at most 64).

    ``parts`` are the tables it has transformed since: rows, and mean and standard deviation of the outcome by column.
    """

    id: int
    scaler: int
    class_name: str
    site: Site | None
    rows: int
    columns: int
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Part:
    """A table that a fitted scaler transformed."""

    rows: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    site: Site | None


@dataclass(frozen=True, kw_only=True)
class Reseeded(Observation):
    """A line that seeds a random generator with the same seed again and again. ``key`` is ``reseeded-<n>``. ``steps``:
    distinct training steps.
    """

    site: Site | None
    function: str
    seed: str
    calls: int
    steps: int
    first_step: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class ScalingLines(Observation):
    """Lines of the program that compute statistics over the rows of a table (``x.mean(0)``, ``np.std(x, axis=0)``), as
    its source reads. ``ranges`` take the minimum and the maximum of one array; where a function does, its calls come first.
    """

    sites: tuple[Site, ...]
    ranges: tuple[Site, ...] = ()
