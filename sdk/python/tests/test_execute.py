from __future__ import annotations

import os
import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from picod import (
    AlreadyExistsError,
    CommandError,
    CommandTimeoutError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutcomeReason,
    OutputTruncatedError,
    PicoDClient,
    ResourceLimits,
)


def test_execute_returns_every_part_of_the_result(client: PicoDClient) -> None:
    result = client.execute("printf out; printf err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out", "err", 3)
    assert result.outcome.reason is OutcomeReason.EXITED
    assert result.outcome.exit_code == 3
    assert (result.outcome.signal, result.outcome.forced, result.outcome.surviving_processes) == ("", False, 0)
    assert result.outcome.message == ""
    assert not result.ok
    assert (result.stdout_summary.total_bytes, result.stdout_summary.omitted_bytes) == (3, 0)
    assert result.stderr_summary.total_bytes == 3
    assert timedelta(0) < result.duration < timedelta(seconds=30)
    assert result.usage.max_rss_bytes > 0
    assert result.usage.user_time >= timedelta(0)
    assert result.process_id.startswith("proc_")


def test_execute_passes_cwd_env_stdin_and_argv(client: PicoDClient, tmp_path: Path) -> None:
    result = client.execute(
        argv=["sh", "-c", 'pwd; echo "$WHO"; cat; printf "%s|" "$@"', "sh", "a b", "*"],
        cwd=str(tmp_path),
        env={"WHO": "wörld"},
        stdin="ein ü\n",
    )
    assert result.stdout == f"{tmp_path}\nwörld\nein ü\na b|*|"
    assert result.ok


def test_execute_does_not_inherit_the_token(client: PicoDClient) -> None:
    assert "PICOD_ACCESS_TOKEN" not in client.execute("env").stdout


def test_execute_bounds_the_output_and_says_so(client: PicoDClient) -> None:
    result = client.execute("yes x | head -n 100000", max_output_bytes=1000)
    summary = result.stdout_summary
    assert summary.total_bytes == 200_000
    assert summary.omitted_bytes == 200_000 - len(result.stdout)
    assert summary.omitted_lines > 0


def test_execute_receives_64_mib_of_either_stream(client: PicoDClient) -> None:
    size = 64 * 1024 * 1024
    command = f"head -c {size} /dev/zero | tr '\\0' a; head -c {size} /dev/zero | tr '\\0' b >&2"
    result = client.execute(command, max_output_bytes=size, timeout=120)
    assert result.exit_code == 0
    assert len(result.stdout) == len(result.stderr) == size


def test_execute_marks_output_that_is_not_utf8(client: PicoDClient) -> None:
    result = client.execute("printf 'a\\377b'")
    assert result.stdout == "a\N{REPLACEMENT CHARACTER}b"
    assert result.stdout_summary.utf8_replaced


def test_execute_runs_once_for_one_id(client: PicoDClient, tmp_path: Path) -> None:
    marker = tmp_path / "runs"
    process_id = f"test-{os.urandom(8).hex()}"
    command = f"echo run >> {marker}; date +%N"
    first = client.execute(command, id=process_id)
    second = client.execute(command, id=process_id)
    assert first.process_id == second.process_id == process_id
    assert first.stdout == second.stdout
    assert marker.read_text() == "run\n"
    with pytest.raises(AlreadyExistsError):
        client.execute("echo something else", id=process_id)


def test_execute_applies_limits(client: PicoDClient) -> None:
    limits = ResourceLimits(open_files=77, cpu_seconds=1000)
    assert client.execute("ulimit -n; ulimit -t", limits=limits).stdout == "77\n1000\n"


def test_execute_reports_a_program_that_cannot_start(client: PicoDClient) -> None:
    result = client.execute(argv=["/no/such/program"])
    assert result.exit_code == 127
    assert result.outcome.reason is OutcomeReason.SPAWN_FAILED
    assert result.outcome.message


