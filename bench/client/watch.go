package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	picod "picod/bench/gen/picod/v1"
)

// maxPendingChanges is more than one event each of all the calls of a job.
const maxPendingChanges = 1 << 16

// watch follows the changes of a directory and all below it.
type watch struct {
	root    string
	changes chan string
	end     context.CancelFunc
}

// beginWatch takes as long as the daemon needs until it sees every change. It ends the watch before.
func (s *session) beginWatch(job Job) Result {
	s.endWatch()
	return measure(1, 1, func(int) error {
		target, ok := s.Target.(*grpcTarget)
		if !ok {
			return errNotOffered
		}
		ctx, cancel := context.WithCancel(target.ctx)
		request := &picod.WatchDirectoryRequest{Path: job.Path, Options: &picod.WatchOptions{Recursive: true}}
		stream, err := target.files.WatchDirectory(ctx, request)
		if err != nil {
			cancel()
			return err
		}
		first, err := stream.Recv()
		if err != nil || first.GetReady() == nil {
			cancel()
			return fmt.Errorf("the watch begins with %v: %w", first, err)
		}
		s.watch = &watch{job.Path, make(chan string, maxPendingChanges), cancel}
		go s.watch.follow(stream)
		return nil
	})
}

func (w *watch) follow(stream picod.FilesystemService_WatchDirectoryClient) {
	defer close(w.changes)
	for {
		event, err := stream.Recv()
		if err != nil || event.GetOverflow() != nil || event.GetUnwatched() != nil {
			return
		}
		if change := event.GetChange(); change != nil {
			w.changes <- change.Path
		}
	}
}

func (s *session) endWatch() {
	if s.watch != nil {
		s.watch.end()
		s.watch = nil
	}
}

// measureEvents writes new files into the `Directories` directories below the watch, by turns, and waits each time for the word of it.
func (s *session) measureEvents(job Job) Result {
	return measure(job.Count, 1, func(index int) error {
		path := filepath.Join(s.watch.root, strconv.Itoa(index*job.Stride%job.Directories), fmt.Sprintf("%s-%d", job.Name, index))
		if err := s.WriteFile(path, []byte("x")); err != nil {
			return err
		}
		for changed := range s.watch.changes {
			if changed == path {
				return nil
			}
		}
		return errors.New("the watch ended, or lost changes")
	})
}
