package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	startupLimit = 10 * time.Second
	retryDelay   = 200 * time.Microsecond
)

// timeStartup starts a daemon, waits for its first answer and ends it again.
func timeStartup(protocol, address string, argv []string) Result {
	command := exec.Command(argv[0], argv[1:]...)
	command.Stderr = os.Stderr
	start := time.Now()
	if err := command.Start(); err != nil {
		return failed(err)
	}
	err := waitForAnswer(protocol, address, start.Add(startupLimit))
	elapsed := time.Since(start)
	err = errors.Join(err, command.Process.Signal(syscall.SIGTERM))
	kill := time.AfterFunc(startupLimit, func() { command.Process.Kill() })
	command.Wait()
	kill.Stop()
	if err != nil {
		return failed(err)
	}
	ms := float64(elapsed.Nanoseconds()) / 1e6
	return Result{P50Ms: ms, P99Ms: ms, Seconds: elapsed.Seconds()}
}

// waitForAnswer retries: nothing tells a client when a daemon that it does not control begins to listen.
func waitForAnswer(protocol, address string, deadline time.Time) error {
	for {
		err := ask(protocol, address, deadline)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retryDelay)
	}
}

// ask expects the banner of SSH, or a good answer to a health request.
func ask(protocol, address string, deadline time.Time) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	expected := "SSH-2.0-"
	if protocol != "ssh" {
		expected = "HTTP/1.1 200"
		fmt.Fprint(connection, "GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n")
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, expected) {
		err = fmt.Errorf("answered %q", line)
	}
	return err
}
