// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// peerFolder makes this test program another user's. It asks the socket of a run to stop it, or is in the place of one.
const peerFolder = "DROVER_TEST_PEER_FOLDER"

func init() { children[peerFolder] = peer }

func peer(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if key, err := os.ReadFile("control.key"); err == nil {
		client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", "control.sock")
		}}}
		r, err := http.NewRequest("POST", "http://run/stop", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+string(key))
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		fmt.Printf("%d %s\n", resp.StatusCode, text)
		return errors.Join(err, resp.Body.Close())
	}
	l, err := net.Listen("unix", "control.sock")
	if err != nil {
		return err
	}
	fmt.Println("listening")
	_ = http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println("received", r.Header.Get("Authorization")) })) // until it is killed
	return nil
}

// asNobody starts this test program as an ordinary user, in a folder.
func asNobody(t *testing.T, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	shared := testkit.SharedFolder(t)
	cmd := exec.Command(testkit.PutProgram(t, os.Args[0], shared), "-test.run=^$")
	cmd.Env = []string{peerFolder + "=" + dir, "TMPDIR=" + shared}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testkit.Nobody, Gid: testkit.Nobody}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its state is that of a killed process
	})
	return cmd, bufio.NewReader(out)
}

// A run whose socket and key were opened to all is not controlled by another user, who has the key. A socket that another user serves
// receives no key, though it has the owner and the mode of one of ours.
func TestSocket_PeerOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program of another user")
	}
	base := testkit.SharedFolder(t)
	store, err := record.Open(filepath.Join(base, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	run, err := store.Find(r.id)
	if err != nil {
		t.Fatal(err)
	}
	key, socket := filepath.Join(run.Path, "control.key"), filepath.Join(run.Path, "control.sock")
	for path, mode := range map[string]os.FileMode{store.Dir(): 0o755, filepath.Dir(run.Path): 0o755, run.Path: 0o777, key: 0o644, socket: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	_, out := asNobody(t, run.Path)
	if line, err := out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "403 ") || !strings.Contains(line, "belongs to another user: uid 65534") {
		t.Errorf("another user with the key is answered %q, %v", line, err)
	}
	if err := errors.Join(os.Remove(socket), os.Chmod(key, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, out = asNobody(t, run.Path)
	if line, err := out.ReadString('\n'); err != nil || line != "listening\n" {
		t.Fatalf("another user says %q, %v", line, err)
	}
	if err := errors.Join(os.Chown(socket, 0, 0), os.Chmod(socket, 0o600)); err != nil {
		t.Fatal(err)
	}
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/stop", ""); resp.StatusCode != 502 || !strings.Contains(text, "belongs to another user: uid 65534") {
		t.Errorf("a socket that another user serves: %d %s", resp.StatusCode, text)
	}
	if s.run(r.id).Controllable {
		t.Error("the run counts as controllable")
	}
}
