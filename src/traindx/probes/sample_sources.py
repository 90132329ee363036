"""What a dataset says of its samples: names of classes, files, the tokenizer that reads its tokens."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

FILES = 20_000
_LISTS = ("samples", "imgs", "files", "file_names", "filenames", "paths", "image_paths", "image_files", "ids", "image_ids", "names")
_TABLES = ("itos", "id2word", "idx2word", "id_to_token", "idx_to_char", "id2char", "ix_to_char", "idx2char")
_TOKENIZERS = ("transformers", "tokenizers", "tiktoken", "sentencepiece", "youtokentome")


def _behind(dataset: Any) -> Iterator[Any]:
    """The dataset, and those that it is a part of."""
    for _ in range(4):
        yield dataset
        inner = getattr(dataset, "dataset", None)
        if inner is None:
            return
        dataset = inner


def class_names(dataset: Any) -> tuple[str, ...]:
    for each in _behind(dataset):
        try:
            table = getattr(each, "class_to_idx", None)
            if isinstance(table, dict) and table and all(isinstance(v, int) for v in table.values()):
                return tuple(str(name) for name, _ in sorted(table.items(), key=lambda item: item[1]))[:1000]
            names = getattr(each, "classes", None)
            if isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names):
                return tuple(names)[:1000]
        except Exception:
            continue  # a dataset that answers with errors of its own
    return ()


def files_of(dataset: Any) -> list[str]:
    """File names or ids of the samples, through the indices of a Subset."""
    chosen: list[int] | None = None
    for each in _behind(dataset):
        for name in _LISTS:
            items = vars(each).get(name) if hasattr(each, "__dict__") else None
            if isinstance(items, (list, tuple)) and items and isinstance(_first(items[0]), str):
                picked = items if chosen is None else [items[i] for i in chosen if i < len(items)]
                return [_first(item) for item in picked[:FILES]]
        indices = getattr(each, "indices", None)
        if indices is not None:
            try:
                own = [int(i) for i in indices]
                chosen = own if chosen is None else [own[i] for i in chosen]
            except (TypeError, ValueError, IndexError):
                return []
    return []


def _first(item: Any) -> Any:
    return item[0] if isinstance(item, (list, tuple)) and item else str(item) if hasattr(item, "__fspath__") else item


def tokenizer_of(collate: Any, dataset: Any) -> Any:
    """A library's tokenizer, or a table from ids to texts, that the script holds where it can be seen."""
    for place in (collate, *_behind(dataset)):
        found = getattr(place, "tokenizer", None)
        if found is not None and _is_tokenizer(found):
            return found
    main = sys.modules.get("__main__")
    values = list(vars(main).items()) if main is not None else []
    named = [value for name, value in values if name.lower() in _TABLES]
    return next((v for _, v in values if _is_tokenizer(v)), next((v for v in named if isinstance(v, (dict, list, tuple))), None))


def _is_tokenizer(value: Any) -> bool:
    return type(value).__module__.split(".")[0] in _TOKENIZERS and callable(getattr(value, "decode", None))


def decoded(tokenizer: Any, ids: list[int]) -> str | None:
    """The text of token ids; None where it cannot be told."""
    try:
        if isinstance(tokenizer, dict):
            return "".join(_spaced(str(tokenizer.get(i, tokenizer.get(str(i), "?")))) for i in ids)
        if isinstance(tokenizer, (list, tuple)):
            return "".join(_spaced(str(tokenizer[i])) if 0 <= i < len(tokenizer) else "?" for i in ids)
        return str(tokenizer.decode(ids))
    except Exception:
        return None


def _spaced(token: str) -> str:
    """Characters stand as they are, words with a blank between."""
    return token if len(token) == 1 else f"{token} "
