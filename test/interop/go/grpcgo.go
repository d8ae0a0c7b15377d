package main

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

type grpcGo struct{ connection *grpc.ClientConn }

func connectGrpcGo(address string) client {
	options := grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{}))
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), options)
	if err != nil {
		panic(err)
	}
	return grpcGo{connection}
}

func (target grpcGo) do(ctx context.Context, call call, onResponse func([]byte)) error {
	if call.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+call.Token)
	}
	options := []grpc.CallOption{}
	if call.Gzip {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	shape := &grpc.StreamDesc{
		ClientStreams: call.Kind == "client_streaming" || call.Kind == "bidi_streaming",
		ServerStreams: call.Kind == "server_streaming" || call.Kind == "bidi_streaming",
	}
	if call.Kind == "unary" {
		var response []byte
		if err := target.connection.Invoke(ctx, call.Procedure, &call.Requests[0], &response, options...); err != nil {
			return err
		}
		onResponse(response)
		return nil
	}
	stream, err := target.connection.NewStream(ctx, shape, call.Procedure, options...)
	if err != nil {
		return err
	}
	receive := func() error {
		var response []byte
		if err := stream.RecvMsg(&response); err != nil {
			return err
		}
		onResponse(response)
		return nil
	}
	for _, request := range call.Requests {
		// Why a send failed, the answer says.
		if err := stream.SendMsg(&request); err != nil && err != io.EOF {
			return err
		}
		if call.Kind == "bidi_streaming" {
			if err := receive(); err != nil {
				return err
			}
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if err := receive(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		} else if !shape.ServerStreams {
			return nil
		}
	}
}

func (grpcGo) explain(err error) (uint32, string, []byte) {
	of := status.Convert(err)
	details, err := proto.Marshal(of.Proto())
	if err != nil || len(of.Proto().GetDetails()) == 0 {
		details = []byte{}
	}
	return uint32(of.Code()), of.Message(), details
}

// bytesCodec leaves messages as they are; the errors that come with an answer are protobuf all the same.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(message any) ([]byte, error) {
	if bytes, ok := message.(*[]byte); ok {
		return *bytes, nil
	}
	return nil, fmt.Errorf("cannot send a %T", message)
}

func (bytesCodec) Unmarshal(data []byte, message any) error {
	switch into := message.(type) {
	case *[]byte:
		*into = append([]byte{}, data...)
		return nil
	case proto.Message:
		return proto.Unmarshal(data, into)
	}
	return fmt.Errorf("cannot receive a %T", message)
}
