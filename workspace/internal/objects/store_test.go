// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
)

func openStore(t testing.TB, opts *Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store"), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// someBytes are always the same for a seed.
func someBytes(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func fileWith(t testing.TB, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func put(t testing.TB, s *Store, content []byte) Hash {
	t.Helper()
	h, err := s.PutBytes(content)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// checkKept checks that a content can be read in both ways.
func checkKept(t testing.TB, s *Store, h Hash, want []byte) {
	t.Helper()
	r, err := s.Open(h)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Open gives %d bytes, %v, want the %d that were put", len(got), err, len(want))
	}
	dst := fileWith(t, []byte("what was there before"))
	if err := s.WriteTo(h, dst); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(dst.Name()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("WriteTo gives %d bytes, %v, want the %d that were put", len(got), err, len(want))
	}
}

func checkUsage(t testing.TB, s *Store, wantContents, wantDisk int64) {
	t.Helper()
	contents, disk := s.Usage()
	if contents != wantContents || disk != wantDisk {
		t.Errorf("contents %d, disk %d, want %d and %d", contents, disk, wantContents, wantDisk)
	}
	if onDisk := diskOf(t, s); onDisk != disk {
		t.Errorf("Usage reports %d bytes, the files have %d", disk, onDisk)
	}
}

// diskOf is how many bytes the files of a store have, without holes.
func diskOf(t testing.TB, s *Store) (n int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.root.Name(), "*"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range paths {
		if f, err := os.Open(path); err == nil {
			n += onDisk(t, f)
			f.Close()
		}
	}
	return n
}

func TestStore_ContentRoundTrip(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
	}{
		{"nothing", 0},
		{"one byte", 1},
		{"a page", 4096},
		{"the largest small one", maxSmall},
		{"the smallest large one", maxSmall + 1},
		{"several pieces", 3*maxSmall + 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, content := openStore(t, nil), someBytes(1, test.size)
			f := fileWith(t, content)
			for _, expected := range []int64{int64(test.size), 0, 10 * maxSmall} {
				h, n, err := s.Put(context.Background(), f, expected)
				if want := Hash(sha256.Sum256(content)); err != nil || h != want || n != int64(test.size) {
					t.Fatalf("Put = %v, %d, %v, want %v, %d", h, n, err, want, test.size)
				}
			}
			h, n, err := s.Sum(context.Background(), f)
			if err != nil || h != sha256.Sum256(content) || n != int64(test.size) {
				t.Errorf("Sum = %v, %d, %v", h, n, err)
			}
			if again := put(t, s, content); again != h {
				t.Errorf("PutBytes = %v, want %v", again, h)
			}
			checkKept(t, s, h, content)
			checkUsage(t, s, int64(test.size), int64(test.size))
			for range 4 {
				s.Release(h)
			}
			checkUsage(t, s, 0, 0)
		})
	}
}

func TestStore_EmptyContentNeedsNoRoom(t *testing.T) {
	s := openStore(t, &Options{MaxBytes: 1})
	h := put(t, s, nil)
	s.Retain(h)
	for range 5 {
		s.Release(h)
	}
	checkKept(t, s, h, nil)
	if entries, err := os.ReadDir(s.root.Name()); err != nil || len(entries) > 0 {
		t.Errorf("the store has %v, %v, want no files", entries, err)
	}
}

func TestRelease_LastReferenceRemovesTheContent(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "large": maxSmall + 100} {
		t.Run(name, func(t *testing.T) {
			s, content := openStore(t, nil), someBytes(2, size)
			h := put(t, s, content)
			put(t, s, content)
			s.Retain(h)
			s.Release(h)
			s.Release(h)
			checkKept(t, s, h, content)
			s.Release(h)
			if _, err := s.Open(h); !errors.Is(err, ErrNotKept) {
				t.Errorf("got %v, want ErrNotKept", err)
			}
			checkUsage(t, s, 0, 0)
		})
	}
}

func TestStore_UnknownReferencePanics(t *testing.T) {
	for name, use := range map[string]func(*Store, Hash){"Retain": (*Store).Retain, "Release": (*Store).Release} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, nil)
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, name) {
					t.Errorf("panics with %q, want the name of the method", text)
				}
			}()
			use(s, Hash{1})
		})
	}
}

func TestOpen_ReaderOutlivesTheRelease(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "large": 2*maxSmall + 100} {
		t.Run(name, func(t *testing.T) {
			s, content := openStore(t, nil), someBytes(3, size)
			h := put(t, s, content)
			r, err := s.Open(h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Seek(50, io.SeekStart); err != nil {
				t.Error(err)
			}
			s.Release(h)
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[50:]) {
				t.Errorf("read %d bytes, %v, want %d", len(got), err, size-50)
			}
			for range 2 {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			checkUsage(t, s, 0, 0)
		})
	}
}

func TestStore_ClosedReturnsAnError(t *testing.T) {
	s := openStore(t, nil)
	kept := put(t, s, []byte("x"))
	large := put(t, s, someBytes(1, maxSmall+1))
	r, err := s.Open(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, small := s.PutBytes([]byte("y"))
	_, big := s.PutBytes(someBytes(2, maxSmall+1))
	_, opening := s.Open(kept)
	for name, err := range map[string]error{
		"a small Put": small, "a large Put": big, "Open": opening,
		"WriteTo": s.WriteTo(kept, fileWith(t, nil)),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	s.Retain(kept)
	s.Release(kept)
	if n, err := io.Copy(io.Discard, r); n != maxSmall+1 || err != nil {
		t.Errorf("an open reader gives %d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(s.root.Name()); err != nil || len(entries) != 2 {
		t.Errorf("after Close the folder has %v, %v, want the pack and the file", entries, err)
	}
}

func TestOpen_FolderThatCannotBeMadeHasAdvice(t *testing.T) {
	f := fileWith(t, nil)
	if _, err := Open(filepath.Join(f.Name(), "store"), nil); err == nil || !strings.Contains(advice.Text(err), "next:") {
		t.Errorf("got %v, want what to do", err)
	}
}

func TestOpen_DamagedContentIsNotReturned(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "large": maxSmall + 1} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, nil)
			h := put(t, s, someBytes(4, size))
			files, err := filepath.Glob(filepath.Join(s.root.Name(), "*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			if err := os.WriteFile(files[0], bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.WriteTo(h, fileWith(t, nil)); !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
		})
	}
}
