// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/server"
)

// issueCertificate writes a certificate of a CA, or of its own without one, and its key.
func issueCertificate(t *testing.T, dir, name string, ca *tls.Certificate) (cert, key string, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: ca == nil,
	}
	parent, signer := template, any(private)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return cert, key, pair
}

// Over TLS the page trades its token, streams work, and with a CA only those connect who have a certificate; a program with one needs
// no token, and a browser still does.
func TestServe_TLS(t *testing.T) {
	dir := t.TempDir()
	o := &serveOptions{}
	var pair, client tls.Certificate
	o.cert, o.key, pair = issueCertificate(t, dir, "server", nil)
	var owner tls.Certificate
	o.ca, _, owner = issueCertificate(t, dir, "ca", nil)
	_, _, client = issueCertificate(t, dir, "client", &owner)
	_, _, stranger := issueCertificate(t, dir, "stranger", nil)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	store, err := openRuns("")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	for _, withCA := range []bool{false, true} {
		own := *o
		if !withCA {
			own.ca = ""
		}
		config, err := own.tlsConfig()
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(t.Context(), server.Options{Store: store, TLS: config})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, l) }()
		base := "https://" + l.Addr().String()
		ask := func(cert *tls.Certificate, method, path, body string, headers ...string) (*http.Response, error) {
			wire := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
			if cert != nil {
				wire.TLSClientConfig.Certificates = []tls.Certificate{*cert}
			}
			defer wire.CloseIdleConnections()
			r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			for _, h := range headers {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			resp, err := (&http.Client{Transport: wire}).Do(r)
			if err == nil && !strings.HasPrefix(path, "/v1/events") {
				_, _ = io.Copy(io.Discard, resp.Body) // the status is what matters
				_ = resp.Body.Close()
			}
			return resp, err
		}
		var cert *tls.Certificate
		if withCA {
			cert = &client
			for name, other := range map[string]*tls.Certificate{"no certificate": nil, "another CA's": &stranger} {
				if resp, err := ask(other, "GET", "/", ""); err == nil {
					t.Errorf("%s: status %d", name, resp.StatusCode)
				}
			}
		}
		resp, err := ask(cert, "POST", "/v1/session", `{"token":"`+s.Token()+`"}`, "Origin: "+base)
		if err != nil || resp.StatusCode != 200 || len(resp.Cookies()) != 1 || !resp.Cookies()[0].Secure || resp.ProtoMajor != 2 {
			t.Errorf("the trade of the page: %+v, %v", resp, err)
		}
		resp, err = ask(cert, "GET", "/v1/events", "", "Authorization: Bearer "+s.Token())
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 11)
		if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "event: runs" {
			t.Errorf("the stream begins with %q, %v", line, err)
		}
		_ = resp.Body.Close()
		without := 401
		if withCA {
			without = 200
		}
		for name, c := range map[string]struct {
			status  int
			headers []string
		}{
			"no token":        {without, nil},
			"wrong token":     {401, []string{"Authorization: Bearer x"}},
			"viewer's token":  {200, []string{"Authorization: Bearer " + s.ViewerToken()}},
			"page":            {401, []string{"Origin: " + base}},
			"browser":         {401, []string{"Sec-Fetch-Site: same-origin"}},
			"wrong cookie":    {401, []string{"Cookie: a=b"}},
			"another site":    {403, []string{"Origin: https://evil.example"}},
			"page by HTTP":    {403, []string{"Origin: http://" + l.Addr().String()}},
			"another service": {403, []string{"Sec-Fetch-Site: same-site"}},
		} {
			if resp, err := ask(cert, "GET", "/v1/runs", "", c.headers...); err != nil || resp.StatusCode != c.status {
				t.Errorf("with a CA %t, %s: %v, %v; want %d", withCA, name, resp, err, c.status)
			}
		}
		stop()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Error(err)
		}
	}
}
