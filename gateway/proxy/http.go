// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// A single listener has one connection and ends with it, so that net/http serves it for the goroutine that owns it.
type single struct {
	conn  *inbound
	taken bool
}

func (s *single) Accept() (net.Conn, error) {
	if s.taken {
		<-s.conn.closed
		return nil, io.EOF
	}
	s.taken = true
	return s.conn, nil
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

type inboundKey struct{}

func (p *Proxy) newServer() *http.Server {
	server := &http.Server{
		Handler:                      http.HandlerFunc(p.serveHTTP),
		ReadHeaderTimeout:            handshakeTimeout,
		IdleTimeout:                  p.options.IdleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(p.options.Logger.Handler(), slog.LevelDebug),
		Protocols:                    onlyHTTP1(),
		BaseContext:                  func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, inboundKey{}, c)
		},
	}
	return server
}

func onlyHTTP1() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return protocols
}

func (p *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		return
	}
	defer p.working.Done()
	in := r.Context().Value(inboundKey{}).(*inbound)
	a, t, problem := p.readRequest(r)
	if problem == nil && in.busy {
		a.understood(t)
		w.Header().Set("Connection", "close")
		problem = tooMany(p.options.MaxConnections)
	}
	if problem != nil {
		respond(w, a.where, a.refuse(problem))
		return
	}
	out, problem := a.open(r.Context(), t)
	switch {
	case problem != nil:
		respond(w, a.where, problem)
	case r.Method == http.MethodConnect:
		p.connect(w, a, in, out)
	default:
		p.forward(w, r, a, in, out, t)
	}
}

// readRequest finds the target. It takes the request line as it was written, since what is parsed
// of it has lost how it was spelled; the Host header counts for nothing.
func (p *Proxy) readRequest(r *http.Request) (*attempt, target, *problem) {
	protocol, authority, usual := ProtocolConnect, r.RequestURI, uint16(0)
	var problem *problem
	if r.Method != http.MethodConnect {
		protocol, usual = ProtocolHTTP, 80
		authority, problem = absoluteAuthority(r)
	} else if r.ContentLength != 0 {
		problem = malformed(textConnectBody)
	}
	a := p.attempt(protocol, authority, 0)
	if problem != nil {
		return a, target{}, problem
	}
	t, err := parseTarget(authority, usual)
	if err != nil {
		problem = malformed(err.Error())
	}
	return a, t, problem
}

// absoluteAuthority is the part between "http://" and the path.
func absoluteAuthority(r *http.Request) (string, *problem) {
	scheme, rest, absolute := strings.Cut(r.RequestURI, "://")
	if !absolute || strings.HasPrefix(scheme, "/") {
		return "", malformed(textNoHost)
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if !strings.EqualFold(scheme, "http") {
		return authority, malformed(textScheme)
	}
	if r.URL.Host != authority || r.URL.User != nil {
		return authority, malformed(textHostForm)
	}
	return authority, nil
}

// respond sends a problem. A client that is slow to send the rest of its request does not keep the connection.
func respond(w http.ResponseWriter, where string, p *problem) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(handshakeTimeout))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(p.status)
	_, _ = io.WriteString(w, p.body(where))
}

func (p *Proxy) connect(w http.ResponseWriter, a *attempt, in *inbound, out *outbound) {
	defer p.forget(out)
	defer in.Close()
	_, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = out.Close()
		a.end(out, "the client was lost")
		return
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = out.Close()
		a.end(out, "the client was lost")
		return
	}
	a.end(out, p.tunnel(in, out, early))
}

// forward passes one request on, over a connection of its own.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, a *attempt, in *inbound, out *outbound, t target) {
	defer p.forget(out)
	idle := out.whenIdle(p.options.IdleTimeout, func() {
		_ = out.Close()
		_ = in.Close()
	})
	transport := oneConnection(out)
	var broken error
	// Also when the copying of the answer is given up by a panic, as net/http does.
	defer func() {
		_ = out.Close()
		transport.CloseIdleConnections()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(handshakeTimeout))
		p.endForward(a, out, idle(), broken)
	}()
	reverse := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      p.http.ErrorLog,
		Rewrite:       func(pr *httputil.ProxyRequest) { rewrite(pr, t) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			broken = err
			respond(w, a.where, brokenAnswer(err))
		},
	}
	// Changing to another protocol is what CONNECT is for.
	r = r.Clone(r.Context())
	r.Header.Del("Upgrade")
	reverse.ServeHTTP(w, r)
}

func (p *Proxy) endForward(a *attempt, out *outbound, idle bool, broken error) {
	switch {
	case idle:
		a.end(out, "nothing went through it for "+p.options.IdleTimeout.String())
	case p.ctx.Err() != nil:
		a.end(out, "the proxy was closed")
	case broken != nil && !errors.Is(broken, context.Canceled):
		a.count(out)
		a.refuse(brokenAnswer(broken))
	default:
		a.end(out, "")
	}
}

func brokenAnswer(err error) *problem {
	p := unreachable(err)
	if p.status == http.StatusBadGateway {
		p.reason = textNoAnswer
	}
	return p
}

// oneConnection is a transport that has out and nothing else.
func oneConnection(out *outbound) *http.Transport {
	given := make(chan net.Conn, 1)
	given <- out
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-given:
				return conn, nil
			default:
				return nil, errors.New("the connection was used up")
			}
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxResponseHeader,
		Protocols:              onlyHTTP1(),
	}
}

// rewrite addresses the request to the host that was checked. [httputil.ReverseProxy] has removed the hop-by-hop headers.
func rewrite(pr *httputil.ProxyRequest, t target) {
	pr.Out.URL.Scheme, pr.Out.URL.Host = "http", t.String()
	pr.Out.URL.User = nil
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	pr.Out.Host = t.header(80)
}
