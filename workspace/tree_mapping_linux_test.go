// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Writes through a mapping leave no trace in the times of a file, beyond the first.
func TestCheckpoint_SeesWritesThroughAMapping(t *testing.T) {
	// "keep" takes a checkpoint, which must have what is in the file, "back" goes to the first one.
	tests := []struct{ name, orders string }{
		{"mapped before the first checkpoint", "map,write 1,keep,write 2,keep,write 3,keep,back"},
		{"mapped and not yet written", "map,keep,write 1,keep,write 2,keep,back"},
		{"mapped after a checkpoint", "keep,map,write 1,keep,write 2,keep,back"},
		{"mapped long before it is written", "keep,map,keep,keep,write 1,keep,write 2,keep,back"},
		{"mapped, written and unmapped between", "keep,map,write 1,unmap,keep,map,write 2,end,keep,back"},
		{"unmapped between", "map,write 1,keep,write 2,unmap,keep,keep,back"},
		{"the process ends", "keep,map,write 1,keep,write 2,end,keep,keep,back"},
		{"the process ends and another comes", "map,write 1,keep,write 2,end,again,map,write 3,keep,write 4,keep,back"},
		{"rolled back while it is mapped", "map,write 1,keep,write 2,back,write 3,keep,back"},
		{"written just before rolling back", "map,write 1,keep,keep,write 2,back,keep,back"},
	}
	type where struct {
		name, place string
		ask         int
	}
	for _, w := range []where{{"on disk", "", askAtOnce}, {"on disk, by stamps alone", "", 0}, {"in memory", "/dev/shm", askAtOnce}} {
		place, ask := w.place, w.ask
		for _, test := range tests {
			name := test.name + " " + w.name
			t.Run(name, func(t *testing.T) {
				t.Parallel() // they wait a lot
				bothWays(t, func(t *testing.T, opts *TreeOptions) {
					dir, err := os.MkdirTemp(place, "drover-mapping-")
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = os.RemoveAll(dir) })
					m := &mapped{t: t, file: filepath.Join(dir, "file"), now: "01234567"}
					if err := os.WriteFile(m.file, []byte(m.now), 0o644); err != nil {
						t.Fatal(err)
					}
					m.tree = openTree(t, dir, opts)
					m.tree.askAtOnce = ask
					m.run(test.orders)
				})
			})
		}
	}
}

// mapped is a file that a child has mapped, in a tree.
type mapped struct {
	t      *testing.T
	tree   *Tree
	file   string
	writer *child
	first  *Checkpoint
	// now is what the file must have, and want what it had at the first checkpoint. The test does
	// not read the file to find out: that would be a reason to look at it.
	now, want string
	parted    bool // the mapping is of the file that is kept aside
}

func (m *mapped) run(orders string) {
	m.t.Helper()
	m.writer = startChild(m.t, "map", m.file)
	for order := range strings.SplitSeq(orders, ",") {
		switch order {
		case "keep":
			m.keep()
		case "back":
			m.back(orders)
		case "end":
			m.writer.kill()
		case "again":
			m.writer, m.parted = startChild(m.t, "map", m.file), false
		default:
			m.writer.send(order)
			if text, ok := strings.CutPrefix(order, "write "); ok && !m.parted {
				m.now = text + m.now[len(text):]
			}
		}
	}
}

func (m *mapped) back(orders string) {
	m.t.Helper()
	rollback(m.t, m.tree, m.first, nil)
	m.parted = m.parted || m.now != m.want
	if m.now = m.content(); m.now != m.want {
		m.t.Fatalf("%s: after the rollback the file has %q, want %q", orders, m.now, m.want)
	}
}

func (m *mapped) content() string {
	m.t.Helper()
	text, err := os.ReadFile(m.file)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

func (m *mapped) keep() {
	m.t.Helper()
	// Let the clock of the file system go on: otherwise the file is read again for that reason alone.
	time.Sleep(25 * time.Millisecond)
	c := checkpoint(m.t, m.tree)
	if m.first == nil {
		m.first, m.want = c, m.now
	}
	files, err := c.Files()
	if err != nil {
		m.t.Fatal(err)
	}
	if got, want := files[0].Hash, fmt.Sprintf("%x", sha256.Sum256([]byte(m.now))); got != want {
		m.t.Fatalf("the checkpoint has another content than %s; the file has %s", m.now, m.content())
	}
}
