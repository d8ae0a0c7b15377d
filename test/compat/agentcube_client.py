"""Every method of AgentCube's data plane client, as its users call them, against one daemon."""

from __future__ import annotations

import os
import sys
import tempfile

import requests
from agentcube.clients.code_interpreter_data_plane import CodeInterpreterDataPlaneClient
from agentcube.exceptions import CommandExecutionError

url, token, workspace = sys.argv[1:]


class RouterAuth(requests.auth.AuthBase):
    """What AgentCube's router does on the way: it adds its token."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request


client = CodeInterpreterDataPlaneClient(session_id="session-1", base_url=f"{url}/", timeout=30)
client.session.auth = RouterAuth()

# execute_command: text, list, exit codes, timeouts.
assert client.execute_command("echo 'a  b' c") == "a  b c\n"
assert client.execute_command(["printf", "%s", "$HOME"]) == "$HOME"
assert client.execute_command("pwd") == f"{workspace}\n"
assert client.execute_command("sleep 0.1", timeout=1.5) == ""
assert len(client.execute_command(["head", "-c", "3000000", "/dev/zero"])) == 3_000_000
for command, exit_code, stderr in [
    (["sh", "-c", "echo why >&2; exit 7"], 7, "why\n"),
    ("no-such-program", 1, "program not found: no-such-program"),
]:
    try:
        client.execute_command(command)
    except CommandExecutionError as error:
        assert (error.exit_code, error.stderr) == (exit_code, stderr), error
    else:
        raise AssertionError(command)
try:
    client.execute_command(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], timeout=1)
except CommandExecutionError as error:
    assert (error.exit_code, error.stderr) == (124, "Command timed out after 1 seconds"), error
else:
    raise AssertionError("it did not time out")

# run_code: both languages, state in files, errors.
assert client.run_code("python", "import sys\nprint(sys.argv[0].startswith('script_'), 6 * 7)") == "True 42\n"
assert client.run_code("python", "print('one')\\nprint('two')") == "one\ntwo\n"
assert client.run_code("bash", "x=3\nfor i in 1 2; do echo $((x + i)); done | tac") == "5\n4\n"
try:
    client.run_code("python", "raise ValueError('here')")
except CommandExecutionError as error:
    assert error.exit_code == 1 and "ValueError: here" in error.stderr, error
else:
    raise AssertionError("it did not fail")
try:
    client.run_code("cobol", "")
except ValueError:
    pass

# write_file, upload_file, download_file, list_files.
client.write_file("grüße\n" * 100_000, "notes/ünïcode file.txt")
client.write_file("absolute", "/notes/absolute.txt")
with tempfile.TemporaryDirectory() as directory:
    local = os.path.join(directory, "local.bin")
    content = os.urandom(5_000_000)
    with open(local, "wb") as file:
        file.write(content)
    client.upload_file(local, "uploads/deep/local.bin")
    for remote in ["uploads/deep/local.bin", "/uploads/deep/local.bin"]:
        back = os.path.join(directory, "new/folder/back.bin")
        client.download_file(remote, back)
        with open(back, "rb") as file:
            assert file.read() == content
    client.download_file("notes/ünïcode file.txt", os.path.join(directory, "notes.txt"))
    with open(os.path.join(directory, "notes.txt"), encoding="utf-8") as file:
        assert file.read() == "grüße\n" * 100_000
    try:
        client.upload_file(os.path.join(directory, "missing"), "x")
    except FileNotFoundError:
        pass
    for remote, status in [("missing", 404), ("notes", 400), ("%2e%2e/%2e%2e/etc/passwd", 400)]:
        try:
            client.download_file(remote, os.path.join(directory, "nothing"))
        except requests.HTTPError as error:
            assert error.response.status_code == status, error
            assert set(error.response.json()) == {"error", "code"}, error.response.text
        else:
            raise AssertionError(remote)

listed = client.list_files("notes")
assert [(entry["name"], entry["is_dir"], entry["mode"]) for entry in listed] == [
    ("absolute.txt", False, "-rw-r--r--"),
    ("ünïcode file.txt", False, "-rw-r--r--"),
], listed
assert {"notes", "uploads"} <= {entry["name"] for entry in client.list_files() if entry["is_dir"]}
try:
    client.list_files("missing")
except requests.HTTPError as error:
    assert error.response.status_code == 404

health = requests.get(f"{url}/health", timeout=5).json()
assert (health["status"], health["service"]) == ("ok", "PicoD"), health
client.close()
print("done")
