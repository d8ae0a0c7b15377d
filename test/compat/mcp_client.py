"""What the Python SDK of MCP does, over streamable HTTP and with a program that it starts: picod mcp."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def streams(transport, target, token):
    """To the address of a daemon, or to the program of that path."""
    if transport == "http":
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
            async with streamable_http_client(target, http_client=http) as (read, write):
                yield read, write
    else:
        command, *args = json.loads(target)
        server = StdioServerParameters(command=command, args=args, env={"PICOD_ACCESS_TOKEN": token})
        async with stdio_client(server) as (read, write):
            yield read, write


async def use(session):
    """Every tool once, and how failures look."""
    initialized = await session.initialize()
    assert initialized.server_info.name == "picod", initialized
    tools = (await session.list_tools()).tools
    assert len(tools) == 14, tools
    assert all(tool.output_schema for tool in tools), tools

    async def call(name, progress=None, **arguments):
        # The SDK checks what comes against the output schema.
        result = await session.call_tool(name, arguments, progress_callback=progress)
        assert not result.is_error, result
        return result.structured_content

    told = []

    async def progress(done, _total, message):
        told.append((done, message))

    workdir = (await call("sandbox_open"))["workdir"]
    run = await call("sandbox_exec", progress, command="pwd; echo no >&2; exit 3")
    assert (run["stdout"], run["stderr"], run["exit_code"]) == (f"{workdir}\n", "no\n", 3), run
    assert told and "running" in told[0][1], told
    await call("sandbox_fs_write", path="a/b.txt", content="one\ntwo\n")
    edited = await call("sandbox_fs_edit", path="a/b.txt", old_string="two", new_string="zwei")
    assert "-two\n+zwei\n" in edited["diff"], edited
    assert (await call("sandbox_fs_read", path="a/b.txt"))["content"] == "one\nzwei\n"
    found = await call("sandbox_fs_search", pattern="zwei")
    assert [(match["path"], match["line"]) for match in found["matches"]] == [(f"{workdir}/a/b.txt", 2)], found
    assert [entry["name"] for entry in (await call("sandbox_fs_list", recursive=True))["entries"]] == ["a", "a/b.txt"]
    process = (await call("sandbox_process_start", command="cat"))["process_id"]
    await call("sandbox_process_input", process_id=process, content="echo", close=True)
    output = await call("sandbox_process_output", process_id=process, wait_seconds=20)
    while output["status"] != "ended":
        offset = output["stdout"]["total_bytes"]
        output = await call("sandbox_process_output", process_id=process, stdout_offset=offset, wait_seconds=20)
    assert (await call("sandbox_process_output", process_id=process))["stdout"]["content"] == "echo"
    assert (await call("sandbox_process_stop", process_id=process))["outcome"] == "exited"
    assert len((await call("sandbox_process_list"))["processes"]) == 1
    long = await session.call_tool("sandbox_exec", {"command": "seq 100000"})
    (link,) = [block for block in long.content if block.type == "resource_link"]
    (whole,) = (await session.read_resource(str(link.uri))).contents
    assert whole.text.endswith("\n99999\n100000\n"), whole.text[-100:]
    failed = await session.call_tool("sandbox_fs_read", {"path": "absent"})
    assert failed.is_error and failed.content[0].text.startswith("ENOENT: "), failed
    assert (await call("sandbox_fs_delete", path="a", recursive=True))["deleted"]
    assert (await call("sandbox_close", remove_files=True))["closed"]


async def main():
    transport, target, token = sys.argv[1:]
    async with streams(transport, target, token) as (read, write):
        async with ClientSession(read, write) as session:
            await use(session)
    print("done")


asyncio.run(main())
