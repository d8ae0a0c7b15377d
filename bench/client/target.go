package main

import "errors"

// Target is one connection to one daemon, through one protocol.
type Target interface {
	// Exec runs a program to its end and returns its standard output. An exit code other than 0 is an error.
	Exec(argv []string) ([]byte, error)
	// Stream runs a program to its end and hands on its standard output as it comes. An exit code other than 0 is an error.
	Stream(argv []string, onOutput func([]byte)) error
	// Stat asks for a file's attributes and throws them away.
	Stat(path string) error
	// List takes the entries of a directory and returns how many there are.
	List(path string) (int, error)
	// Download reads a whole file, throws it away and returns its size. With a checksum, that the daemon has made must be this one.
	Download(path, sha256 string) (int64, error)
	// Upload writes a file of `size` bytes, a multiple of the chunk. With a checksum, the daemon verifies it.
	Upload(path string, size int64, sha256 string) error
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, content []byte) error
	Close()
}

// errNotOffered is returned where a daemon lacks the operation.
var errNotOffered = errors.New("not offered")

// chunk is what uploads send at a time, the size class that SDKs use.
var chunk = make([]byte, 1<<20)
