package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// crowdKinds are what the clients of a crowd do, one after the other at random.
var crowdKinds = []string{"exec", "upload", "download"}

const (
	crowdOutputBytes = 100_000
	crowdFileBytes   = 1 << 20
	// Between two probes, each of which connects anew.
	crowdProbePause = 500 * time.Millisecond
)

// crowdResult is what a crowd has seen, by kind; "connect" is until a new client's first answer.
type crowdResult struct {
	Kinds  map[string]Result `json:"kinds"`
	Probe  Result            `json:"probe"`
	Bytes  int64             `json:"bytes"`
	Errors map[string]int    `json:"errors"`
	// Answers that said something had succeeded, and it had not.
	Wrong   int     `json:"wrong"`
	Seconds float64 `json:"seconds"`
}

// crowd is many clients, each on a connection of its own, that work at the same time.
type crowd struct {
	connect   func() (Target, error)
	directory string
	until     time.Time
	lock      sync.Mutex
	latencies map[string][]time.Duration
	result    crowdResult
}

func runCrowd(clients int, duration time.Duration, directory string, connect func() (Target, error)) error {
	crowd := &crowd{connect: connect, directory: directory, latencies: map[string][]time.Duration{}}
	crowd.result = crowdResult{Kinds: map[string]Result{}, Errors: map[string]int{}}
	start := time.Now()
	crowd.until = start.Add(duration)
	var workers sync.WaitGroup
	for number := range clients {
		workers.Go(func() { crowd.work(number) })
	}
	workers.Go(crowd.probe)
	workers.Wait()
	crowd.result.Seconds = time.Since(start).Seconds()
	for kind, latencies := range crowd.latencies {
		crowd.result.Kinds[kind] = resultOf(latencies, time.Since(start))
	}
	crowd.result.Probe = crowd.result.Kinds["probe"]
	delete(crowd.result.Kinds, "probe")
	return json.NewEncoder(os.Stdout).Encode(crowd.result)
}

// work goes on after an error, on a new connection.
func (crowd *crowd) work(number int) {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	file := filepath.Join(crowd.directory, fmt.Sprintf("crowd-%d", number))
	for time.Now().Before(crowd.until) {
		target, err := crowd.arrive("connect")
		if err != nil {
			continue
		}
		content := []byte{}
		for err == nil && time.Now().Before(crowd.until) {
			kind := crowdKinds[random.IntN(len(crowdKinds))]
			content, err = crowd.operate(target, kind, file, content, random)
		}
		target.Close()
	}
}

func (crowd *crowd) operate(target Target, kind, file string, content []byte, random *rand.Rand) ([]byte, error) {
	if len(content) == 0 && kind == "download" {
		kind = "upload"
	}
	begun := time.Now()
	var err error
	var got, want []byte
	switch kind {
	case "exec":
		want = bytes.Repeat([]byte("x"), random.IntN(crowdOutputBytes))
		got, err = target.Exec([]string{"/bin/sh", "-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", len(want))})
	case "upload":
		content = make([]byte, 1+random.IntN(crowdFileBytes))
		for at := range content {
			content[at] = byte(random.Uint32())
		}
		begun = time.Now()
		got, want = content, content
		err = target.WriteFile(file, content)
	case "download":
		want = content
		got, err = target.ReadFile(file)
	}
	crowd.took(kind, time.Since(begun), err, len(want), bytes.Equal(got, want))
	return content, err
}

// probe looks from outside: it connects, asks for something small, and leaves.
func (crowd *crowd) probe() {
	for time.Now().Before(crowd.until) {
		if target, _ := crowd.arrive("probe"); target != nil {
			target.Close()
		}
		time.Sleep(crowdProbePause)
	}
}

// arrive connects and waits for a first answer: some protocols connect with their first call.
func (crowd *crowd) arrive(kind string) (Target, error) {
	begun := time.Now()
	target, err := crowd.connect()
	if err == nil {
		if err = target.Stat(crowd.directory); err != nil {
			target.Close()
			target = nil
		}
	}
	crowd.took(kind, time.Since(begun), err, 0, true)
	return target, err
}

func (crowd *crowd) took(kind string, latency time.Duration, err error, size int, isRight bool) {
	crowd.lock.Lock()
	defer crowd.lock.Unlock()
	if err != nil {
		crowd.result.Errors[kind+": "+err.Error()]++
		return
	}
	if !isRight {
		crowd.result.Wrong++
	}
	crowd.result.Bytes += int64(size)
	crowd.latencies[kind] = append(crowd.latencies[kind], latency)
}
