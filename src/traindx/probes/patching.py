"""Replacing one function of torch by one that also tells us, and putting it back."""
from __future__ import annotations

import functools
import types
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any


def replace(stack: ExitStack, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """``owner.name = make(original)`` until the stack closes; absent names are passed over (other torch versions)."""
    inherited = isinstance(owner, type) and name not in owner.__dict__
    original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if inherited and isinstance(getattr(owner, name, None), types.MethodDescriptorType):
        original = getattr(owner, name)  # Tensor's methods are its C base's; Python bases are patched themselves
    if original is None:
        return
    made = make(original)
    stack.callback(_no_builtin, made)
    setattr(owner, name, made)
    if inherited:
        stack.callback(delattr, owner, name)
    else:
        stack.callback(setattr, owner, name, original)


def dressed(wrapper: Callable[..., Any], original: Any) -> Any:
    """``wrapper`` with the name, signature and docstring of ``original``."""
    return functools.update_wrapper(wrapper, original)


def shadow(wrapper: types.FunctionType, original: Any) -> Any:
    """``wrapper`` dressed as ``original``, with the original's globals.

    Such a wrapper may use closure variables and builtins only. torch.jit.script reads the source of what
    ``__wrapped__`` points to and resolves it in the wrapper's globals: with ours it fails.
    """
    if not isinstance(original, types.FunctionType):
        return _builtin_too(functools.update_wrapper(wrapper, original), original)
    twin = types.FunctionType(
        wrapper.__code__, original.__globals__, original.__name__, wrapper.__defaults__, wrapper.__closure__)
    twin.__kwdefaults__ = wrapper.__kwdefaults__
    # the original may itself be another probe's wrapper of a C function
    return _builtin_too(functools.update_wrapper(twin, original), original)


def _builtin_too(wrapper: Any, original: Any) -> Any:
    """torch.jit.script knows torch's C functions by identity: it takes the wrapper of one for that one."""
    try:
        from torch.jit._builtins import _find_builtin, _register_builtin
        name = _find_builtin(original)
        if name is not None:
            _register_builtin(wrapper, name)
            _builtins.add(id(wrapper))
    except Exception:
        pass  # other torch versions: only scripting a model is at stake
    return wrapper


_builtins: set[int] = set()  # wrappers that torch.jit takes for C functions, by id as its table does


def _no_builtin(wrapper: Any) -> None:
    """A wrapper that is taken off leaves torch.jit's table: its id may soon be another function's."""
    if id(wrapper) in _builtins:
        from torch.jit._builtins import _get_builtin_table
        _builtins.discard(id(wrapper))
        _get_builtin_table().pop(id(wrapper), None)
