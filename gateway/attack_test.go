// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/gateway"
)

// These tests are agents that speak with the gateway themselves: the token is in their environment.

// An upstream that answers "at once" for ever is not asked for ever.
func TestBackOff_ZeroRetryAfterIsNoLoop(t *testing.T) {
	for _, header := range [][]string{{"Retry-After", "0"}, {"Retry-After-Ms", "0.001"}, {"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"}} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
				if asked++; asked > 1000 {
					return answerWith(http.StatusOK, "application/json", message), nil
				}
				return answerWith(http.StatusTooManyRequests, "application/json", `{}`, header...), nil
			}}
			run := open(t, gateway.New(&gateway.Options{MaxWait: time.Minute}), gateway.RunOptions{Upstream: upstream})
			if w := post(run, question); w.Code != http.StatusTooManyRequests || asked > 70 {
				t.Errorf("%q: got status %d after %d attempts, want 429 after about sixty", header, w.Code, asked)
			}
		})
	}
}

// What costs nothing has limits of its own. An agent that runs into them disturbs no other run.
func TestCountTokens_RefusalDelaysNoOtherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		upstream := &upstreamFunc{gateway.WireAnthropic, func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "count_tokens") {
				return answerWith(http.StatusTooManyRequests, "application/json", `{}`, "Retry-After", "100"), nil
			}
			return answerWith(http.StatusOK, "application/json", message), nil
		}}
		g := gateway.New(nil)
		one, other := open(t, g, gateway.RunOptions{Upstream: upstream}), open(t, g, gateway.RunOptions{Upstream: upstream})
		req := httptest.NewRequest(http.MethodPost, "/v1/messages/count_tokens", strings.NewReader(question))
		req.Header.Set("X-Api-Key", one.Token())
		w := httptest.NewRecorder()
		one.ServeHTTP(w, req)
		if got := post(other, question).Code; got != http.StatusOK || w.Code != http.StatusTooManyRequests || time.Since(began) != 0 {
			t.Errorf("counting got %d, a call of another run %d after %s; want 429, and 200 at once", w.Code, got, time.Since(began))
		}
	})
}

// An agent that asks and does not read keeps its place in the queue for a while only.
func TestLane_StuckReaderReturnsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := gateway.New(&gateway.Options{MaxInFlight: 1})
		stuck := open(t, g, gateway.RunOptions{Upstream: streaming(func(w io.Writer) {
			for {
				if _, err := io.WriteString(w, delta); err != nil {
					return
				}
			}
		})})
		agent, conn := net.Pipe()
		defer agent.Close()
		l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conns <- conn
		go stuck.Serve(l)
		fmt.Fprintf(agent, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", stuck.Token(), len(question), question)
		synctest.Wait()
		other := open(t, g, gateway.RunOptions{Upstream: whole(gateway.WireAnthropic)})
		answered := make(chan int, 1)
		go func() { answered <- post(other, question).Code }()
		select {
		case got := <-answered:
			if got != http.StatusOK {
				t.Errorf("the other run got status %d", got)
			}
		case <-time.After(31 * time.Second): // to be left behind, and to be read on
			t.Errorf("the other run still waits after %s", time.Since(began))
		}
		stuck.Close()
	})
}

// A run whose calls the upstream refuses over and over holds another's call for ten seconds at most.
func TestBackOff_RefusedRunDelaysOthersTenSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &upstreamFunc{gateway.WireAnthropic, func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("X-Run") == "refused" {
				time.Sleep(3 * time.Second) // so that refusals come all the time
				return answerWith(http.StatusTooManyRequests, "application/json", `{}`, "Retry-After", "119"), nil
			}
			return answerWith(http.StatusOK, "application/json", message), nil
		}}
		g := gateway.New(nil)
		refused, other := open(t, g, gateway.RunOptions{Upstream: upstream}), open(t, g, gateway.RunOptions{Upstream: upstream})
		for n := range 16 {
			time.AfterFunc(time.Duration(n)*time.Second, func() {
				req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(question))
				req.Header.Set("X-Api-Key", refused.Token())
				req.Header.Set("X-Run", "refused")
				refused.ServeHTTP(httptest.NewRecorder(), req)
			})
		}
		time.Sleep(3500 * time.Millisecond)
		began := time.Now()
		if got := post(other, question).Code; got != http.StatusOK || time.Since(began) > 10*time.Second {
			t.Errorf("the other run got status %d after %s", got, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}

// A run whose answers do not end leaves places for the calls of others.
func TestLane_BusyRunLeavesSlotsToOthers(t *testing.T) {
	for _, inFlight := range []int{2, 4, 16} {
		synctest.Test(t, func(t *testing.T) {
			g := gateway.New(&gateway.Options{MaxInFlight: inFlight})
			endless := &upstreamFunc{gateway.WireAnthropic, func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}}
			greedy, other := open(t, g, gateway.RunOptions{Upstream: endless}), open(t, g, gateway.RunOptions{Upstream: whole(gateway.WireAnthropic)})
			for range 2 * inFlight {
				go post(greedy, question)
			}
			synctest.Wait()
			began := time.Now()
			if got := post(other, question).Code; got != http.StatusOK || time.Since(began) != 0 {
				t.Errorf("%d in flight: the other run got status %d after %s", inFlight, got, time.Since(began))
			}
			greedy.Close()
		})
	}
}

