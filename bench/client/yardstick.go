package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"

	picod "picod/bench/gen/picod/v1"
)

const (
	readBytes = 256 << 10
	pipeBytes = 64 << 10
)

// yardstick answers the calls that are measured in the plainest way that grpc-go has: without tokens, limits, users, logs or
// the killing of process trees. It is the "grpc-go server" of the goals.
type yardstick struct {
	picod.UnimplementedProcessServiceServer
	picod.UnimplementedFilesystemServiceServer
}

func serveYardstick(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.InitialWindowSize(streamWindowBytes),
		grpc.InitialConnWindowSize(connectionWindowBytes),
		grpc.MaxRecvMsgSize(maxMessageBytes))
	picod.RegisterProcessServiceServer(server, yardstick{})
	picod.RegisterFilesystemServiceServer(server, yardstick{})
	return server.Serve(listener)
}

func (yardstick) Execute(ctx context.Context, request *picod.ExecuteRequest) (*picod.ExecuteResponse, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, request.Argv[0], request.Argv[1:]...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return &picod.ExecuteResponse{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: int32(command.ProcessState.ExitCode())}, nil
}

func (yardstick) Start(request *picod.StartRequest, stream grpc.ServerStreamingServer[picod.StartResponse]) error {
	command := exec.CommandContext(stream.Context(), request.Argv[0], request.Argv[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	buffer := make([]byte, pipeBytes)
	for {
		n, err := stdout.Read(buffer)
		if n > 0 {
			output := &picod.ProcessOutput{Output: &picod.ProcessOutput_Stdout{Stdout: buffer[:n]}}
			event := &picod.ProcessEvent{Event: &picod.ProcessEvent_Output{Output: output}}
			if err := stream.Send(&picod.StartResponse{Event: event}); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	var exit *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	outcome := &picod.Outcome{Reason: picod.Outcome_REASON_EXITED, ExitCode: int32(command.ProcessState.ExitCode())}
	ended := &picod.ProcessEvent{Event: &picod.ProcessEvent_Ended{Ended: &picod.ProcessEnded{Outcome: outcome}}}
	return stream.Send(&picod.StartResponse{Event: ended})
}

func (yardstick) Stat(ctx context.Context, request *picod.StatRequest) (*picod.StatResponse, error) {
	info, err := os.Lstat(request.Path)
	if err != nil {
		return nil, err
	}
	return &picod.StatResponse{Entry: &picod.EntryInfo{Path: request.Path, Name: info.Name(), Size: info.Size()}}, nil
}

func (yardstick) ReadFile(request *picod.ReadFileRequest, stream grpc.ServerStreamingServer[picod.ReadFileResponse]) error {
	file, err := os.Open(request.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	metadata := &picod.ReadFileMetadata{Entry: &picod.EntryInfo{Path: request.Path}}
	if err := stream.Send(&picod.ReadFileResponse{Response: &picod.ReadFileResponse_Metadata{Metadata: metadata}}); err != nil {
		return err
	}
	var total uint64
	digest := sha256.New()
	buffer := make([]byte, readBytes)
	for {
		n, err := file.Read(buffer)
		if err == io.EOF {
			summary := &picod.ReadFileSummary{Bytes: total}
			if request.Checksum {
				summary.Sha256 = hex.EncodeToString(digest.Sum(nil))
			}
			return stream.Send(&picod.ReadFileResponse{Response: &picod.ReadFileResponse_Summary{Summary: summary}})
		}
		if err != nil {
			return err
		}
		total += uint64(n)
		if request.Checksum {
			digest.Write(buffer[:n])
		}
		if err := stream.Send(&picod.ReadFileResponse{Response: &picod.ReadFileResponse_Chunk{Chunk: buffer[:n]}}); err != nil {
			return err
		}
	}
}

func (yardstick) WriteFile(stream grpc.ClientStreamingServer[picod.WriteFileRequest, picod.WriteFileResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	path, expected := first.GetMetadata().GetPath(), first.GetMetadata().GetSha256()
	digest := sha256.New()
	file, err := os.CreateTemp(filepath.Dir(path), ".upload-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var total uint64
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		n, err := file.Write(request.GetChunk())
		if err != nil {
			return err
		}
		total += uint64(n)
		if expected != "" {
			digest.Write(request.GetChunk())
		}
	}
	if expected != "" && hex.EncodeToString(digest.Sum(nil)) != expected {
		return errors.New("wrong checksum")
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return stream.SendAndClose(&picod.WriteFileResponse{BytesWritten: total})
}
