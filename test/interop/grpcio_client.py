"""Makes calls with grpcio: see driven-client.ts."""

import base64
import itertools
import json
import queue
import sys
import threading

import grpc

running = {}
output = threading.Lock()


def start(channel, call):
    """The call, begun, and its responses."""
    requests = [base64.b64decode(request) for request in call["requests"]]
    options = {
        "metadata": [("authorization", f"Bearer {call['token']}")] if "token" in call else [],
        "timeout": call["deadlineMs"] / 1000 if "deadlineMs" in call else None,
        "compression": grpc.Compression.Gzip if call["gzip"] else None,
    }
    procedure = call["procedure"]
    if call["kind"] == "unary":
        rpc = channel.unary_unary(procedure).future(requests[0], **options)
        return rpc, (rpc.result() for _ in range(1))
    if call["kind"] == "client_streaming":
        rpc = channel.stream_unary(procedure).future(iter(requests), **options)
        return rpc, (rpc.result() for _ in range(1))
    if call["kind"] == "server_streaming":
        rpc = channel.unary_stream(procedure)(requests[0], **options)
        return rpc, rpc
    outgoing = queue.SimpleQueue()
    rpc = channel.stream_stream(procedure)(iter(outgoing.get, None), **options)
    return rpc, converse(rpc, requests, outgoing)


def converse(rpc, requests, outgoing):
    try:
        for request in requests:
            outgoing.put(request)
            yield from itertools.islice(rpc, 1)
    finally:
        outgoing.put(None)
    yield from rpc


def finish(call_id, rpc, responses):
    received = []
    try:
        for response in responses:
            received.append(base64.b64encode(response).decode())
    except (grpc.RpcError, grpc.FutureCancelledError):
        # The call itself knows better how it ended.
        pass
    del running[call_id]
    trailers = dict(rpc.trailing_metadata() or ())
    answer = {
        "id": call_id,
        "code": rpc.code().value[0],
        "message": rpc.details() or "",
        "status": base64.b64encode(trailers.get("grpc-status-details-bin", b"")).decode(),
        "responses": received,
    }
    with output:
        print(json.dumps(answer), flush=True)


with grpc.insecure_channel(sys.argv[1]) as channel:
    for line in sys.stdin:
        call = json.loads(line)
        if "cancel" not in call:
            rpc, responses = start(channel, call)
            # Known before the next line is read, which may cancel it.
            running[call["id"]] = rpc
            threading.Thread(target=finish, args=(call["id"], rpc, responses)).start()
        elif (rpc := running.get(call["cancel"])) is not None:
            rpc.cancel()
