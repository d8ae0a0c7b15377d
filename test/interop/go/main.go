// Makes calls with grpc-go or connect-go: see ../driven-client.ts.
//
//	go-clients grpc-go|connect|grpc|grpc-web ADDRESS
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

type call struct {
	ID         int      `json:"id"`
	Procedure  string   `json:"procedure"`
	Kind       string   `json:"kind"`
	Requests   [][]byte `json:"requests"`
	Token      string   `json:"token"`
	DeadlineMs int64    `json:"deadlineMs"`
	Gzip       bool     `json:"gzip"`
	// Of a call to cancel; nothing else is given then.
	Cancel int `json:"cancel"`
}

type answer struct {
	ID        int      `json:"id"`
	Responses [][]byte `json:"responses"`
	Code      uint32   `json:"code"`
	Message   string   `json:"message"`
	// google.rpc.Status, when the error had details.
	Status []byte `json:"status"`
}

type client interface {
	// do makes a call and tells of each response. explain takes apart what it fails with.
	do(ctx context.Context, call call, onResponse func([]byte)) error
	explain(err error) (code uint32, message string, status []byte)
}

func main() {
	library, address := os.Args[1], os.Args[2]
	var target client
	if library == "grpc-go" {
		target = connectGrpcGo(address)
	} else {
		target = connectConnectGo(address, library)
	}
	if err := serve(target, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(target client, input io.Reader, output io.Writer) error {
	var mutex sync.Mutex
	var calls sync.WaitGroup
	cancels := map[int]context.CancelFunc{}
	answers := json.NewEncoder(output)
	lines := json.NewDecoder(bufio.NewReader(input))
	for {
		var next call
		if err := lines.Decode(&next); err == io.EOF {
			calls.Wait()
			return nil
		} else if err != nil {
			return err
		}
		if next.Cancel != 0 {
			mutex.Lock()
			cancel, running := cancels[next.Cancel]
			mutex.Unlock()
			if running {
				cancel()
			}
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		mutex.Lock()
		cancels[next.ID] = cancel
		mutex.Unlock()
		calls.Go(func() {
			result := run(ctx, target, next)
			mutex.Lock()
			defer mutex.Unlock()
			cancels[next.ID]()
			delete(cancels, next.ID)
			_ = answers.Encode(result)
		})
	}
}

func run(ctx context.Context, target client, call call) answer {
	if call.DeadlineMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(call.DeadlineMs)*time.Millisecond)
		defer cancel()
	}
	result := answer{ID: call.ID, Responses: [][]byte{}, Status: []byte{}}
	err := target.do(ctx, call, func(response []byte) { result.Responses = append(result.Responses, response) })
	if err != nil {
		result.Code, result.Message, result.Status = target.explain(err)
	}
	return result
}
