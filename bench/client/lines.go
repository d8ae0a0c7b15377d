package main

import (
	"bytes"
	"os"
	"time"
)

// printLines writes the lines of a file, one in each interval, and costs the machine next to nothing meanwhile.
func printLines(path string, interval time.Duration) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(content) {
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
		time.Sleep(interval)
	}
	return nil
}
