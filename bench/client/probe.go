package main

import "time"

// probeInterval is the least time between the beginnings of two calls of a probe, which is to look at a load, not to be one.
const probeInterval = 2 * time.Millisecond

// probe makes one small call after the other until it is stopped: what a caller beside a load sees. At least one.
func (job Job) probe(target Target, stopped <-chan Job) Result {
	operation := func() error { return target.Stat(job.Path) }
	if len(job.Argv) > 0 {
		operation = func() error {
			_, err := target.Exec(job.Argv)
			return err
		}
	}
	var latencies []time.Duration
	start := time.Now()
	next := time.After(time.Duration(job.DelayMs) * time.Millisecond)
	for {
		<-next
		next = time.After(probeInterval)
		begun := time.Now()
		err := operation()
		latencies = append(latencies, time.Since(begun))
		if err != nil {
			<-stopped
			return failed(err)
		}
		select {
		case <-stopped:
			return resultOf(latencies, time.Since(start))
		default:
		}
	}
}