func TestRun_ConnectionsAreLimited(t *testing.T) {
	const most = 256
	var events recorder
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), Emit: events.emit})
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var conns []net.Conn
	for range most {
		conns = append(conns, dial())
	}
	extra := dial()
	extra.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := extra.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one more: read %d bytes, %v; want a connection that is closed", n, err)
	}
	if got := eventsOf[gateway.Refused](&events); len(got) != 1 {
		t.Errorf("the refusals are %+v, want one", got)
	}
	for _, conn := range conns {
		conn.Close()
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		resp, err := askHTTP(t.Context(), client(t), run, url)
		if err == nil {
			resp.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("afterwards: %v", err)
		}
	}
}

func TestRun_LargeHeadersAreRefused(t *testing.T) {
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic)})
	for size, want := range map[int]int{32 << 10: http.StatusOK, 128 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(question))
		req.Header.Set("X-Api-Key", run.Token())
		req.Header.Set("X-Large", strings.Repeat("x", size))
		resp, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes: got status %d, want %d", size, resp.StatusCode, want)
		}
	}
}

// The name of a model is judged whole and kept in part: it may be as long as a header.
func TestModelName_LongIsCheckedWholeAndStoredShort(t *testing.T) {
	prefix := "arn:aws:bedrock:"
	name := prefix + strings.Repeat("x", 128-len(prefix)-len("/anthropic.claude-opus-4-5")) + "/anthropic.claude-opus-4-5"
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: whole(gateway.WireAnthropic), Models: []string{"claude-opus-4-5"}})
	if got := post(run, `{"model":"`+name+`-and-more"}`).Code; got != http.StatusForbidden {
		t.Errorf("a name that begins as an allowed one: got status %d, want 403", got)
	}

	var events recorder
	silent := &upstreamFunc{gateway.WireBedrock, func(*http.Request) (*http.Response, error) {
		return answerWith(http.StatusBadRequest, "application/json", `{}`), nil
	}}
	run = open(t, gateway.New(nil), gateway.RunOptions{Upstream: silent, Emit: events.emit})
	req := httptest.NewRequest(http.MethodPost, "/"+run.Token()+"/model/"+strings.Repeat("m", 50000)+"/invoke", strings.NewReader("{}"))
	run.ServeHTTP(httptest.NewRecorder(), req)
	calls := eventsOf[gateway.ModelCall](&events)
	if len(calls) != 1 || len(calls[0].Model) > 128 {
		t.Fatalf("got %d calls, want one with a short name", len(calls))
	}
	for model := range run.Usage().ByModel {
		if len(model) > 128 {
			t.Errorf("the usage keeps a name of %d bytes", len(model))
		}
	}
}

// No figure makes money come back.
func TestUsage_HugeFiguresDoNotOverflow(t *testing.T) {
	body := `{"type":"message","model":"claude-opus-4-5","usage":{"input_tokens":1e300,"output_tokens":1e300,"cache_read_input_tokens":1e300,"server_tool_use":{"web_search_requests":1e300}}}`
	upstream := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
		return answerWith(http.StatusOK, "application/json", body), nil
	}}
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	last := 0.0
	for range 50 {
		post(run, question)
		if now := run.Usage().Total.USD; now <= last {
			t.Fatalf("the cost went from %v to %v", last, now)
		} else {
			last = now
		}
	}
}
