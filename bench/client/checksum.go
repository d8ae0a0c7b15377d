package main

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fingerprint tells one output from another for little of the client's CPU, which the measured daemon has to share.
type fingerprint struct {
	bytes int64
	crc   uint32
}

func (f *fingerprint) add(piece []byte) {
	f.bytes += int64(len(piece))
	f.crc = crc32.Update(f.crc, castagnoli, piece)
}

func (f *fingerprint) Write(piece []byte) (int, error) {
	f.add(piece)
	return len(piece), nil
}

func fingerprintFile(path string) (fingerprint, error) {
	var result fingerprint
	file, err := os.Open(path)
	if err != nil {
		return result, err
	}
	defer file.Close()
	_, err = io.CopyBuffer(&result, struct{ io.Reader }{file}, make([]byte, 1<<20))
	return result, err
}

// checksumOfFile is empty where none was asked for.
func (job Job) checksumOfFile() (string, error) {
	if !job.Checksum {
		return "", nil
	}
	file, err := os.Open(job.Path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return checksum(file)
}

func (job Job) checksumOfUpload() (string, error) {
	if !job.Checksum {
		return "", nil
	}
	return checksum(&repeated{remaining: job.Size})
}

func checksum(content io.Reader) (string, error) {
	digest := sha256.New()
	_, err := io.Copy(digest, content)
	return hex.EncodeToString(digest.Sum(nil)), err
}