def test_execute_reports_a_signal(client: PicoDClient) -> None:
    result = client.execute("kill -KILL $$")
    assert result.exit_code == 137
    assert result.outcome.reason is OutcomeReason.SIGNALED
    assert result.outcome.signal == "SIGKILL"


def test_execute_answers_with_the_partial_output_when_the_time_is_up(client: PicoDClient) -> None:
    result = client.execute("echo before; sleep 60; echo after", timeout=0.5)
    assert result.exit_code == 124
    assert result.outcome.reason is OutcomeReason.TIMED_OUT
    assert result.stdout == "before\n"


def test_execute_without_timeout(client: PicoDClient) -> None:
    assert client.execute("echo done", timeout=0).stdout == "done\n"


@pytest.mark.parametrize("timeout", [float("nan"), float("inf")])
def test_execute_refuses_a_timeout_that_is_not_finite(client: PicoDClient, timeout: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        client.execute("true", timeout=timeout)


def test_execute_refuses_malformed_requests(client: PicoDClient) -> None:
    with pytest.raises(InvalidArgumentError):
        client.execute()
    with pytest.raises(InvalidArgumentError):
        client.execute("true", argv=["true"])
    with pytest.raises(InvalidArgumentError):
        client.execute("true", timeout=-1)
    with pytest.raises(InvalidArgumentError):
        client.execute("true", user="no-such-user")


def test_execute_refuses_a_bad_cwd(client: PicoDClient, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotFoundError):
        client.execute("true", cwd=str(tmp_path / "missing"))
    with pytest.raises(FailedPreconditionError):
        client.execute("true", cwd=str(file))


def test_execute_command_returns_stdout(client: PicoDClient) -> None:
    assert client.execute_command("echo 'Grüße' && echo warn >&2") == "Grüße\n"


def test_execute_command_raises_with_the_result_of_a_failed_command(client: PicoDClient) -> None:
    with pytest.raises(CommandError) as caught:
        client.execute_command("echo some; echo why >&2; exit 9")
    error = caught.value
    assert (error.stdout, error.stderr, error.exit_code) == ("some\n", "why\n", 9)
    assert error.result.outcome.reason is OutcomeReason.EXITED
    assert "code 9" in str(error)
    assert "why" in str(error)
    assert type(error) is CommandError


def test_command_errors_can_be_pickled(client: PicoDClient) -> None:
    with pytest.raises(CommandError) as caught:
        client.execute_command("exit 9")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.result == caught.value.result
    assert str(copy) == str(caught.value)


def test_execute_command_raises_its_own_error_when_the_time_is_up(client: PicoDClient) -> None:
    with pytest.raises(CommandTimeoutError) as caught:
        client.execute_command("echo before; sleep 60", timeout=0.5)
    assert caught.value.stdout == "before\n"
    assert caught.value.exit_code == 124
    assert isinstance(caught.value, TimeoutError)


def test_execute_command_never_returns_part_of_the_output(client: PicoDClient) -> None:
    with pytest.raises(OutputTruncatedError, match="were left out") as caught:
        client.execute_command("yes | head -n 10000", max_output_bytes=100)
    assert caught.value.result.ok
    assert caught.value.stdout.startswith("y\n")


def test_execute_commands_returns_all_outputs_in_order(client: PicoDClient, tmp_path: Path) -> None:
    outputs = client.execute_commands(["echo b > f", "cat f", "pwd"], cwd=str(tmp_path))
    assert list(outputs.items()) == [("echo b > f", ""), ("cat f", "b\n"), ("pwd", f"{tmp_path}\n")]


def test_execute_commands_stops_at_the_first_failure(client: PicoDClient, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        client.execute_commands(["echo 1", "false", f"touch {tmp_path}/later"])
    assert caught.value.command == "false"
    assert caught.value.completed == {"echo 1": "1\n"}
    assert not (tmp_path / "later").exists()
