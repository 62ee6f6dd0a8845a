// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func hashOf(seed uint64, size int) Hash { return sha256.Sum256(someBytes(seed, size)) }

// pieces writes data into an empty file at offsets, and makes it end somewhere.
func pieces(t *testing.T, size int64, at ...int64) *os.File {
	t.Helper()
	f := fileWith(t, nil)
	for n, offset := range at {
		if _, err := f.WriteAt(someBytes(uint64(n), 64<<10), offset); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

// onDisk is how many bytes a file has, without holes.
func onDisk(t testing.TB, f *os.File) int64 {
	t.Helper()
	_, data := extent(f)
	return data
}

func TestPut_KeepsHoles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("holes are known on Linux only")
	}
	const mb = 1 << 20
	for _, test := range []struct {
		name string
		size int64
		at   []int64
	}{
		{"only a hole", 10 * mb, nil},
		{"a hole first", 8*mb + 64<<10, []int64{8 * mb}},
		{"a hole last", 8 * mb, []int64{0}},
		{"holes between", 8 * mb, []int64{mb, 3 * mb, 6 * mb}},
		{"an odd end", 4*mb + 1, []int64{mb}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, f := openStore(t, nil), pieces(t, test.size, test.at...)
			h, n, err := s.Put(context.Background(), f, test.size)
			if err != nil || n != test.size {
				t.Fatalf("Put = %d, %v, want %d", n, err, test.size)
			}
			content, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			if h != sha256.Sum256(content) {
				t.Error("the hash is not that of the content")
			}
			checkKept(t, s, h, content)
			checkUsage(t, s, test.size, int64(len(test.at))<<16)
			dst := fileWith(t, bytes.Repeat([]byte("x"), 3*mb))
			if err := s.WriteTo(h, dst); err != nil {
				t.Fatal(err)
			}
			if got, want := onDisk(t, dst), int64(len(test.at))<<16; got != want {
				t.Errorf("%d bytes on disk, want %d: the holes of the content", got, want)
			}
		})
	}
}

func TestPut_HolesNeedNoRoom(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("holes are known on Linux only")
	}
	s := openStore(t, &Options{MaxBytes: 64 << 10})
	if _, _, err := s.Put(context.Background(), pieces(t, 8<<20, 1<<20), 8<<20); err != nil {
		t.Error(err)
	}
}

// growing is a file that another process changes while it is read.
type growing struct {
	*bytes.Reader
	after  int // reads
	change func(io.ReaderAt) io.ReaderAt
}

func (g *growing) ReadAt(b []byte, offset int64) (int, error) {
	if g.after--; g.after == 0 {
		content, _ := io.ReadAll(io.NewSectionReader(g.Reader, 0, 1<<40))
		g.Reader = g.change(bytes.NewReader(content)).(*bytes.Reader)
	}
	return g.Reader.ReadAt(b, offset)
}

func TestPut_ChangingFileIsStoredAsRead(t *testing.T) {
	const was = 3 * maxSmall
	before := someBytes(1, was)
	for _, test := range []struct {
		name  string
		after int // reads of one MiB
		size  int // then
	}{
		{"it grows", 2, was + 5},
		{"it grows by more than was read", 1, 3 * was},
		{"it shrinks to what was read", 2, maxSmall},
		{"it shrinks below what was read", 3, 10},
		{"it shrinks in the middle of a piece", 3, was - 100},
		{"it loses all", 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openStore(t, nil)
			src := &growing{bytes.NewReader(before), test.after, func(io.ReaderAt) io.ReaderAt {
				return bytes.NewReader(append(before[:was:was], someBytes(2, 3*was)...)[:test.size])
			}}
			h, n, err := s.putFrom(context.Background(), src, was)
			if err != nil {
				t.Fatal(err)
			}
			want := append(before[:was:was], someBytes(2, 3*was)...)[:max(test.size, maxSmall*(test.after-1))]
			if n != int64(len(want)) || h != sha256.Sum256(want) {
				t.Errorf("%d bytes, want the %d that were read", n, len(want))
			}
			checkKept(t, s, h, want)
			checkUsage(t, s, n, n)
		})
	}
}

// A real file, of which the system reports where its data is.
func TestPut_FileTruncatedDuringTheRead(t *testing.T) {
	s := openStore(t, nil)
	f := fileWith(t, someBytes(1, 3*maxSmall))
	s.sys.writeAt = func(dst *os.File, b []byte, offset int64) (int, error) {
		if err := f.Truncate(maxSmall + maxSmall/2); err != nil {
			t.Error(err)
		}
		return dst.WriteAt(b, offset)
	}
	h, n, err := s.Put(context.Background(), f, 3*maxSmall)
	want := someBytes(1, 3*maxSmall)[:maxSmall+maxSmall/2]
	if err != nil || n != int64(len(want)) || h != sha256.Sum256(want) {
		t.Fatalf("Put = %d, %v, want %d", n, err, len(want))
	}
	checkKept(t, s, h, want)
}

// copyAll simulates a file system that can share blocks.
func copyAll(dst, src *os.File) error {
	_, err := io.Copy(io.NewOffsetWriter(dst, 0), io.NewSectionReader(src, 0, 1<<40))
	return err
}

func TestPut_HashesTheClonedBlocks(t *testing.T) {
	s, content := openStore(t, nil), someBytes(1, 2*maxSmall)
	shared := 0
	var f *os.File
	s.sys.clone = func(dst, src *os.File) error {
		shared++
		err := copyAll(dst, src)
		if src == f {
			_, _ = f.WriteAt([]byte("changed by another writer"), 100)
		}
		return err
	}
	s.sys.writeAt = func(*os.File, []byte, int64) (int, error) { return 0, errors.New("written by hand") }
	f = fileWith(t, content)
	h, n, err := s.Put(context.Background(), f, 2*maxSmall)
	if err != nil || h != sha256.Sum256(content) || n != 2*maxSmall {
		t.Fatalf("Put = %d, %v, want the content at the moment of sharing", n, err)
	}
	checkKept(t, s, h, content)
	if shared != 2 {
		t.Errorf("blocks were shared %d times, want for Put and WriteTo", shared)
	}
	checkUsage(t, s, 2*maxSmall, 2*maxSmall)
}

func TestWriteTo_WorksWithoutCopyFileRange(t *testing.T) {
	s, content := openStore(t, nil), someBytes(1, 3*maxSmall)
	h := put(t, s, content)
	s.sys.copyRange = func(dst, src *os.File, start, end int64) (int64, error) {
		n, err := io.CopyN(io.NewOffsetWriter(dst, start), io.NewSectionReader(src, start, end-start), 1000)
		return n, errors.Join(err, errors.ErrUnsupported)
	}
	checkKept(t, s, h, content)
}

// A file with nothing but a hole costs its owner nothing, and to hash a large one takes long.
func TestPut_CancelledContextEndsAHugeHole(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8 << 40); err != nil {
		t.Skipf("no file system for such files: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Put(ctx, f, 8<<40); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put ended with %v, want the end of the context", err)
	}
	if _, _, err := s.Sum(ctx, f); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sum ended with %v, want the end of the context", err)
	}
	if contents, disk := s.Usage(); contents != 0 || disk != 0 {
		t.Errorf("it keeps %d bytes of contents and %d on the disk", contents, disk)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "store")); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
