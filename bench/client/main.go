// Client is the measuring end of the benchmark. It serves one daemon: `client serve` connects once and runs the jobs that come
// as JSON lines on standard input, one result line each; `client startup` times one start of a daemon; `client yardstick` is itself
// a daemon to compare with.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected serve, startup or yardstick")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	protocol := flags.String("protocol", "grpc", "grpc, http or ssh")
	address := flags.String("address", "", "host:port of the daemon")
	key := flags.String("key", "", "private key file, for ssh")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "startup" {
		return printLine(timeStartup(*protocol, *address, flags.Args()))
	}
	if args[0] == "yardstick" {
		return serveYardstick(*address)
	}
	target, err := connect(*protocol, *address, *key)
	if err != nil {
		return err
	}
	defer target.Close()
	return serve(target)
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
func serve(target Target) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var job Job
		if err := json.Unmarshal(lines.Bytes(), &job); err != nil {
			return err
		}
		if err := printLine(job.run(target)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func printLine(result Result) error {
	return json.NewEncoder(os.Stdout).Encode(result)
}
