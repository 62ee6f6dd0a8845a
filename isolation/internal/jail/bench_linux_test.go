// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"testing"

	"github.com/drover-agents/drover/isolation/internal/jail"
)

// What a cell adds to a launch: the difference of the two.
func BenchmarkLaunch(b *testing.B) {
	requireCells(b)
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/usr/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cell", func(b *testing.B) {
		s := jail.Spec{
			Path: "/usr/bin/true", Dir: b.TempDir(),
			Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:3128")},
		}
		s.Mounts = []jail.Mount{{Source: s.Dir, Writable: true}, {Source: b.TempDir(), Writable: true}, {Source: b.TempDir()}}
		for b.Loop() {
			cell, err := jail.Start(b.Context(), s)
			if err != nil {
				b.Fatal(err)
			}
			cell.Wait()
			for _, l := range cell.Listeners() {
				_ = l.Close()
			}
			_, _ = io.Copy(io.Discard, cell.Stdout())
			_, _ = io.Copy(io.Discard, cell.Stderr())
		}
	})
}

// A program in a cell sees one folder and can reach one address, which this program serves.
func ExampleStart() {
	cell, err := jail.Start(context.Background(), jail.Spec{
		Path: "/usr/bin/curl", Args: []string{"-s", "http://127.0.0.1:8080/"}, Dir: "/srv/work",
		Env:    []string{"PATH=/usr/bin:/bin"},
		Mounts: []jail.Mount{{Source: "/srv/work", Writable: true}},
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")},
		Limits: jail.Limits{Processes: 64},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		_ = http.Serve(cell.Listeners()[0], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // an example
			_, _ = io.WriteString(w, "hello")
		}))
	}()
	_, _ = io.Copy(io.Discard, cell.Stdout())
	fmt.Println(cell.Wait())
}
