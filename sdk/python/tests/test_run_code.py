from __future__ import annotations

from pathlib import Path

import pytest

from picod import CommandError, CommandTimeoutError, InterpreterNotFoundError, PicoDClient

HORROR = "'\"\\ $(echo no) `echo no` ${HOME} !! %s \\n & | ; < > * ? ~ # \t äöü \N{SNAKE} EOF '''"
LARGE_BYTES = 250_000
FILE_BYTES = 5_000_000
"""More than fits into one message."""


def leftovers() -> set[Path]:
    return set(Path("/tmp").glob(".picod-*"))


def quoted_for_shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "import sys\nprint(sys.version_info[0])", "3\n"),
        ("Python", "print(1)", "1\n"),
        ("bash", "a=(1 2 3)\necho ${#a[@]}", "3\n"),
        ("sh", "echo $((6 * 7))", "42\n"),
        ("node", "console.log([1, 2].map((x) => x * 2).join())", "2,4\n"),
        ("javascript", "console.log(typeof require)", "function\n"),
    ],
)
def test_runs_every_language(client: PicoDClient, language: str, code: str, expected: str) -> None:
    assert client.run_code(language, code) == expected


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", f"print({HORROR!r})"),
        ("bash", f"printf '%s\\n' {quoted_for_shell(HORROR)}"),
        ("sh", f"printf '%s\\n' {quoted_for_shell(HORROR)}"),
        ("node", f"console.log({HORROR!r})".replace("\\U0001f40d", "\\u{1f40d}")),
    ],
)
def test_code_survives_any_quoting(client: PicoDClient, language: str, code: str) -> None:
    assert client.run_code(language, code) == HORROR + "\n"


@pytest.mark.parametrize("size", [LARGE_BYTES, FILE_BYTES])
@pytest.mark.parametrize(
    ("language", "comment", "code"),
    [
        ("python", "#", "import sys; print('end', sys.stdin.read())"),
        ("bash", "#", "echo end $(cat)"),
        ("sh", "#", "echo end $(cat)"),
        ("node", "//", "console.log('end', require('fs').readFileSync(0, 'utf8'))"),
    ],
)
def test_code_may_be_large_and_leaves_nothing_behind(
    client: PicoDClient, language: str, comment: str, code: str, size: int
) -> None:
    line = f"{comment} {'x' * 70}\n"
    before = leftovers()
    assert client.run_code(language, line * (size // len(line)) + code).strip() == "end"
    assert leftovers() == before


def test_large_code_leaves_nothing_behind_when_it_fails(client: PicoDClient) -> None:
    padding = "#" * FILE_BYTES + "\n"
    before = leftovers()
    with pytest.raises(CommandError) as caught:
        client.run_code("python", padding + "raise SystemExit(5)")
    assert caught.value.exit_code == 5
    with pytest.raises(InterpreterNotFoundError):
        client.run_code("python", padding, interpreter="/no/such/python")
    assert leftovers() == before


def test_commands_in_a_script_cannot_eat_the_rest_of_it(client: PicoDClient) -> None:
    assert client.run_code("bash", "cat\necho still here") == "still here\n"


def test_a_failing_program_raises_with_its_traceback(client: PicoDClient) -> None:
    with pytest.raises(CommandError) as caught:
        client.run_code("python", "print('partial')\nraise KeyError('the reason')")
    assert caught.value.exit_code == 1
    assert caught.value.stdout == "partial\n"
    assert "KeyError: 'the reason'" in caught.value.stderr
    assert "line 2" in caught.value.stderr
    assert "the reason" in str(caught.value)


@pytest.mark.parametrize(
    ("language", "code"),
    [("bash", "set -e\nfalse\necho no"), ("bash", "exit 1"), ("sh", "(exit 1)"), ("node", "process.exit(1)")],
)
def test_the_exit_code_is_that_of_the_program(client: PicoDClient, language: str, code: str) -> None:
    with pytest.raises(CommandError) as caught:
        client.run_code(language, code)
    assert caught.value.exit_code == 1
    assert caught.value.stdout == ""


def test_a_program_may_exit_with_127(client: PicoDClient) -> None:
    with pytest.raises(CommandError) as caught:
        client.run_code("bash", "exit 127")
    assert not isinstance(caught.value, InterpreterNotFoundError)


def test_a_timeout_keeps_what_was_printed(client: PicoDClient) -> None:
    with pytest.raises(CommandTimeoutError) as caught:
        client.run_code("python", "import time\nprint('before')\ntime.sleep(60)", timeout=1)
    assert caught.value.stdout == "before\n"


def test_uses_cwd_env_and_interpreter(client: PicoDClient, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 'imported'")
    code = "import beside, os; print(beside.value, os.environ['X'])"
    assert client.run_code("python", code, cwd=str(tmp_path), env={"X": "y"}) == "imported y\n"
    marker = tmp_path / "interpreter"
    marker.write_text('#!/bin/sh\necho "mine $*"\n')
    marker.chmod(0o755)
    assert client.run_code("python", "", interpreter=str(marker)) == "mine -u -\n"


def test_refuses_other_languages(client: PicoDClient) -> None:
    with pytest.raises(ValueError, match=r"'cobol'.*bash, javascript, node, python, sh"):
        client.run_code("cobol", "")


@pytest.mark.parametrize("language", ["python", "bash", "sh", "node"])
def test_says_when_the_interpreter_is_missing(client: PicoDClient, language: str) -> None:
    with pytest.raises(InterpreterNotFoundError, match="no interpreter in the sandbox"):
        client.run_code(language, "", env={"PATH": "/nonexistent"})
