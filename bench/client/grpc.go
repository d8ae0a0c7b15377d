package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	picod "picod/bench/gen/picod/v1"
)

// Wide enough that a transfer on the loopback interface never waits for a window update.
const (
	streamWindowBytes     = 16 << 20
	connectionWindowBytes = 32 << 20
	bufferBytes           = 1 << 20
	maxMessageBytes       = 64 << 20
)

type grpcTarget struct {
	connection *grpc.ClientConn
	processes  picod.ProcessServiceClient
	files      picod.FilesystemServiceClient
	ctx        context.Context
}

func connectGrpc(address, token string) (Target, error) {
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(streamWindowBytes),
		grpc.WithInitialConnWindowSize(connectionWindowBytes),
		grpc.WithReadBufferSize(bufferBytes),
		grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
	if err != nil {
		return nil, err
	}
	return &grpcTarget{
		connection: connection,
		processes:  picod.NewProcessServiceClient(connection),
		files:      picod.NewFilesystemServiceClient(connection),
		ctx:        metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token),
	}, nil
}

func (target *grpcTarget) Exec(argv []string) ([]byte, error) {
	response, err := target.processes.Execute(target.ctx, &picod.ExecuteRequest{Argv: argv})
	if err != nil {
		return nil, explain(err)
	}
	if response.ExitCode != 0 {
		return nil, fmt.Errorf("exit code %d: %s", response.ExitCode, response.Stderr)
	}
	return []byte(response.Stdout), nil
}

// Stream lets the program wait for its reader: output that is trimmed could not be verified.
func (target *grpcTarget) Stream(argv []string, onOutput func([]byte)) error {
	ctx, cancel := context.WithCancel(target.ctx)
	defer cancel()
	stream, err := target.processes.Start(ctx, &picod.StartRequest{Argv: argv, Backpressure: true})
	if err != nil {
		return explain(err)
	}
	var ended *picod.ProcessEnded
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return explain(err)
		}
		if response.Event.GetTrimmed() != nil {
			return errors.New("output was trimmed")
		}
		if output := response.Event.GetOutput().GetStdout(); len(output) > 0 {
			onOutput(output)
		}
		if end := response.Event.GetEnded(); end != nil {
			ended = end
		}
	}
	if ended == nil {
		return errors.New("the stream ended before the process")
	}
	if outcome := ended.Outcome; outcome.Reason != picod.Outcome_REASON_EXITED || outcome.ExitCode != 0 {
		return fmt.Errorf("it ended with %v", outcome)
	}
	return nil
}

func (target *grpcTarget) Stat(path string) error {
	_, err := target.files.Stat(target.ctx, &picod.StatRequest{Path: path})
	return explain(err)
}

func (target *grpcTarget) List(path string) (int, error) {
	ctx, cancel := context.WithCancel(target.ctx)
	defer cancel()
	stream, err := target.files.ListDirectory(ctx, &picod.ListDirectoryRequest{Path: path})
	if err != nil {
		return 0, explain(err)
	}
	entries := 0
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return 0, explain(err)
		}
		entries += len(response.Entries)
	}
}

func (target *grpcTarget) Download(path, sha256 string) (int64, error) {
	return target.read(path, sha256, func([]byte) {})
}

func (target *grpcTarget) ReadFile(path string) ([]byte, error) {
	var content []byte
	_, err := target.read(path, "", func(chunk []byte) { content = append(content, chunk...) })
	return content, err
}

func (target *grpcTarget) read(path, sha256 string, onChunk func([]byte)) (int64, error) {
	ctx, cancel := context.WithCancel(target.ctx)
	defer cancel()
	stream, err := target.files.ReadFile(ctx, &picod.ReadFileRequest{Path: path, Checksum: sha256 != ""})
	if err != nil {
		return 0, explain(err)
	}
	var size int64
	var summary *picod.ReadFileSummary
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			if summary == nil {
				return size, errors.New("the stream ended without its summary")
			}
			if summary.Sha256 != sha256 {
				return size, fmt.Errorf("the checksum is %q instead of %q", summary.Sha256, sha256)
			}
			return size, nil
		}
		if err != nil {
			return size, explain(err)
		}
		size += int64(len(response.GetChunk()))
		onChunk(response.GetChunk())
		if response.GetSummary() != nil {
			summary = response.GetSummary()
		}
	}
}

func (target *grpcTarget) Upload(path string, size int64, sha256 string) error {
	return target.write(&picod.WriteFileMetadata{Path: path, Size: announce(size), Sha256: sha256}, chunk, int(size/int64(len(chunk))))
}

func (target *grpcTarget) WriteFile(path string, content []byte) error {
	return target.write(&picod.WriteFileMetadata{Path: path, Size: announce(int64(len(content)))}, content, 1)
}

// announce says how much comes, as the SDKs do.
func announce(size int64) *uint64 {
	announced := uint64(size)
	return &announced
}

func (target *grpcTarget) write(metadata *picod.WriteFileMetadata, content []byte, times int) error {
	ctx, cancel := context.WithCancel(target.ctx)
	defer cancel()
	stream, err := target.files.WriteFile(ctx)
	if err != nil {
		return explain(err)
	}
	first := &picod.WriteFileRequest{Request: &picod.WriteFileRequest_Metadata{Metadata: metadata}}
	message := &picod.WriteFileRequest{Request: &picod.WriteFileRequest_Chunk{Chunk: content}}
	err = stream.Send(first)
	for ; err == nil && times > 0; times-- {
		err = stream.Send(message)
	}
	// Of a failed send the answer says why.
	if _, answer := stream.CloseAndRecv(); answer != nil {
		return explain(answer)
	}
	return err
}

func (target *grpcTarget) Close() {
	target.connection.Close()
}

func explain(err error) error {
	if status.Code(err) == codes.Unimplemented {
		return errNotOffered
	}
	return err
}
