// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// noticeFlags are the flags about notices of questions and ends of runs.
type noticeFlags struct {
	webhook string
	secret  string // the variable with the key of the signature
	command string
}

func (n *noticeFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&n.webhook, "webhook", "", "send a notice to this URL when a run asks or ends")
	f.StringVar(&n.secret, "webhook-secret", "", "the variable with the key that signs notices: HMAC-SHA256 in the header Drover-Signature")
	f.StringVar(&n.command, "notify", "", "run this program when a run asks or ends; the notice is its standard input")
}

func (n *noticeFlags) check() error {
	if n.webhook != "" {
		u, err := url.Parse(n.webhook)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return advice.Wrap(usageError("--webhook: %q is not a URL", n.webhook), "write https://host/path")
		}
		if n.secret == "" || os.Getenv(n.secret) == "" {
			return advice.Wrap(usageError("--webhook: notices are signed, and there is no key"), "name a variable that has one with --webhook-secret")
		}
	} else if n.secret != "" {
		return advice.Wrap(usageError("--webhook-secret is for --webhook"), "add --webhook, or leave it out")
	}
	return nil
}

// A notice is what is sent of a question or an end. It has no text of the agent, and no input: those may hold what is not for others.
type notice struct {
	Event  string           `json:"event"` // "question" or "end"
	ID     string           `json:"id"`    // of the question or the end, the same in each attempt and from each server
	Time   time.Time        `json:"time"`
	Run    string           `json:"run"`
	Agent  string           `json:"agent"`
	State  record.State     `json:"state"`
	Status event.DoneStatus `json:"status,omitzero"`
	Tool   string           `json:"tool,omitzero"`
	Until  time.Time        `json:"until,omitzero"`
}

// notices sends notices one after the other. Those that pile up beyond its bound are dropped, and logged.
type notices struct {
	flags noticeFlags
	log   *slog.Logger
	queue chan notice
	done  chan struct{}
	stop  context.CancelFunc
	wire  http.RoundTripper // nil is that of package http
}

const (
	maxNotices     = 1000
	noticeTries    = 6
	noticeTime     = 10 * time.Second // of one try
	firstNoticeGap = time.Second      // doubled after each try
	lastNotices    = 3 * time.Second  // how long a server that ends goes on to send
)

func (n *noticeFlags) start(ctx context.Context, log *slog.Logger) *notices {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	all := &notices{flags: *n, log: log, queue: make(chan notice, maxNotices), done: make(chan struct{}), stop: stop}
	go func() {
		defer close(all.done)
		for next := range all.queue {
			if err := all.deliver(ctx, next); err != nil {
				log.Error("a notice was not delivered", "run", next.Run, "event", next.Event, "error", err)
			}
		}
	}()
	return all
}

// send takes a notice of the server. It is not called after close.
func (n *notices) send(of server.Notice) {
	if n.flags.webhook == "" && n.flags.command == "" {
		return
	}
	next := notice{Event: of.Event, ID: of.Run.ID, Time: time.Now().UTC(), Run: of.Run.ID, Agent: of.Run.Name, State: of.Run.State, Status: of.Run.Status}
	if of.Question != nil {
		next.ID, next.Tool, next.Until = of.Question.ID, of.Question.Tool, of.Question.Until
	}
	select {
	case n.queue <- next:
	default:
		n.log.Error("a notice was dropped: too many wait", "run", next.Run, "event", next.Event)
	}
}

// close sends what waits, for a short time.
func (n *notices) close() {
	close(n.queue)
	timer := time.AfterFunc(lastNotices, n.stop)
	<-n.done
	timer.Stop()
	n.stop()
}

func (n *notices) deliver(ctx context.Context, next notice) error {
	text, err := plainjson.Marshal(next)
	if err != nil {
		return err
	}
	if n.flags.command != "" {
		err = n.run(ctx, text)
	}
	if n.flags.webhook == "" {
		return err
	}
	gap := firstNoticeGap
	for try := 1; ; try++ {
		again, failure := n.post(ctx, text)
		if failure == nil || !again || try == noticeTries || ctx.Err() != nil {
			return errors.Join(err, failure)
		}
		select {
		case <-time.After(gap):
		case <-ctx.Done():
		}
		gap *= 2
	}
}

// post makes one attempt, and reports whether another may succeed.
func (n *notices) post(ctx context.Context, text []byte) (again bool, err error) {
	ctx, done := context.WithTimeout(ctx, noticeTime)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.flags.webhook, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(os.Getenv(n.flags.secret)))
	_, _ = mac.Write([]byte(now + "." + string(text))) // it cannot fail
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Drover-Signature", "t="+now+",v1="+hex.EncodeToString(mac.Sum(nil)))
	client := http.Client{Transport: n.wire, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return true, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // it says nothing that matters
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, fmt.Errorf("the webhook answered with status %d", resp.StatusCode)
	}
	return false, nil
}

// run gives the notice to the program.
func (n *notices) run(ctx context.Context, text []byte) error {
	ctx, done := context.WithTimeout(ctx, noticeTime)
	defer done()
	cmd := exec.CommandContext(ctx, n.flags.command)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("--notify %s: %w: %.200q", n.flags.command, err, out)
	}
	return nil
}
