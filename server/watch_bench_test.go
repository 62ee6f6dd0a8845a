// SPDX-License-Identifier: Apache-2.0

//go:build linux

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// The pace of BenchmarkWatch: each run has two events in a second, as an agent that reads and writes files.
const (
	watchedEvery = 500 * time.Millisecond
	watchedFor   = 10 * time.Second
	maxWatchCPU  = 2.0 // per cent of a core for 50 runs, from the goals
)

// BenchmarkWatch measures what it costs to watch running runs of another process, in per cent of a core: a server that sends notices of
// their questions and ends, and a reader of each log. With streams, the readers are clients of the API in the other process. The latency
// is that of an event from the agent to the reader.
func BenchmarkWatch(b *testing.B) {
	for _, n := range []int{50, 500} {
		b.Run(fmt.Sprintf("runs=%d", n), func(b *testing.B) {
			for b.Loop() {
				benchmarkWatch(b, n, false)
			}
		})
	}
	b.Run("runs=50/streams", func(b *testing.B) {
		for b.Loop() {
			benchmarkWatch(b, 50, true)
		}
	})
}

func benchmarkWatch(b *testing.B, n int, streams bool) {
	store := openStore(b)
	s := serve(b, server.Options{Store: store, Notify: func(server.Notice) {}})
	server.LiftRates(s.Server)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), watchedStore+"="+store.Dir(), watchedRuns+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "running" {
		b.Fatalf("the other process says %q", lines.Text())
	}
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(b.Context())
	defer readers.Wait()
	defer stop()
	var read atomic.Int64
	var latencies []float64
	if streams {
		if _, err := fmt.Fprintln(in, s.base, s.Token()); err != nil || !lines.Scan() || lines.Text() != "reading" {
			b.Fatalf("the other process says %q, %v", lines.Text(), err)
		}
	} else {
		folders, err := store.Folders()
		if err != nil || len(folders) != n {
			b.Fatalf("%d runs, %v", len(folders), err)
		}
		for i, folder := range folders {
			run, err := store.Run(folder)
			if err != nil {
				b.Fatal(err)
			}
			readers.Go(func() {
				for line, err := range run.Follow(ctx, 0) {
					if err != nil {
						b.Error(err)
						return
					}
					if read.Add(1); i == 0 {
						latencies = append(latencies, sinceEmitted(line.Event)...)
					}
				}
			})
		}
	}
	time.Sleep(3 * time.Second) // what there was is read
	before, events := cpuTime(b), read.Load()
	time.Sleep(watchedFor)
	spent := cpuTime(b) - before
	events = read.Load() - events
	stop()
	readers.Wait()
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	if streams {
		for _, word := range strings.Fields(string(rest)) {
			if ms, err := strconv.ParseFloat(word, 64); err == nil {
				latencies = append(latencies, ms)
			}
		}
	} else if want := int64(n) * int64(watchedFor/watchedEvery) / 2; events < want {
		b.Errorf("%d events were read, want at least %d: %v", events, want, err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*spent.Seconds()/watchedFor.Seconds(), "%core")
	if n == 50 {
		b.ReportMetric(maxWatchCPU, "limit-%core")
	}
	b.ReportMetric(quantile(latencies, 0.5), "event-p50-ms")
	b.ReportMetric(quantile(latencies, 0.99), "event-p99-ms")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sinceEmitted is how many milliseconds ago an event of a watched run was emitted, if it is one.
func sinceEmitted(text []byte) []float64 {
	_, rest, found := bytes.Cut(text, []byte("at-"))
	if !found {
		return nil
	}
	at, _, _ := bytes.Cut(rest, []byte("-"))
	micros, err := strconv.ParseInt(string(at), 10, 64)
	if err != nil {
		return nil
	}
	return []float64{float64(time.Now().UnixMicro()-micros) / 1000}
}

// watchedStore and watchedRuns make this test program the process with the runs of BenchmarkWatch.
const watchedStore, watchedRuns = "DROVER_TEST_WATCHED_STORE", "DROVER_TEST_WATCHED_RUNS"

func init() { children[watchedStore] = watched }

// watched has runs under way until its standard input ends. Of an address and a token in it, it reads the events of each run.
func watched(dir string) error {
	n, err := strconv.Atoi(os.Getenv(watchedRuns))
	if err != nil {
		return err
	}
	store, err := record.Open(dir)
	if err != nil {
		return err
	}
	p, err := prompt.FromText[string]("Look at the shop.")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var runs, begun sync.WaitGroup
	var ids sync.Map
	for i := range n {
		begun.Add(1)
		runs.Go(func() {
			live := server.NewLive(record.NewRecorder(store, nil), nil)
			a := agenttest.New(func(r *agenttest.Run) {
				ids.Store(r.Request.RunID, true)
				begun.Done()
				time.Sleep(watchedEvery * time.Duration(i) / time.Duration(n))
				for beat := time.Tick(watchedEvery); ctx.Err() == nil; <-beat {
					r.Yield(event.Event{Payload: event.Text{Content: fmt.Sprintf("at-%d-%s", time.Now().UnixMicro(), strings.Repeat("text ", 100))}}, nil)
				}
			}, agenttest.Done(""))
			_, _ = drover.Evaluate(context.Background(), a, p, &drover.Options{Recorder: live, Approver: live})
			_ = live.Close()
		})
	}
	begun.Wait()
	fmt.Println("running")
	in := bufio.NewScanner(os.Stdin)
	var readers sync.WaitGroup
	if in.Scan() {
		base, token, _ := strings.Cut(in.Text(), " ")
		var mu sync.Mutex
		ids.Range(func(id, _ any) bool {
			readers.Go(func() {
				r, err := http.NewRequestWithContext(ctx, "GET", base+"/v1/runs/"+id.(string)+"/events", nil)
				if err != nil {
					panic(err)
				}
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Accept", "text/event-stream")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					panic(err)
				}
				defer func() { _ = resp.Body.Close() }()
				var own []float64
				for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
					own = append(own, sinceEmitted(lines.Bytes())...)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, ms := range own[min(len(own), 6):] { // those of the first seconds were there before
					fmt.Println(ms)
				}
			})
			return true
		})
		fmt.Println("reading")
		in.Scan()
	}
	stop()
	readers.Wait()
	runs.Wait()
	return nil
}
