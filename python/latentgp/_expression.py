"""Kernel expressions as text: from nested tuples and back.

::

    sum      product {"+" product}
    product  factor {"*" factor}
    factor   (name | "(" sum ")") ["(" {name "=" value ","} ")"]
    value    number | word | list | sum         a list may have named entries: [lengthscale=[0.1, 10]]

What the numbers mean is checked where kernels are compiled; this only keeps their structure.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

TOKEN = re.compile(r"\s*(?:([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([A-Za-z_]\w*)|(.))")


class Word(str):
    """A word that stands for itself, such as ``true`` or the name of a parameter."""


def write(name: str, arguments: list[tuple[str, Any]]) -> str:
    """``name(key=value, …)``, or the name alone."""
    items = ", ".join(f"{key}={_text(key, value)}" for key, value in arguments)
    return f"{name}({items})" if items else name


def _text(key: str, value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if key == "fix":
        names = [value] if isinstance(value, str) else list(value)
        return f"[{', '.join(names)}]"
    if isinstance(value, dict):
        return f"[{', '.join(f'{k}={_text(k, v)}' for k, v in value.items())}]"
    if isinstance(value, str) or hasattr(value, "get_params"):
        return str(value)
    if key in ("dims", "hidden"):
        return f"[{', '.join(str(int(v)) for v in np.atleast_1d(value))}]"
    if key in ("degree", "components", "seed"):
        return str(int(value))
    return _numbers(np.asarray(value, dtype=float))


def _numbers(of: np.ndarray) -> str:
    if of.ndim == 0:
        return repr(float(of))
    return f"[{', '.join(_numbers(v) for v in of)}]"


def read(expression: str):
    """``("+", parts)``, ``("*", parts)``, ``("select", part, arguments)`` or ``("call", name, arguments)``."""
    reader = _Reader(expression)
    tree = reader.sum()
    if reader.at < len(reader.tokens):
        reader.fail("the end")
    return tree


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.tokens: list[tuple[str, str]] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            match = TOKEN.match(text, place)
            number, word, other = match.groups()
            before = self.tokens[-1][0] if self.tokens else "other"
            if number and number[0] in "+-" and before in ("number", "word", ")"):
                # `rbf +2` is no number: a sign after a value joins two of them.
                self.tokens.append((number[0], number[0]))
                place = match.start(1) + 1
                continue
            kind = "number" if number else "word" if word else other
            self.tokens.append((kind, number or word or other))
            place = match.end()

    def fail(self, expected: str):
        found = f"`{self.tokens[self.at][1]}`" if self.at < len(self.tokens) else "the end"
        raise ValueError(f"cannot read `{self.text}`: expected {expected}, found {found}")

    def see(self, kind: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][0] == kind

    def take(self, kind: str, expected: str = "") -> str:
        if not self.see(kind):
            self.fail(expected or f"`{kind}`")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def joined(self, kind: str, part):
        parts = [part()]
        while self.see(kind):
            self.at += 1
            parts.append(part())
        return parts[0] if len(parts) == 1 else (kind, parts)

    def sum(self):
        return self.joined("+", self.product)

    def product(self):
        return self.joined("*", self.factor)

    def factor(self):
        if self.see("("):
            self.at += 1
            inner = self.sum()
            self.take(")")
            return ("select", inner, self.arguments()) if self.see("(") else inner
        name = self.take("word", "a kernel")
        return ("call", name, self.arguments() if self.see("(") else {})

    def arguments(self) -> dict:
        self.take("(")
        arguments = {}
        while not self.see(")"):
            name = self.take("word", "the name of an argument")
            self.take("=")
            arguments[name] = self.value()
            if not self.see(")"):
                self.take(",")
        self.take(")")
        return arguments

    def value(self):
        if self.see("number"):
            return float(self.take("number"))
        if self.see("["):
            return self.list()
        start = self.at
        tree = self.sum()
        if tree[0] == "call" and self.at == start + 1:
            return Word(tree[1])
        # Priors and transforms look like calls with plain numbers; kernels have named arguments.
        return tree

    def list(self):
        self.take("[")
        named, plain = {}, []
        while not self.see("]"):
            if self.see("word") and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][0] == "=":
                name = self.take("word")
                self.take("=")
                named[name] = self.entry()
            else:
                plain.append(self.entry())
            if not self.see("]"):
                self.take(",")
        self.take("]")
        return named or plain

    def entry(self):
        """A number, a word, a list, or ``gamma(2, 3)`` as its text."""
        if self.see("number"):
            return float(self.take("number"))
        if self.see("["):
            return self.list()
        word = self.take("word", "a number, a word or a list")
        if not self.see("("):
            return Word(word)
        self.take("(")
        numbers = []
        while not self.see(")"):
            numbers.append(repr(float(self.take("number", "a number"))))
            if not self.see(")"):
                self.take(",")
        self.take(")")
        return f"{word}({', '.join(numbers)})"
