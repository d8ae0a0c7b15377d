package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Result holds the latencies of the single operations and the time for all of them.
type Result struct {
	MinMs      float64 `json:"minMs"`
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	MaxMs      float64 `json:"maxMs"`
	Count      int     `json:"count"`
	Seconds    float64 `json:"seconds"`
	NotOffered bool    `json:"notOffered,omitempty"`
	Error      string  `json:"error,omitempty"`
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
	return resultOf(latencies, elapsed)
}

func resultOf(latencies []time.Duration, elapsed time.Duration) Result {
	slices.Sort(latencies)
	return Result{
		MinMs:   milliseconds(latencies[0]),
		P50Ms:   percentile(latencies, 50),
		P99Ms:   percentile(latencies, 99),
		MaxMs:   milliseconds(latencies[len(latencies)-1]),
		Count:   len(latencies),
		Seconds: elapsed.Seconds(),
	}
}

func percentile(sorted []time.Duration, percent int) float64 {
	return milliseconds(sorted[min(len(sorted)-1, len(sorted)*percent/100)])
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Nanoseconds()) / 1e6
}
