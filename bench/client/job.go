package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Job is one measurement: `Count` operations, `Concurrency` at a time.
type Job struct {
	Kind        string   `json:"kind"`
	Count       int      `json:"count"`
	Concurrency int      `json:"concurrency"`
	Argv        []string `json:"argv"`
	// ExpectFile holds what an exec must print; empty: nothing.
	ExpectFile string `json:"expectFile"`
	// Path of the file to transfer, or of the directory of small files.
	Path string `json:"path"`
	// Size in bytes of each file.
	Size int64 `json:"size"`
}

// Result holds the latencies of the single operations and the time for all of them.
type Result struct {
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	Seconds    float64 `json:"seconds"`
	NotOffered bool    `json:"notOffered,omitempty"`
	Error      string  `json:"error,omitempty"`
}

func (job Job) run(target Target) Result {
	operation, err := job.operation(target)
	if err != nil {
		return failed(err)
	}
	return measure(job.Count, max(1, job.Concurrency), operation)
}

func (job Job) operation(target Target) (func(index int) error, error) {
	content := bytes.Repeat([]byte("x"), int(min(job.Size, 1<<20)))
	small := func(index int) string { return filepath.Join(job.Path, strconv.Itoa(index)) }
	switch job.Kind {
	case "exec":
		expected, err := job.expectedOutput()
		return func(int) error {
			output, err := target.Exec(job.Argv)
			return assertSame(output, expected, err)
		}, err
	case "download":
		return func(int) error {
			size, err := target.Download(job.Path)
			if err == nil && size != job.Size {
				err = fmt.Errorf("downloaded %d bytes instead of %d", size, job.Size)
			}
			return err
		}, nil
	case "upload":
		return func(int) error { return target.Upload(job.Path, job.Size) }, nil
	case "write":
		return func(index int) error { return target.WriteFile(small(index), content) }, nil
	case "read":
		return func(index int) error {
			got, err := target.ReadFile(small(index))
			return assertSame(got, content, err)
		}, nil
	}
	return nil, fmt.Errorf("unknown kind of job: %s", job.Kind)
}

func (job Job) expectedOutput() ([]byte, error) {
	if job.ExpectFile == "" {
		return nil, nil
	}
	return os.ReadFile(job.ExpectFile)
}

func assertSame(got, expected []byte, err error) error {
	if err != nil || bytes.Equal(got, expected) {
		return err
	}
	return fmt.Errorf("wrong content: %d bytes where %d other ones were expected", len(got), len(expected))
}

// measure stops at the first error.
func measure(count, concurrency int, operation func(index int) error) Result {
	latencies := make([]time.Duration, count)
	errs := make([]error, concurrency)
	var next atomic.Int64
	var workers sync.WaitGroup
	start := time.Now()
	for worker := range concurrency {
		workers.Go(func() {
			for errs[worker] == nil {
				index := int(next.Add(1)) - 1
				if index >= count {
					return
				}
				begun := time.Now()
				errs[worker] = operation(index)
				latencies[index] = time.Since(begun)
			}
		})
	}
	workers.Wait()
	elapsed := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return failed(err)
	}
	slices.Sort(latencies)
	return Result{P50Ms: percentile(latencies, 50), P99Ms: percentile(latencies, 99), Seconds: elapsed.Seconds()}
}

func percentile(sorted []time.Duration, percent int) float64 {
	index := min(len(sorted)-1, len(sorted)*percent/100)
	return float64(sorted[index].Nanoseconds()) / 1e6
}

func failed(err error) Result {
	if errors.Is(err, errNotOffered) {
		return Result{NotOffered: true}
	}
	return Result{Error: err.Error()}
}
