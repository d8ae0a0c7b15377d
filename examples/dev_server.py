"""Runs a server in the sandbox, uses it while it runs, and leaves nothing behind.

    python3 dev_server.py --host 127.0.0.1 --port 49983

The token comes from PICOD_ACCESS_TOKEN. The sandbox needs python3.
"""

from __future__ import annotations

import argparse

from picod import PicoDClient, Process

FETCH = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"


def wait_for(server: Process, marker: str) -> str:
    """Reads the server's output until the marker has come, and returns the line that has it."""
    text = ""
    for piece in server.text():
        text += piece
        before, found, after = text.partition(marker)
        if found and "\n" in after:
            return before.rpartition("\n")[2] + marker + after.partition("\n")[0]
    raise RuntimeError(f"the server ended with code {server.wait().exit_code}:\n{text}")


def main() -> None:
    """Starts the server, fetches a page from it, and shows what it logged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=49983)
    arguments = parser.parse_args()

    with PicoDClient(arguments.host, arguments.port) as client:
        directory = client.execute_command("mktemp -d").strip()
        try:
            client.write_file("Hello from the sandbox\n", f"{directory}/index.html")
            # Leaving the context stops the server and all that it started.
            with client.start(argv=["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"], cwd=directory) as server:
                url = wait_for(server, "Serving HTTP on").partition("(")[2].partition(")")[0]
                print(f"process {server.pid} serves {url}")
                print(client.execute(argv=["python3", "-c", FETCH, url]).stdout, end="")
                print(wait_for(server, '"GET /').partition('"')[2])
        finally:
            client.execute_command(f"rm -rf {directory}")
        print("stopped:", server.info().outcome)


if __name__ == "__main__":
    main()
