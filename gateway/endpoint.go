// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway/internal/echo"
)

// NewEndpoint is an endpoint that speaks a wire over HTTP. Plain http is allowed, for what runs on this machine or
// behind a tunnel: the credential then travels as it is.
func NewEndpoint(w *Wire, baseURL string, c Credential) (Upstream, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		err = errors.New("it cannot be parsed") // the error of url has the address, which may hold a password
	} else {
		err = checkBase(base)
	}
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("gateway: the address of an upstream is not in order: %w", err), "give one such as https://host")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	base.RawPath = strings.TrimSuffix(base.RawPath, "/")
	return newEndpoint(base.String(), w, base, c), nil
}

func checkBase(base *url.URL) error {
	switch {
	case base.Scheme != "https" && base.Scheme != "http":
		return errors.New("it begins neither with https:// nor with http://")
	case base.Hostname() == "":
		return errors.New("it has no host")
	case base.User != nil:
		return errors.New("it holds a user or a password, which belong into the credential")
	case base.RawQuery != "" || base.Fragment != "":
		return errors.New("it has a query or a fragment")
	}
	return nil
}

type endpoint struct {
	name       string
	wire       *Wire
	base       *url.URL
	credential Credential
	transport  *http.Transport
}

func newEndpoint(name string, w *Wire, base *url.URL, c Credential) *endpoint {
	return &endpoint{name, w, base, c, &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        32 << 10,
	}}
}

func (e *endpoint) Name() string          { return e.name }
func (e *endpoint) Wire() *Wire           { return e.wire }
func (e *endpoint) CloseIdleConnections() { e.transport.CloseIdleConnections() }

// RoundTrip sends the request with the address and the credential. A refused key of a helper is asked for once more.
func (e *endpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	out, err := e.dress(req)
	if err != nil {
		return nil, err
	}
	resp, err := e.send(out)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.GetBody == nil || !e.credential.renew(out.Header) {
		return resp, err
	}
	discard(resp)
	again := req.Clone(req.Context())
	if again.Body, err = req.GetBody(); err != nil {
		return nil, err
	}
	if out, err = e.dress(again); err != nil {
		return nil, err
	}
	return e.send(out)
}

// send sends a request that carries the credential, which does not come back with the answer.
func (e *endpoint) send(out *http.Request) (*http.Response, error) {
	resp, err := e.transport.RoundTrip(out)
	if err != nil {
		return nil, echo.Error(err, out.Header)
	}
	echo.Mask(resp, out.Header)
	return resp, nil
}

// dress makes the request that goes out; a RoundTripper must not change the one it is given.
func (e *endpoint) dress(req *http.Request) (*http.Request, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host = e.base.Scheme, e.base.Host
	if e.base.Path != "" {
		out.URL.RawPath = e.base.EscapedPath() + req.URL.EscapedPath()
		out.URL.Path = e.base.Path + req.URL.Path
	}
	out.Host = ""
	if err := e.credential.apply(req.Context(), out.Header); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &unsentError{err}
	}
	return out, nil
}
