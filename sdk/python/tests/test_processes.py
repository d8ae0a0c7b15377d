from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from daemon import Daemon
from waiting import wait_until

from picod import (
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutcomeReason,
    OutOfRangeError,
    OutputOffsets,
    PicoDClient,
    Process,
    ProcessEventKind,
    ProcessState,
    ResourceLimits,
)

KEPT_BYTES = 1024 * 1024
"""What the daemon keeps of each stream."""


def fresh(name: str) -> str:
    return f"{name}-{os.urandom(6).hex()}"


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def read_until(process: Process, text: str) -> str:
    """Reads until the text has come, and leaves the rest for later."""
    seen = ""
    for output in process:
        seen += output.data.decode()
        if text in seen:
            break
    return seen


def test_output_comes_in_order_with_stream_and_offset(client: PicoDClient) -> None:
    process = client.start("printf one; sleep 0.2; printf two; printf err >&2; exit 3")
    outputs = list(process)
    for stream, content in (("stdout", b"onetwo"), ("stderr", b"err")):
        pieces = [output for output in outputs if output.stream == stream]
        assert b"".join(piece.data for piece in pieces) == content
        assert pieces[0].offset == 0
        assert [piece.offset for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
    assert process.offsets == OutputOffsets(stdout=6, stderr=3)
    assert not list(process)


def test_the_result_says_how_it_went(client: PicoDClient) -> None:
    process = client.start("sleep 0.1; exit 3")
    assert process.result is None
    result = process.wait()
    assert (result.exit_code, result.outcome.reason, result.ok) == (3, OutcomeReason.EXITED, False)
    assert timedelta(seconds=0.1) <= result.duration < timedelta(seconds=20)
    assert result.usage.max_rss_bytes > 0
    assert process.result == result == process.wait(timeout=0.001)
    assert not list(process)
    assert process.result == result
    assert client.start("true").wait().ok


def test_a_program_that_cannot_start_is_a_result(client: PicoDClient) -> None:
    process = client.start(argv=["/no/such/program"])
    assert process.wait().outcome.reason is OutcomeReason.SPAWN_FAILED
    assert process.wait().exit_code == 127
    assert process.pid == 0


def test_start_passes_everything(client: PicoDClient, tmp_path: Path) -> None:
    tag, session = fresh("tag"), fresh("session")
    process = client.start(
        argv=["sh", "-c", 'pwd; echo "$WHO"; ulimit -n; id -u; cat'],
        cwd=str(tmp_path),
        env={"WHO": "wörld"},
        user=str(os.getuid()),
        stdin=True,
        timeout=30,
        limits=ResourceLimits(open_files=77),
        id=tag,
        tag=tag,
        label="for people",
        session_id=session,
    )
    assert (process.id, process.tag) == (tag, tag)
    process.write("typed ü")
    process.close_input()
    process.close_input()
    assert "".join(process.text()) == f"{tmp_path}\nwörld\n77\n{os.getuid()}\ntyped ü"
    info = process.info()
    assert (info.label, info.session_id, info.state, info.input_bytes) == ("for people", session, ProcessState.ENDED, 8)
    assert (info.argv[0], info.cwd, info.pty) == ("sh", str(tmp_path), None)
    assert info.ended_at is not None
    assert info.ended_at >= info.started_at
    assert info.outcome == process.wait().outcome
    assert info.written == process.offsets


def test_login_runs_a_login_shell(client: PicoDClient, tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text("echo profile read\n")
    process = client.start("echo end", login=True, env={"HOME": str(tmp_path)})
    assert "profile read\nend\n" in "".join(process.text("stdout"))


def test_a_timeout_ends_it(client: PicoDClient) -> None:
    result = client.start("sleep 60", timeout=0.2).wait()
    assert (result.outcome.reason, result.exit_code) == (OutcomeReason.TIMED_OUT, 124)
    with pytest.raises(ValueError, match="finite"):
        client.start("true", timeout=float("inf"))


def test_text_joins_characters_that_come_in_pieces(client: PicoDClient) -> None:
    process = client.start("printf '\\303'; sleep 0.2; printf '\\274 \\377 end \\303'; printf other >&2")
    assert "".join(process.text("stdout")) == "ü \N{REPLACEMENT CHARACTER} end \N{REPLACEMENT CHARACTER}"


def test_iterating_goes_on_where_it_stopped(client: PicoDClient) -> None:
    process = client.start("for n in 1 2 3; do echo $n; sleep 0.2; done")
    assert read_until(process, "1\n") == "1\n"
    process.close()
    assert "".join(process.text()) == "2\n3\n"


def test_many_bytes_arrive_unchanged_when_the_process_waits_for_its_reader(client: PicoDClient) -> None:
    line = b"0123456789abcde\n"
    with client.start(f"yes {line.decode().strip()} | head -c 33554432", backpressure=True) as process:
        content = b"".join(output.data for output in process)
    assert content == line * (33554432 // len(line))


def test_output_that_is_no_longer_kept_is_reported(client: PicoDClient) -> None:
    process = client.start("printf begin; head -c 3000000 /dev/zero; printf end; printf err >&2")
    process.wait()
    kept_from = process.info().kept_from
    outputs = [output for output in process if output.stream == "stdout"]
    assert outputs[0].trimmed_bytes == outputs[0].offset == kept_from.stdout == 3_000_008 - KEPT_BYTES
    assert outputs[0].data == b""
    assert sum(len(output.data) for output in outputs) == KEPT_BYTES
    assert not any(output.trimmed_bytes for output in outputs[1:])
    assert outputs[-1].data.endswith(b"end")


def test_text_never_leaves_anything_out_silently(client: PicoDClient) -> None:
    process = client.start("head -c 3000000 /dev/zero; printf end")
    process.wait()
    with pytest.raises(DataLossError, match="no longer kept") as caught:
        list(process.text())
    assert caught.value.reason == "OUTPUT_TRIMMED"
    assert caught.value.metadata["stream"] == "stdout"
    assert "".join(process.text()).endswith("\0end")


def test_two_readers_get_the_same(client: PicoDClient) -> None:
    first = client.start("for n in $(seq 200); do echo line $n; done; sleep 0.2; echo end")
    second = client.attach(first.id)
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append("".join(second.text())))
    thread.start()
    texts.append("".join(first.text()))
    thread.join()
    assert texts[0] == texts[1]
    assert texts[0].endswith("line 200\nend\n")


def test_attach_begins_where_it_is_told(client: PicoDClient) -> None:
    process = client.start("printf 0123456789; read line; echo $line", stdin=True)
    read_until(process, "9")
    late = client.attach(process.id, from_end=True)
    part = client.attach(process.id, from_offsets=OutputOffsets(stdout=7), backpressure=True)
    process.write("typed\n")
    assert "".join(late.text()) == "typed\n"
    assert "".join(part.text()) == "789typed\n"
    assert "".join(client.attach(process.id).text()) == "0123456789typed\n"
    for backpressure in (False, True):
        with pytest.raises(OutOfRangeError):
            next(client.attach(process.id, from_offsets=OutputOffsets(stdout=100), backpressure=backpressure))
    with pytest.raises(ValueError, match="either"):
        client.attach(process.id, from_offsets=OutputOffsets(), from_end=True)


def test_only_one_thread_at_a_time_iterates(client: PicoDClient) -> None:
    with client.start("sleep 60") as process:

        def iterate() -> None:
            with pytest.raises(CancelledError):
                list(process)

        thread = threading.Thread(target=iterate)
        thread.start()
        wait_until(process._iterating.locked)
        with pytest.raises(RuntimeError, match="attach"):
            next(process)
        while thread.is_alive():  # It may not have begun to wait.
            process.close()
            thread.join(0.1)


def test_wait_gives_up_in_time_and_the_process_runs_on(client: PicoDClient) -> None:
    with client.start("sleep 60") as process:
        with pytest.raises(DeadlineExceededError, match="has not ended within"):
            process.wait(timeout=0.2)
        with pytest.raises(TimeoutError):
            process.wait(timeout=0)
        assert process.info().state is ProcessState.RUNNING


def test_input_is_written_in_order_and_waits_for_the_process(client: PicoDClient) -> None:
    data = os.urandom(5_000_000)
    process = client.start("sleep 0.3; sha256sum", stdin=True)
    process.write(data)
    process.close_input()
    digest = subprocess.run(["sha256sum"], input=data, capture_output=True, check=True).stdout.decode()
    assert "".join(process.text()) == digest
    assert process.info().input_bytes == len(data)


def test_two_writers_do_not_swallow_each_others_input(client: PicoDClient) -> None:
    first = client.start("cat", stdin=True)
    second = client.attach(first.id)
    for writer, text in ((first, "a"), (second, "bb"), (first, "ccc"), (second, "d")):
        writer.write(text)
    first.close_input()
    assert "".join(first.text()) == "abbcccd"


def test_input_is_refused_where_there_is_none(client: PicoDClient) -> None:
    with client.start("sleep 60") as process:
        with pytest.raises(FailedPreconditionError):
            process.write("x")
        with pytest.raises(FailedPreconditionError):
            process.close_input()
        with pytest.raises(FailedPreconditionError):
            process.resize(80, 24)
    with client.start("cat", stdin=True) as process:
        process.close_input()
        process.wait()
        with pytest.raises(FailedPreconditionError):
            process.write("x")
        with pytest.raises(FailedPreconditionError):
            process.signal("TERM")


def test_a_terminal_has_a_size(client: PicoDClient) -> None:
    with client.start("trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done", pty=(90, 30)) as process:
        assert read_until(process, "30 90\r\n") == "30 90\r\n"
        process.resize(120, 40)
        assert "40 120" in read_until(process, "40 120")
        assert process.info().pty == (120, 40)
        with pytest.raises(InvalidArgumentError):
            process.resize(0, 40)


def test_a_terminal_takes_control_characters(client: PicoDClient) -> None:
    # Not a loop of a shell: bash disregards an interrupt when the command that it waits for ends by itself.
    with client.start(argv=["sleep", "60"], pty=(80, 24)) as process:
        process.write("\x03")
        result = process.wait(timeout=20)
        assert (result.outcome.signal, result.exit_code) == ("SIGINT", 130)


def test_a_terminal_without_a_command_runs_the_shell(client: PicoDClient) -> None:
    process = client.start(pty=(80, 24), env={"PS1": "> "})
    process.write("echo $((6 * 7)); exit 5\n")
    assert "42\r\n" in "".join(process.text("pty"))
    assert process.wait().exit_code == 5


@pytest.mark.parametrize("name", ["SIGUSR1", "usr1", 10, signal.SIGUSR1])
def test_signals_go_by_name_or_number(client: PicoDClient, name: str | int) -> None:
    process = client.start("trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.05; done")
    read_until(process, "ready")
    if name == "usr1":
        with pytest.raises(InvalidArgumentError):
            process.signal("nonsense")
        name = "USR1"
    process.signal(name)
    assert process.wait().exit_code == 7


def test_stop_reaches_all_descendants_and_says_what_it_took(client: PicoDClient, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    process = client.start(f"trap '' TERM; (trap '' TERM; setsid sleep 61 & echo $! > {pids}; sleep 62); sleep 63")
    wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    stopped = process.stop(grace=0.2)
    assert stopped.forced
    assert stopped.surviving_processes == 0
    assert stopped.process is not None
    assert stopped.process.state is ProcessState.ENDED
    assert process.wait().outcome.reason is OutcomeReason.CANCELLED
    assert not is_alive(int(pids.read_text()))
    assert not process.stop().forced


def test_leaving_the_context_of_start_stops_it_and_that_of_attach_does_not(client: PicoDClient) -> None:
    with client.start("sleep 60") as process:
        with client.attach(process.id) as other:
            assert other.pid == process.pid
        assert process.info().state is ProcessState.RUNNING
    assert process.info().state is ProcessState.ENDED
    with pytest.raises(KeyError), client.start("sleep 60") as process:  # noqa: PT012 (both belong to the case)
        process.stop()
        process.delete()
        raise KeyError
    with client.start("true") as process:
        process.wait()
        process.delete()


def test_processes_are_found_by_tag(client: PicoDClient) -> None:
    tag, renamed = fresh("tag"), fresh("renamed")
    with client.start("sleep 60", tag=tag) as process:
        assert client.attach(tag=tag).id == client.get_process(tag=tag).id == process.id
        with pytest.raises(AlreadyExistsError):
            client.start("true", tag=tag)
        assert [info.id for info in client.list_processes(tag=tag)] == [process.id]
        assert process.id in [info.id for info in client.list_processes(state=ProcessState.RUNNING)]
        assert client.list_processes(tag=tag, state=ProcessState.ENDED) == []
        assert client.update_process(tag=tag, new_tag=renamed, new_label="new").label == "new"
        with pytest.raises(NotFoundError):
            client.get_process(tag=tag)
        assert process.update(label="").tag == renamed
        assert process.tag == renamed
        client.send_signal("KILL", tag=renamed, leader_only=True)
        assert process.wait().outcome.signal == "SIGKILL"
        assert client.stop_process(tag=renamed).process is not None
        client.delete_process(tag=renamed)
        with pytest.raises(NotFoundError):
            process.info()


def test_only_an_ended_process_is_deleted(client: PicoDClient) -> None:
    process = client.start("sleep 60")
    with pytest.raises(FailedPreconditionError):
        process.delete()
    process.delete(stop=True)
    assert not is_alive(process.pid)
    for call in (process.info, process.wait, process.stop, lambda: next(process), lambda: client.attach(process.id)):
        with pytest.raises(NotFoundError):
            call()


def test_a_process_is_named_by_id_or_tag(client: PicoDClient) -> None:
    for arguments in ({}, {"id": "a", "tag": "b"}):
        with pytest.raises(ValueError, match="either the id or the tag"):
            client.get_process(**arguments)


def test_start_refuses_what_execute_refuses(client: PicoDClient, tmp_path: Path) -> None:
    for arguments in ({}, {"argv": ["true"], "command": "true"}, {"command": "true", "user": "no-such-user"}, {"id": "ö"}):
        with pytest.raises(InvalidArgumentError):
            client.start(**arguments)
    with pytest.raises(NotFoundError):
        client.start("true", cwd=str(tmp_path / "missing"))
    process_id = fresh("id")
    client.start("true", id=process_id)
    with pytest.raises(AlreadyExistsError, match="command"):
        client.start("false", id=process_id)


def test_the_same_id_is_the_same_process(client: PicoDClient, tmp_path: Path) -> None:
    command = f"echo run >> {tmp_path}/runs; echo $$"
    processes = [client.start(command, id="same-" + tmp_path.name) for _ in range(3)]
    assert len({"".join(process.text()) for process in processes}) == 1
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_watch_tells_what_happens_from_now_on(client: PicoDClient) -> None:
    client.start("true").wait()
    with client.watch_processes() as watch:
        process = client.start("sleep 60", label="old")
        process.update(label="new")
        process.delete(stop=True)
        events = []
        for event in watch:
            if event.process_id == process.id:
                events.append(event)
                if event.kind is ProcessEventKind.DELETED:
                    break
        assert [event.kind.name for event in events] == ["STARTED", "UPDATED", "ENDED", "DELETED"]
        labels = [event.process.label for event in events if event.process]
        assert labels[1:] == ["new", "new"]
    assert not list(watch)


def test_closing_a_watch_ends_its_iteration(client: PicoDClient) -> None:
    watch = client.watch_processes()
    thread = threading.Thread(target=lambda: list(watch))
    thread.start()
    thread.join(0.2)
    watch.close()
    thread.join(20)
    assert not thread.is_alive()


ORPHANING = """
import os, signal, sys
from picod import PicoDClient

process = PicoDClient("127.0.0.1", int(sys.argv[1])).start("for n in $(seq 60); do echo $n; sleep 0.1; done", id=sys.argv[2])
for output in process:
    print(output.data, flush=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_process_outlives_the_program_that_started_it(daemon: Daemon, client: PicoDClient, ending: signal.Signals) -> None:
    process_id = fresh("orphan")
    program = subprocess.Popen(
        [sys.executable, "-c", ORPHANING, str(daemon.port), process_id],
        env={**os.environ, "PICOD_ACCESS_TOKEN": daemon.access_token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert program.stdout is not None
    assert b"1" in program.stdout.readline()
    program.send_signal(ending)
    program.communicate(timeout=20)
    with client.attach(process_id) as process:
        assert process.info().state is ProcessState.RUNNING
        assert read_until(process, "12\n").startswith("1\n2\n3\n")
    client.delete_process(process_id, stop=True)
