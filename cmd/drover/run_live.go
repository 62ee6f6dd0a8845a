// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/terminal"
)

// liveFlags are the flags about watching a run from elsewhere.
type liveFlags struct {
	watch bool
	// served is the id of a run that drover serve starts. Its questions are answered through the API.
	served string
}

// errStoppedElsewhere is the cause of a run's end that was asked for through the API.
var errStoppedElsewhere = errors.New("stopped from the page or the API")

func (f liveFlags) check(keep keepFlags) error {
	switch {
	case f.watch && keep.off:
		return advice.Wrap(usageError("--watch and --no-keep exclude each other: the page shows what is kept of the run"), "choose one")
	case f.served != "" && !ident.ValidUUID(f.served):
		return usageError("--served: %q is not the id of a run", f.served)
	}
	return nil
}

// asked means that questions may be answered from elsewhere, so that they wait even if no terminal can answer them.
func (f liveFlags) asked() bool { return f.watch || f.served != "" }

// endWithServer ends the process of a run when the server that started it has gone. Linux and Windows do so themselves, see
// package proc; elsewhere this is the only way.
func endWithServer() {
	server := os.Getppid()
	gone := runtime.GOOS != "linux" && server == 1 // it ended before this; in a container the server itself may be 1
	go func() {
		for !gone {
			time.Sleep(200 * time.Millisecond)
			gone = os.Getppid() != server
		}
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
	}()
}

// goLive has the run watched and controlled from elsewhere, if it is kept. local is the approver of the terminal, or nil.
func (j *job) goLive(local gate.Approver, stop context.CancelCauseFunc) gate.Approver {
	if j.kept == nil {
		return local
	}
	j.live = server.NewLive(j.kept, &server.LiveOptions{
		Stop: func() { stop(errStoppedElsewhere) }, Approver: local, Messages: true,
		Interrupt: func() bool {
			interrupt := j.interrupt.Load()
			return interrupt != nil && (*interrupt)()
		},
	})
	j.recorder = j.live
	if local == nil && !j.options.live.asked() { // no one can answer, and the run goes on without
		return nil
	}
	return j.live
}

// nextMessage is the next message from elsewhere. A run that was stopped gets no more.
func (j *job) nextMessage(ctx context.Context) (text string, more bool) {
	if j.live == nil || ctx.Err() != nil {
		return "", false
	}
	return j.live.Next()
}

// A watchPage serves the page of one run.
type watchPage struct {
	server *server.Server
	stop   func()
	served chan error
	// Address is that of the run's page.
	Address string
}

// openPage serves the page of a run of a store on loopback.
func openPage(ctx context.Context, store *record.Store, run string) (*watchPage, error) {
	s, err := server.New(ctx, server.Options{Store: store, Version: builtVersion()})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the page cannot be served: %w", err), s.Close())
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &watchPage{server: s, stop: stop, served: make(chan error, 1), Address: s.Address("http://"+l.Addr().String(), run)}
	go func() { p.served <- s.Serve(serving, l) }()
	return p, nil
}

// Close ends the page.
func (p *watchPage) Close() error {
	p.stop()
	return errors.Join(<-p.served, p.server.Close())
}

// A liveView shows events here and to those who watch.
type liveView struct {
	terminal.View
	live *server.Live
}

func (v liveView) Show(e event.Event) {
	v.live.Show(e)
	v.View.Show(e)
}

// watch serves the page of the run if that is asked for. announce prints its address, once; stay waits for the user of a terminal
// to be done with it.
func (j *job) watch(ctx context.Context) (announce, stay func(), err error) {
	if !j.options.live.watch {
		return func() {}, func() {}, nil
	}
	if j.store == nil {
		return nil, nil, advice.Wrap(usageError("--watch: the run is not kept, and the page shows what is kept of it"), "unset %s, or leave --watch out", envKeep)
	}
	if j.options.live.served == "" {
		j.options.live.served = ident.NewUUID()
	}
	page, err := openPage(ctx, j.store, j.options.live.served)
	if err != nil {
		return nil, nil, err
	}
	announce = sync.OnceFunc(func() { fmt.Fprintf(j.streams.errs, "drover: watch this run: %s\n", page.Address) })
	return announce, func() {
		if ctx.Err() == nil && terminal.Is(j.streams.in) && j.streams.screen != nil {
			fmt.Fprintln(j.streams.errs, "drover: the page stays until you press Enter")
			awaitEnter(ctx, j.streams.in)
		}
		if err := page.Close(); err != nil {
			report(j.streams.errs, err)
		}
	}, nil
}

// awaitEnter waits for the end of a line, or for the end of ctx. The read that is left then ends with the program.
func awaitEnter(ctx context.Context, in io.Reader) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = bufio.NewReader(in).ReadString('\n')
	}()
	select {
	case <-read:
	case <-ctx.Done():
	}
}
