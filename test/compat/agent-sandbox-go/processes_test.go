// Package sandboxd holds what agent-sandbox's Go client does, by its own generated stub and in its own requests for files, against one
// daemon: GRPC and REST say where it listens, ROOT where its files are. The published client itself (v0.5.6) speaks only to the runtime
// before sandboxd.
package sandboxd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	processv1 "sigs.k8s.io/agent-sandbox/packages/sandboxd/spec/process/v1"
)

func connect(t *testing.T) processv1.ProcessServiceClient {
	t.Helper()
	connection, err := grpc.NewClient(os.Getenv("GRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return processv1.NewProcessServiceClient(connection)
}

func withTimeout(t *testing.T, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

func shell(line string) *processv1.ProcessConfig {
	return &processv1.ProcessConfig{Command: []string{"/bin/sh", "-c", line}}
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, expected %v", what, got, want)
	}
}

func expectCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	expect(t, what, status.Code(err), want)
}

func TestExecute(t *testing.T) {
	client := connect(t)
	execute := func(config *processv1.ProcessConfig) *processv1.ExecuteResponse {
		t.Helper()
		answer, err := client.Execute(withTimeout(t, 30*time.Second), &processv1.ExecuteRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	answer := execute(shell("printf 'a\\377'; echo err >&2; exit 3"))
	expect(t, "exit code", answer.ExitCode, 3)
	expect(t, "output", string(answer.Stdout), "a\xff")
	expect(t, "error output", string(answer.Stderr), "err\n")
	expect(t, "killed", execute(shell("kill -9 $$")).ExitCode, -1)
	expect(t, "input", string(execute(&processv1.ProcessConfig{Command: []string{"cat"}}).Stdout), "")
	expect(t, "root", string(execute(shell("pwd")).Stdout), os.Getenv("ROOT")+"\n")
	execute(shell("mkdir -p work"))
	for _, cwd := range []string{"work", "/work", os.Getenv("ROOT") + "/work"} {
		config := shell("pwd; echo $MINE")
		config.Cwd, config.EnvVars = &cwd, map[string]string{"MINE": "b c"}
		expect(t, cwd, string(execute(config).Stdout), os.Getenv("ROOT")+"/work\nb c\n")
	}

	outside := "../elsewhere"
	for _, refused := range []struct {
		config *processv1.ProcessConfig
		code   codes.Code
	}{
		{nil, codes.InvalidArgument},
		{&processv1.ProcessConfig{}, codes.InvalidArgument},
		{&processv1.ProcessConfig{Command: []string{"no-such-program"}}, codes.NotFound},
		{&processv1.ProcessConfig{Command: []string{"/no/such"}}, codes.NotFound},
		{&processv1.ProcessConfig{Command: []string{"/etc/passwd"}}, codes.PermissionDenied},
		{&processv1.ProcessConfig{Command: []string{"true"}, Cwd: &outside}, codes.PermissionDenied},
	} {
		_, err := client.Execute(withTimeout(t, 30*time.Second), &processv1.ExecuteRequest{Config: refused.config})
		expectCode(t, refused.config.String(), err, refused.code)
	}
	_, err := client.Execute(withTimeout(t, 500*time.Millisecond), &processv1.ExecuteRequest{Config: shell("sleep 1000")})
	expectCode(t, "deadline", err, codes.DeadlineExceeded)
}

// One process that is followed.
type process struct {
	t      *testing.T
	id     int32
	cancel context.CancelFunc
	stream grpc.ServerStreamingClient[processv1.StartResponse]
}

func start(t *testing.T, client processv1.ProcessServiceClient, config *processv1.ProcessConfig, pty *processv1.PTY) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(withTimeout(t, 60*time.Second))
	stream, err := client.Start(ctx, &processv1.StartRequest{Config: config, Pty: pty})
	if err != nil {
		t.Fatal(err)
	}
	started := &process{t: t, cancel: cancel, stream: stream}
	started.id = started.next().GetInit().GetProcessId()
	if started.id <= 0 {
		t.Fatal("the first event is not its id")
	}
	return started
}

func (p *process) next() *processv1.StartResponse {
	p.t.Helper()
	event, err := p.stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return event
}

// Both kinds of output up to the exit, the code, and the end of the stream.
func (p *process) rest() (stdout, stderr []byte, exitCode int32) {
	p.t.Helper()
	for {
		event := p.next()
		stdout = append(stdout, event.GetStdout()...)
		stderr = append(stderr, event.GetStderr()...)
		if exit := event.GetExit(); exit != nil {
			if _, err := p.stream.Recv(); err != io.EOF {
				p.t.Fatalf("behind the exit: %v", err)
			}
			return stdout, stderr, exit.ExitCode
		}
	}
}

func TestStart(t *testing.T) {
	client := connect(t)
	write := func(id int32, input []byte) error {
		request := &processv1.WriteStdinRequest{ProcessId: id, Payload: &processv1.WriteStdinRequest_Input{Input: input}}
		_, err := client.WriteStdin(withTimeout(t, 30*time.Second), request)
		return err
	}
	end := func(id int32) error {
		request := &processv1.WriteStdinRequest{ProcessId: id, Payload: &processv1.WriteStdinRequest_Eof{Eof: &emptypb.Empty{}}}
		_, err := client.WriteStdin(withTimeout(t, 30*time.Second), request)
		return err
	}
	send := func(id int32, signal processv1.Signal) error {
		_, err := client.SendSignal(withTimeout(t, 30*time.Second), &processv1.SendSignalRequest{ProcessId: id, Signal: signal})
		return err
	}
	resize := func(id int32, cols, rows uint32) error {
		request := &processv1.ResizeTTYRequest{ProcessId: id, Cols: cols, Rows: rows}
		_, err := client.ResizeTTY(withTimeout(t, 30*time.Second), request)
		return err
	}

	t.Run("input, both outputs and the exit", func(t *testing.T) {
		started := start(t, client, shell("sha256sum; echo err >&2; exit 4"), nil)
		piece := bytes.Repeat([]byte("x"), 3_000_000)
		for range 3 {
			expectCode(t, "write", write(started.id, piece), codes.OK)
		}
		expectCode(t, "write nothing", write(started.id, nil), codes.OK)
		expectCode(t, "end", end(started.id), codes.OK)
		stdout, stderr, exitCode := started.rest()
		expect(t, "output", string(stdout), fmt.Sprintf("%x  -\n", sha256.Sum256(bytes.Repeat(piece, 3))))
		expect(t, "error output", string(stderr), "err\n")
		expect(t, "exit code", exitCode, 4)
		expectCode(t, "write to an ended one", write(started.id, piece), codes.NotFound)
		expectCode(t, "signal an ended one", send(started.id, processv1.Signal_SIGNAL_SIGTERM), codes.NotFound)
		expectCode(t, "resize an ended one", resize(started.id, 1, 1), codes.NotFound)
	})

	t.Run("much output", func(t *testing.T) {
		stdout, _, exitCode := start(t, client, shell("head -c 30000000 /dev/zero"), nil).rest()
		expect(t, "bytes", len(stdout), 30_000_000)
		expect(t, "exit code", exitCode, 0)
	})

	t.Run("a terminal", func(t *testing.T) {
		started := start(t, client, shell("stty size; read line; stty size"), &processv1.PTY{Cols: 120, Rows: 40})
		expect(t, "first", string(started.next().GetStdout()), "40 120\r\n")
		expectCode(t, "resize", resize(started.id, 100, 50), codes.OK)
		expectCode(t, "write", write(started.id, []byte("\r")), codes.OK)
		stdout, _, exitCode := started.rest()
		if !strings.HasSuffix(string(stdout), "50 100\r\n") || exitCode != 0 {
			t.Errorf("%q, exit code %d", stdout, exitCode)
		}
	})

	t.Run("signals", func(t *testing.T) {
		started := start(t, client, shell("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"), nil)
		expect(t, "first", string(started.next().GetStdout()), "ready\n")
		expectCode(t, "no signal", send(started.id, processv1.Signal_SIGNAL_UNSPECIFIED), codes.InvalidArgument)
		expectCode(t, "another signal", send(started.id, 1), codes.InvalidArgument)
		expectCode(t, "resize what is no terminal", resize(started.id, 1, 1), codes.FailedPrecondition)
		expectCode(t, "interrupt", send(started.id, processv1.Signal_SIGNAL_SIGINT), codes.OK)
		stdout, _, exitCode := started.rest()
		expect(t, "output", string(stdout), "caught\n")
		expect(t, "exit code", exitCode, 5)
		killed := start(t, client, shell("sleep 1000"), nil)
		expectCode(t, "kill", send(killed.id, processv1.Signal_SIGNAL_SIGKILL), codes.OK)
		_, _, exitCode = killed.rest()
		expect(t, "exit code of a killed one", exitCode, -1)
	})

	t.Run("cancelled, it ends", func(t *testing.T) {
		started := start(t, client, shell("exec sleep 1000.0625"), nil)
		started.cancel()
		_, err := started.stream.Recv()
		expectCode(t, "the stream", err, codes.Canceled)
		waiting := &processv1.ExecuteRequest{Config: shell("while pgrep -f '[s]leep 1000.0625'; do sleep 0.1; done")}
		_, err = client.Execute(withTimeout(t, 30*time.Second), waiting)
		expectCode(t, "waiting for its end", err, codes.OK)
	})
}
