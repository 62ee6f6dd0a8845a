// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// An access is who makes a request.
type access uint8

const (
	anyone access = iota // a page without a cookie
	viewer               // reads
	owner                // changes
)

// A keyring knows the tokens, and the browsers that have traded one.
type keyring struct {
	owner, viewer string
	hosts         []string // names of this server beside its addresses

	rates    [len(maxRates)]*rate.Limiter // by access
	mu       sync.Mutex
	browsers []browser // the latest last
	failures []time.Time
}

// A browser has a cookie, which other servers of its host receive too, and a secret, which only the page has.
type browser struct {
	cookie, secret string
	access         access
}

// The bounds of a keyring.
const (
	maxBrowsers = 256
	maxFailures = 20 // wrong tokens in failureTime
	failureTime = time.Minute
)

// same compares secrets.
func same(a, b string) bool { return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (k *keyring) ofToken(token string) access {
	switch {
	case same(token, k.owner):
		return owner
	case same(token, k.viewer):
		return viewer
	}
	return anyone
}

// secretHeader has the second secret of the page.
const secretHeader = "Drover-Secret"

// cookieName is one for each port, since browsers send the cookies of a host to all its ports.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "drover"
	}
	return "drover_" + port
}

// check refuses a request that lacks the access that it needs, and one too many.
func (k *keyring) check(r *http.Request, needs access) error {
	has := anyone
	if needs == anyone {
		return k.checkRate(has)
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if has = k.ofToken(token); has == anyone && k.failed() {
			return errTooManyTokens
		}
	} else if certified(r) {
		has = owner
	} else if cookie, err := r.Cookie(cookieName(r)); err == nil {
		has = k.ofBrowser(cookie.Value, r.Header.Get(secretHeader))
	}
	if err := k.checkRate(has); err != nil {
		return err
	}
	switch {
	case has == anyone:
		return problem(http.StatusUnauthorized, "the request has no token that this server knows", "open the address that drover has printed, or send Authorization: Bearer with the token of its file")
	case has < needs:
		return problem(http.StatusForbidden, "this token can only read", "use the token of the owner")
	}
	return nil
}

// certified reports whether a program has shown a certificate that the server has verified. A browser shows it to each page that asks
// for it: its requests need the cookie and the secret too.
func certified(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Cookie") == ""
}

func (k *keyring) checkRate(has access) error {
	if !k.rates[has].Allow() {
		return errTooManyRequests
	}
	return nil
}

// checkOrigin refuses requests of pages of other servers, and of names that were made to lead here.
func (k *keyring) checkOrigin(r *http.Request) error {
	if !k.isHost(r.Host) {
		return problem(http.StatusMisdirectedRequest, "this server is not called "+r.Host, "use its address")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		if origin != scheme+r.Host {
			return problem(http.StatusForbidden, "the request comes from a page of another server", "open the address that drover has printed, or send the request from a program")
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); strings.HasPrefix(r.URL.Path, "/v1/") && site != "" && site != "same-origin" {
		return problem(http.StatusForbidden, "the request comes from a page of another server", "open the address that drover has printed, or send the request from a program")
	}
	return nil
}

// isHost reports whether a name is one of this server: an address, localhost, or a name that was given. A name that another
// server's owner controls could lead here.
func (k *keyring) isHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(k.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

func (k *keyring) ofBrowser(cookie, secret string) access {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.browsers {
		if same(cookie, b.cookie) && same(secret, b.secret) {
			return b.access
		}
	}
	return anyone
}

// trade gives a browser access for a token. cookie is what it has from an earlier trade: its other tabs keep their secret.
func (k *keyring) trade(token, cookie string) (browser, error) {
	has := k.ofToken(token)
	if has == anyone {
		if k.failed() {
			return browser{}, errTooManyTokens
		}
		return browser{}, errWrongToken
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.browsers {
		if b.access == has && same(cookie, b.cookie) {
			return b, nil
		}
	}
	b := browser{cookie: rand.Text(), secret: rand.Text(), access: has}
	k.browsers = append(k.browsers, b)
	if len(k.browsers) > maxBrowsers {
		k.browsers = slices.Delete(k.browsers, 0, 1)
	}
	return b, nil
}

var (
	errWrongToken    = problem(http.StatusUnauthorized, "the server does not know this token", "open the address that drover has printed last")
	errTooManyTokens = tooMany("there were too many wrong tokens", "wait for a minute", failureTime)
)

// failed counts a wrong token, and reports whether there were too many. A right one is always accepted.
func (k *keyring) failed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failures = append(slices.DeleteFunc(k.failures, func(t time.Time) bool { return time.Since(t) > failureTime }), time.Now())
	if len(k.failures) > maxFailures {
		k.failures = k.failures[1:]
		return true
	}
	return false
}
