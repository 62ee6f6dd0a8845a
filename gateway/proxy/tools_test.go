// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A toolRun is a real program that reaches the pretended world through the proxy.
type toolRun struct {
	t    *testing.T
	dir  string
	ca   string // a file with the certificate of the server
	tls  *httptest.Server
	http *httptest.Server
	*world
}

// newToolRun serves files over HTTP and HTTPS as example.com, on the usual ports.
func newToolRun(t *testing.T, files http.Handler) *toolRun {
	r := &toolRun{t: t, dir: t.TempDir(), tls: httptest.NewTLSServer(files), http: httptest.NewServer(files)}
	t.Cleanup(r.tls.Close)
	t.Cleanup(r.http.Close)
	r.ca = filepath.Join(r.dir, "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: r.tls.Certificate().Raw}
	if err := os.WriteFile(r.ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	r.world = newWorld(t, Policy{Domains: []string{"example.com"}, Ports: []int{80, 443}}, nil, func(o *Options) {
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := r.http
			if strings.HasSuffix(addr, ":443") {
				to = r.tls
			}
			return new(net.Dialer).DialContext(ctx, network, to.Listener.Addr().String())
		}
	})
	return r
}

// run starts a tool with an environment that has the proxy and little else.
func (r *toolRun) run(name string, args ...string) (string, error) {
	r.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		r.t.Skipf("%s is not installed", name)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = r.dir
	proxy := "http://" + r.addr
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"http_proxy=" + proxy, "https_proxy=" + proxy, "HTTPS_PROXY=" + proxy,
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustPrint runs a tool that has to succeed, and whose output has to contain want.
func (r *toolRun) mustPrint(want, name string, args ...string) {
	r.t.Helper()
	if out, err := r.run(name, args...); err != nil || !strings.Contains(out, want) {
		r.t.Errorf("%s %s: %v\n%s\nwant %q", name, strings.Join(args, " "), err, out, want)
	}
}

// mustFail runs a tool that has to fail.
func (r *toolRun) mustFail(name string, args ...string) {
	r.t.Helper()
	if out, err := r.run(name, args...); err == nil {
		r.t.Errorf("%s %s: got through\n%s", name, strings.Join(args, " "), out)
	}
}

func TestProxy_WorksWithRealTools(t *testing.T) {
	if testing.Short() {
		t.Skip("starts programs")
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write([]byte("page of " + r.Host))
	})
	checkReported := func(t *testing.T, r *toolRun, protocol Protocol, verdict Verdict) {
		t.Helper()
		if got := r.next(); got.Protocol != protocol || got.Verdict != verdict {
			t.Errorf("reported %+v, want %s %s", got, protocol, verdict)
		}
	}
	t.Run("curl", func(t *testing.T) {
		r := newToolRun(t, page)
		curl := []string{"-sS", "--fail", "--cacert", r.ca, "--max-time", "20"}
		r.mustPrint("page of example.com", "curl", append(curl, "http://example.com/")...)
		checkReported(t, r, ProtocolHTTP, Allowed)
		r.mustPrint("page of example.com", "curl", append(curl, "https://example.com/")...)
		checkReported(t, r, ProtocolConnect, Allowed)
		r.mustPrint("page of example.com", "curl", append(curl, "--proxy", "socks5h://"+r.addr, "https://example.com/")...)
		checkReported(t, r, ProtocolSOCKS5, Allowed)
		r.mustPrint("page of example.com", "curl", append(curl, "--proxy", "socks4a://"+r.addr, "https://example.com/")...)
		checkReported(t, r, ProtocolSOCKS4, Allowed)
		r.mustPrint("NetworkPolicy.AllowedDomains", "curl", "-sS", "http://other.example/")
		checkReported(t, r, ProtocolHTTP, Denied)
		r.mustFail("curl", append(curl, "https://other.example/")...)
		checkReported(t, r, ProtocolConnect, Denied)
		r.mustFail("curl", append(curl, "--proxy", "socks5h://"+r.addr, "https://other.example/")...)
		checkReported(t, r, ProtocolSOCKS5, Denied)
		r.mustFail("curl", append(curl, "https://example.com:8443/")...)
		checkReported(t, r, ProtocolConnect, Denied)
		r.quiet()
	})
	t.Run("wget", func(t *testing.T) {
		r := newToolRun(t, page)
		wget := []string{"-nv", "-O", "-", "--tries=1", "--timeout=20", "--ca-certificate", r.ca}
		r.mustPrint("page of example.com", "wget", append(wget, "http://example.com/")...)
		checkReported(t, r, ProtocolHTTP, Allowed)
		r.mustPrint("page of example.com", "wget", append(wget, "https://example.com/")...)
		checkReported(t, r, ProtocolConnect, Allowed)
		r.mustFail("wget", append(wget, "https://other.example/")...)
		checkReported(t, r, ProtocolConnect, Denied)
		r.quiet()
	})
	t.Run("git", func(t *testing.T) {
		root := t.TempDir()
		r := newToolRun(t, http.FileServer(http.Dir(root)))
		makeRepository(t, r, root)
		r.mustPrint("", "git", "-c", "http.sslCAInfo="+r.ca, "clone", "-q", "https://example.com/repo.git", "copy")
		if text, err := os.ReadFile(filepath.Join(r.dir, "copy", "file.txt")); err != nil || string(text) != "content\n" {
			t.Errorf("got %q, %v", text, err)
		}
		checkReported(t, r, ProtocolConnect, Allowed)
		r.mustFail("git", "clone", "-q", "https://other.example/repo.git", "second")
		checkReported(t, r, ProtocolConnect, Denied)
		r.proxy.Close()
	})
}

// makeRepository makes root/repo.git, which can be cloned from a server of plain files.
func makeRepository(t *testing.T, r *toolRun, root string) {
	t.Helper()
	work := filepath.Join(r.dir, "work")
	bare := filepath.Join(root, "repo.git")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "file.txt"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q", work},
		{"-C", work, "add", "."},
		{"-C", work, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first"},
		{"clone", "-q", "--bare", work, bare},
		{"-C", bare, "update-server-info"},
	} {
		r.mustPrint("", "git", args...)
	}
}
