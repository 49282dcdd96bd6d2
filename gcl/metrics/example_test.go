package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
)

// A job that serves its metrics, as a scrape sees them.
func Example() {
	m := metrics.New(nil)
	l, err := net.Listen("tcp", "localhost:0") // a job has a port of its own here, as in "localhost:9400"
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: m}
	go server.Serve(l)
	defer server.Close()

	err = gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c.Named("grads"), make([]float32, 1024), gcl.Mean)
	}, gcl.WithOptions(gcl.Options{Trace: m.Trace()}))
	if err != nil {
		log.Fatal(err)
	}

	answer, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "gcl_collective_bytes_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// gcl_collective_bytes_total{replica="0",collective="all-reduce",message_size="4KiB-8KiB",nranks="2",comm_name="grads",method="direct",path="small",transport="inproc"} 4096
	// gcl_collective_bytes_total{replica="1",collective="all-reduce",message_size="4KiB-8KiB",nranks="2",comm_name="grads",method="direct",path="small",transport="inproc"} 4096
}
