// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/drover-agents/drover/fleet"
)

// A server with TLS and a password gets a connection by the certificate that Options.TLS trusts, and no other.
func TestOpen_TLSAndPassword(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
		TLSConfig: &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}, Username: "worker", Password: "secret",
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	defer ns.WaitForShutdown()
	defer ns.Shutdown()
	if !ns.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	roots := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	host := ns.Addr().String()
	for _, c := range []struct {
		name, url string
		tls       *tls.Config
		ok        bool
	}{
		{"trusted, with the password", "tls://worker:secret@" + host, roots, true},
		{"trusted, without a password", "tls://" + host, roots, false},
		{"not trusted", "tls://worker:secret@" + host, nil, false},
	} {
		f, err := fleet.Open(t.Context(), &fleet.Options{URLs: []string{c.url}, TLS: c.tls, Replicas: 1})
		if (err == nil) != c.ok {
			t.Errorf("Open %s = %v, want success %v", c.name, err, c.ok)
		}
		if err == nil {
			begun(t, f, "run", 1)
			f.Close()
		}
	}
	// A client that names no number of copies leaves the fleet as it is: this server could not keep three.
	f, err := fleet.Open(t.Context(), &fleet.Options{URLs: []string{"tls://worker:secret@" + host}, TLS: roots})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
