"""The package as a whole: its size, and that it knows arrays by what they do."""

import ast
import io
import pathlib
import tokenize

FILES = sorted((pathlib.Path(__file__).parents[1] / "dg").rglob("*.py"))
ARRAY_TYPES = {"HostArray", "RefArray", "CuArray", "ROCArray", "DArray", "Traced"}


def lines_of_code(text):
    """How many lines hold code: neither blank, nor comment, nor docstring."""
    lines = set()
    skipped = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            first = node.body[0]
            lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def test_the_package_is_small():
    assert sum(lines_of_code(f.read_text()) for f in FILES) < 6000


def test_nothing_asks_for_the_type_of_arrays():
    """They are named where a caller may choose one, as a default or in an example, never in a condition."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            tests = [node.test] if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) else []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                tests.append(node)
            for test in tests:
                named = {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(test)}
                assert not named & ARRAY_TYPES, f"{path.name}:{node.lineno}"


if __name__ == "__main__":
    print("lines of code", sum(lines_of_code(f.read_text()) for f in FILES))
    print("lines in all ", sum(len(f.read_text().splitlines()) for f in FILES))
