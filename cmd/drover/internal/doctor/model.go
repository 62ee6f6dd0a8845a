// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
)

const (
	// modelWait bounds the one request to the endpoint.
	modelWait = 3 * time.Second
	// defaultEndpoint is the endpoint of the CLI if no other is set.
	defaultEndpoint = "https://api.anthropic.com"
	// extraCertificates names the variable by which the CLI trusts more certificates.
	extraCertificates = "NODE_EXTRA_CA_CERTS"
)

type modelDial struct {
	proxy func(*http.Request) (*url.URL, error)
	// resolver looks names up. Nil is that of the system.
	resolver *net.Resolver
	// wait bounds the request.
	wait time.Duration
}

// examineModel asks the endpoint for an answer of any kind. The request carries no credential, not even
// one that is part of the address, and costs nothing.
func (m *machine) examineModel(ctx context.Context) *Check {
	if m.options.Offline {
		return &Check{State: stateSkipped, Detail: "not tried, because of --offline"}
	}
	base := m.getenv("ANTHROPIC_BASE_URL")
	if found, err := m.authentication(); err == nil {
		if found.Mode == claudecell.ModeBedrock {
			return &Check{State: stateSkipped, Detail: "not tried: Amazon Bedrock has its own endpoints"}
		}
		base = found.BaseURL
	}
	endpoint, err := endpointOf(base)
	if err != nil {
		return &Check{State: stateBroken, Detail: err.Error(), Fix: []string{"export ANTHROPIC_BASE_URL=https://host", "unset ANTHROPIC_BASE_URL"}}
	}
	roots, err := certificates(m.getenv(extraCertificates))
	if err != nil {
		return &Check{State: stateBroken, Detail: err.Error(), Fix: []string{"export " + extraCertificates + "=/path/to/ca.pem", "unset " + extraCertificates}}
	}
	status, proxy, err := m.dial.ask(ctx, endpoint, roots)
	c := &Check{State: stateOK, Endpoint: endpoint.String(), Detail: "reachable: " + endpoint.String() + through(proxy)}
	switch {
	case err != nil:
		c.State = stateBroken
		c.Detail, c.Fix = m.unreachable(endpoint, proxy, err)
	case status == http.StatusProxyAuthRequired:
		c.State, c.Detail = stateBroken, endpoint.Host+" is not reached: authentication required"+through(proxy)
		c.Fix = []string{"export " + proxyVariable(endpoint) + "=http://user:…@proxy:port"}
	case status >= 500:
		c.State, c.Detail = stateWarning, fmt.Sprintf("%s%s answers with status %d", endpoint, through(proxy), status)
		c.Fix = []string{"try again later, or check the gateway"}
	}
	return c
}

// endpointOf returns scheme and host of an address. The rest may be secret: a user, a password, a
// token in the path. For the same reason the error does not repeat it.
func endpointOf(base string) (*url.URL, error) {
	if base == "" {
		base = defaultEndpoint
	}
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("ANTHROPIC_BASE_URL is not an address that begins with http:// or https:// and a host")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// certificates are those that the CLI trusts: the system's and those of a file. Nil means the system's.
func certificates(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s names a file that cannot be read: %w", extraCertificates, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s names %s, which holds no certificate", extraCertificates, path)
	}
	return roots, nil
}

// ask makes one request and gives up the connection. The proxy is nil if none was used.
func (m modelDial) ask(ctx context.Context, endpoint *url.URL, roots *x509.CertPool) (status int, proxy *url.URL, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, endpoint.String()+"/", nil)
	if err != nil {
		return 0, nil, err
	}
	if proxy, err = m.proxy(req); err != nil {
		return 0, nil, errors.New("the proxy variables hold no valid address")
	}
	client := http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyURL(proxy),
			DialContext:       (&net.Dialer{Resolver: m.resolver}).DialContext,
			TLSClientConfig:   &tls.Config{RootCAs: roots},
			DisableKeepAlives: true,
		},
		// An answer that leads elsewhere is an answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, proxy, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, proxy, nil
}

// through names a proxy without its user and password.
func through(proxy *url.URL) string {
	if proxy == nil {
		return ""
	}
	return " through the proxy " + proxy.Host
}

func proxyVariable(endpoint *url.URL) string {
	if endpoint.Scheme == "http" {
		return "HTTP_PROXY"
	}
	return "HTTPS_PROXY"
}

func (m *machine) unreachable(endpoint, proxy *url.URL, err error) (detail string, fix []string) {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the address
	}
	where := endpoint.Host + through(proxy)
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the name %s does not resolve%s", name.Name, through(proxy)), m.addressFixes(endpoint, proxy, "getent hosts "+name.Name)
	}
	if _, noTLS := errors.AsType[tls.RecordHeaderError](err); noTLS {
		return "TLS error at " + where + ": what it speaks is not TLS", []string{
			"export ANTHROPIC_BASE_URL=http://" + endpoint.Host + "   if it speaks HTTP",
			"correct ANTHROPIC_BASE_URL",
		}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "TLS error at " + where + ": it does not speak TLS", []string{"export ANTHROPIC_BASE_URL=http://" + endpoint.Host}
	}
	if reason := certificateFault(err); reason != "" {
		return "TLS error at " + where + ": " + reason, []string{
			"export " + extraCertificates + "=/path/to/ca.pem   if a gateway or proxy has certificates of its own",
		}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer from %s within %v", where, m.dial.wait), m.addressFixes(endpoint, proxy, "curl --head "+endpoint.String())
	}
	return "cannot connect to " + where + ": " + reasonOf(err), m.addressFixes(endpoint, proxy, "curl --head "+endpoint.String())
}

// addressFixes end with a command that shows more.
func (m *machine) addressFixes(endpoint, proxy *url.URL, show string) []string {
	variable := proxyVariable(endpoint)
	if proxy != nil {
		return []string{
			"start what serves " + proxy.Host + ", or correct " + variable,
			"export NO_PROXY=" + endpoint.Hostname() + "   if it can be reached without a proxy",
			show + "   to see more",
		}
	}
	var fixes []string
	if m.getenv("ANTHROPIC_BASE_URL") != "" {
		fixes = append(fixes, "start what serves "+endpoint.Host+", or correct ANTHROPIC_BASE_URL")
	}
	if ip := net.ParseIP(endpoint.Hostname()); endpoint.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fixes = append(fixes, "export "+variable+"=http://proxy:port   behind a firewall")
	}
	return append(fixes, show+"   to see more")
}

// certificateFault is what is wrong with the encryption, or "".
func certificateFault(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate is signed by an unknown authority"
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return bad.Err.Error()
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return alert.Error()
	}
	return ""
}

// reasonOf is the innermost error, such as "connection refused".
func reasonOf(err error) string {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Err != nil {
		err = dial.Err
	}
	if system, ok := errors.AsType[*os.SyscallError](err); ok {
		err = system.Err
	}
	if errors.Is(err, io.EOF) {
		return "it hung up without an answer"
	}
	return err.Error()
}
