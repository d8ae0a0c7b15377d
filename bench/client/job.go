package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Job is one measurement: `Count` operations, `Concurrency` at a time.
type Job struct {
	Kind        string   `json:"kind"`
	Count       int      `json:"count"`
	Concurrency int      `json:"concurrency"`
	Argv        []string `json:"argv"`
	// ExpectFile holds what a command must print; empty: nothing.
	ExpectFile string `json:"expectFile"`
	// Path of the file to transfer, or of the directory of small files. Uploads of several add their number to it.
	Path string `json:"path"`
	// Size in bytes of each file.
	Size int64 `json:"size"`
	// Checksum has the daemon make, or verify, the SHA-256 of what is transferred.
	Checksum bool `json:"checksum"`
	// DelayMs is how long a probe waits before its first call.
	DelayMs int `json:"delayMs"`
	// Directories below the watched one, numbered from 0, of which every `Stride`th gets a file with this name and a number.
	Directories int    `json:"directories"`
	Stride      int    `json:"stride"`
	Name        string `json:"name"`
	// Entries that a directory must have.
	Entries int `json:"entries"`
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
	case "stat":
		return func(int) error { return target.Stat(job.Path) }, nil
	case "list":
		return func(int) error {
			entries, err := target.List(job.Path)
			if err == nil && entries != job.Entries {
				err = fmt.Errorf("listed %d entries instead of %d", entries, job.Entries)
			}
			return err
		}, nil
	case "stream":
		expected, err := fingerprintFile(job.ExpectFile)
		return func(int) error {
			var got fingerprint
			err := target.Stream(job.Argv, got.add)
			if err == nil && got != expected {
				err = fmt.Errorf("wrong output: %v instead of %v", got, expected)
			}
			return err
		}, err
	case "download":
		checksum, err := job.checksumOfFile()
		return func(int) error {
			size, err := target.Download(job.Path, checksum)
			if err == nil && size != job.Size {
				err = fmt.Errorf("downloaded %d bytes instead of %d", size, job.Size)
			}
			return err
		}, err
	case "upload":
		checksum, err := job.checksumOfUpload()
		return func(index int) error { return target.Upload(job.uploadPath(index), job.Size, checksum) }, err
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

func (job Job) uploadPath(index int) string {
	if job.Count == 1 {
		return job.Path
	}
	return fmt.Sprintf("%s-%d", job.Path, index)
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

func failed(err error) Result {
	if errors.Is(err, errNotOffered) {
		return Result{NotOffered: true}
	}
	return Result{Error: err.Error()}
}
