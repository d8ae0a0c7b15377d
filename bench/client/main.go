// Client is the measuring end of the benchmark. It serves one daemon: `client serve` connects once and runs the jobs that come
// as JSON lines on standard input, one result line each; `client startup` times one start of a daemon; `client yardstick` is itself
// a daemon to compare with; `client lines` is a program for daemons to run; `client crowd` is many clients at once.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected serve, startup, yardstick, lines or crowd")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	protocol := flags.String("protocol", "grpc", "grpc, http or ssh")
	address := flags.String("address", "", "host:port of the daemon")
	key := flags.String("key", "", "private key file, for ssh")
	clients := flags.Int("clients", 200, "of a crowd")
	duration := flags.Duration("duration", time.Minute, "of a crowd's work")
	interval := flags.Duration("interval", 0, "between two lines")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "startup" {
		return printLine(timeStartup(*protocol, *address, flags.Args()))
	}
	if args[0] == "yardstick" {
		return serveYardstick(*address)
	}
	if args[0] == "lines" {
		return printLines(flags.Arg(0), *interval)
	}
	another := func() (Target, error) { return connect(*protocol, *address, *key) }
	if args[0] == "crowd" {
		return runCrowd(*clients, *duration, flags.Arg(0), another)
	}
	target, err := another()
	if err != nil {
		return err
	}
	session := &session{Target: target, connect: another}
	defer session.Close()
	return serve(session)
}

func connect(protocol, address, key string) (Target, error) {
	token := os.Getenv("PICOD_ACCESS_TOKEN")
	switch protocol {
	case "grpc":
		return connectGrpc(address, token)
	case "http":
		return connectHTTP(address, token), nil
	case "ssh":
		return connectSSH(address, key)
	}
	return nil, fmt.Errorf("unknown protocol: %s", protocol)
}

// serve ends with standard input, so a client never outlives the benchmark.
func serve(session *session) error {
	jobs := make(chan Job)
	failed := make(chan error, 1)
	go readJobs(jobs, failed)
	for job := range jobs {
		result := Result{}
		if job.Kind == "probe" {
			result = job.probe(session, jobs)
		} else {
			result = session.run(job)
		}
		if err := printLine(result); err != nil {
			return err
		}
	}
	return <-failed
}

func readJobs(jobs chan<- Job, failed chan<- error) {
	defer close(jobs)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var job Job
		if err := json.Unmarshal(lines.Bytes(), &job); err != nil {
			failed <- err
			return
		}
		jobs <- job
	}
	failed <- lines.Err()
}

func printLine(result Result) error {
	return json.NewEncoder(os.Stdout).Encode(result)
}
