// The OTLP receiver of the OpenTelemetry collector on a free port of the loopback interface. The first line that it prints is its
// address; every further one is what it has received of traces, as OTLP's JSON.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: collector ADDRESS")
	}
	address := os.Args[1]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	http := map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}
	must(confmap.NewFromStringMap(http).Unmarshal(config))
	marshaler := &ptrace.JSONMarshaler{}
	var printing sync.Mutex
	next, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		text, err := marshaler.MarshalTraces(traces)
		if err != nil {
			return err
		}
		printing.Lock()
		defer printing.Unlock()
		_, err = fmt.Printf("%s\n", text)
		return err
	})
	must(err)
	receiver, err := factory.CreateTraces(ctx, receivertest.NewNopSettings(factory.Type()), config, next)
	must(err)
	must(receiver.Start(ctx, componenttest.NewNopHost()))
	fmt.Println(address)
	<-ctx.Done()
	must(receiver.Shutdown(context.Background()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
