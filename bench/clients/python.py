"""The Python SDK as a client of the benchmark: takes and answers jobs as `client serve` does, one after the other."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Callable

from picod import PicoDClient

Job = dict[str, Any]


def _main() -> None:
    host, port = sys.argv[1].split(":")
    with PicoDClient(host, int(port)) as client:
        for line in sys.stdin:
            job: Job = json.loads(line)
            try:
                result = _measure(job["count"], _operation(client, job))
            except Exception as error:
                result = {"error": repr(error)}
            sys.stdout.write(json.dumps(result) + "\n")
            sys.stdout.flush()


def _operation(client: PicoDClient, job: Job) -> Callable[[int], None]:
    content = b"x" * min(job.get("size", 0), 1 << 20)

    def execute(_: int) -> None:
        result = client.execute(argv=job["argv"])
        _expect(result.exit_code == 0 and result.stdout == "", result)

    def write(index: int) -> None:
        client.write_file(content, f"{job['path']}/{index}")

    def read(index: int) -> None:
        _expect(client.read_file(f"{job['path']}/{index}") == content, "other content")

    def upload(_: int) -> None:
        client.upload_file(job["localPath"], job["path"])

    def download(_: int) -> None:
        client.download_file(job["path"], job["localPath"])
        _expect(Path(job["localPath"]).stat().st_size == job["size"], "another size")

    return {"exec": execute, "write": write, "read": read, "upload": upload, "download": download}[job["kind"]]


def _expect(condition: bool, otherwise: object) -> None:
    if not condition:
        raise AssertionError(otherwise)


def _measure(count: int, run: Callable[[int], None]) -> dict[str, float]:
    latencies = []
    start = time.perf_counter()
    for index in range(count):
        begun = time.perf_counter()
        run(index)
        latencies.append((time.perf_counter() - begun) * 1000)
    seconds = time.perf_counter() - start
    latencies.sort()
    p50, p99 = (latencies[min(count - 1, count * percent // 100)] for percent in (50, 99))
    return {"minMs": latencies[0], "p50Ms": p50, "p99Ms": p99, "maxMs": latencies[-1], "count": count, "seconds": seconds}


_main()
