// An HTTP event collector: the receiver of the OpenTelemetry Collector decodes the requests of sinks, and the decoded logs can be read, one JSON
// document per request.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/splunkhecreceiver"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "Usage: hec ADDRESS-TO-RECEIVE-AT ADDRESS-TO-READ-FROM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(receiveAt string, readFrom string) error {
	var lock sync.Mutex
	var received []byte
	marshaler := plog.JSONMarshaler{}
	logs, err := consumer.NewLogs(func(_ context.Context, decoded plog.Logs) error {
		line, err := marshaler.MarshalLogs(decoded)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		received = append(append(received, line...), '\n')
		return nil
	})
	if err != nil {
		return err
	}

	factory := splunkhecreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*splunkhecreceiver.Config)
	config.Endpoint = receiveAt
	config.AccessTokenPassthrough = true
	receiver, err := factory.CreateLogsReceiver(context.Background(), receivertest.NewNopCreateSettings(), config, logs)
	if err != nil {
		return err
	}
	if err := receiver.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		return err
	}

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() {
		failed <- http.ListenAndServe(readFrom, http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			lock.Lock()
			defer lock.Unlock()
			_, _ = answer.Write(received)
		}))
	}()
	select {
	case err = <-failed:
		return err
	case <-stop:
		return receiver.Shutdown(context.Background())
	}
}
