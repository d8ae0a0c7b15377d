package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

type connectGo struct {
	address  string
	http     *http.Client
	protocol []connect.ClientOption
}

// connectConnectGo speaks one of connect, grpc and grpc-web over HTTP/2 without TLS.
func connectConnectGo(address, protocol string) client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	options := map[string][]connect.ClientOption{
		"connect":  {},
		"grpc":     {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	}
	return connectGo{address, &http.Client{Transport: transport}, options[protocol]}
}

func (target connectGo) do(ctx context.Context, call call, onResponse func([]byte)) error {
	options := append([]connect.ClientOption{connect.WithCodec(bytesCodec{})}, target.protocol...)
	if call.Gzip {
		options = append(options, connect.WithSendGzip())
	}
	caller := connect.NewClient[[]byte, []byte](target.http, "http://"+target.address+call.Procedure, options...)
	authorize := func(header http.Header) {
		if call.Token != "" {
			header.Set("authorization", "Bearer "+call.Token)
		}
	}
	switch call.Kind {
	case "unary":
		request := connect.NewRequest(&call.Requests[0])
		authorize(request.Header())
		response, err := caller.CallUnary(ctx, request)
		if err != nil {
			return err
		}
		onResponse(*response.Msg)
		return nil
	case "server_streaming":
		request := connect.NewRequest(&call.Requests[0])
		authorize(request.Header())
		stream, err := caller.CallServerStream(ctx, request)
		if err != nil {
			return err
		}
		defer stream.Close()
		for stream.Receive() {
			onResponse(*stream.Msg())
		}
		return stream.Err()
	case "client_streaming":
		stream := caller.CallClientStream(ctx)
		authorize(stream.RequestHeader())
		for _, request := range call.Requests {
			// Why a send failed, the answer says.
			if err := stream.Send(&request); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		response, err := stream.CloseAndReceive()
		if err != nil {
			return err
		}
		onResponse(*response.Msg)
		return nil
	default:
		stream := caller.CallBidiStream(ctx)
		authorize(stream.RequestHeader())
		defer stream.CloseResponse()
		return converse(stream, call.Requests, onResponse)
	}
}

func converse(stream *connect.BidiStreamForClient[[]byte, []byte], requests [][]byte, onResponse func([]byte)) error {
	for _, request := range requests {
		if err := stream.Send(&request); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		response, err := stream.Receive()
		if err != nil {
			return err
		}
		onResponse(*response)
	}
	if err := stream.CloseRequest(); err != nil {
		return err
	}
	for {
		response, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		onResponse(*response)
	}
}

func (connectGo) explain(err error) (uint32, string, []byte) {
	var failure *connect.Error
	if !errors.As(err, &failure) {
		return uint32(connect.CodeUnknown), err.Error(), []byte{}
	}
	details := []*anypb.Any{}
	for _, detail := range failure.Details() {
		details = append(details, &anypb.Any{TypeUrl: "type.googleapis.com/" + detail.Type(), Value: detail.Bytes()})
	}
	encoded, err := proto.Marshal(&rpc.Status{Code: int32(failure.Code()), Message: failure.Message(), Details: details})
	if err != nil || len(details) == 0 {
		encoded = []byte{}
	}
	return uint32(failure.Code()), failure.Message(), encoded
}
