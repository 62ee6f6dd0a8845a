// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
)

func checkFull(t *testing.T, err error, want FullError) {
	t.Helper()
	full, ok := errors.AsType[*FullError](err)
	if !ok || *full != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func TestFullError_NamesSizeAndLimit(t *testing.T) {
	s := openStore(t, &Options{MaxBytes: 100})
	kept := put(t, s, someBytes(1, 60))
	_, err := s.PutBytes(someBytes(2, 41))
	checkFull(t, err, FullError{Size: 41, Used: 60, Limit: 100})
	for _, want := range []string{"41 bytes", "60 of 100", "next:"} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("%q does not have %q", err, want)
		}
	}
	_, err = s.PutBytes(someBytes(3, 2*maxSmall))
	checkFull(t, err, FullError{Size: 2 * maxSmall, Used: 60, Limit: 100})
	put(t, s, someBytes(2, 40)) // what fits exactly
	checkUsage(t, s, 100, 100)
	checkKept(t, s, kept, someBytes(1, 60))
}

func TestPut_ExistingContentFitsIntoAFullStore(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "large": maxSmall + 1} {
		t.Run(name, func(t *testing.T) {
			s, content := openStore(t, &Options{MaxBytes: int64(size)}), someBytes(1, size)
			put(t, s, content)
			put(t, s, content)
			if h, n, err := s.Put(context.Background(), fileWith(t, content), int64(size)); err != nil || n != int64(size) {
				t.Errorf("Put = %v, %d, %v", h, n, err)
			}
			_, err := s.PutBytes(someBytes(2, size))
			checkFull(t, err, FullError{Size: int64(size), Used: int64(size), Limit: int64(size)})
			checkUsage(t, s, int64(size), int64(size))
		})
	}
}

func TestPut_ConcurrentEqualContentsNeedRoomOnce(t *testing.T) {
	for name, size := range map[string]int{"small": 50_000, "large": maxSmall + 1} {
		t.Run(name, func(t *testing.T) {
			s, content := openStore(t, &Options{MaxBytes: int64(size)}), someBytes(1, size)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if _, _, err := s.Put(context.Background(), fileWith(t, content), int64(size)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			checkUsage(t, s, int64(size), int64(size))
			for range 8 {
				s.Release(put(t, s, content))
			}
			checkUsage(t, s, int64(size), int64(size))
		})
	}
}

func TestPut_ReclaimsReleasedContents(t *testing.T) {
	s := openStore(t, &Options{MaxBytes: 300})
	var hashes []Hash
	for seed := range uint64(3) {
		hashes = append(hashes, put(t, s, someBytes(seed, 100)))
	}
	s.Release(hashes[1])
	checkUsage(t, s, 200, 300) // too little for rewriting
	put(t, s, someBytes(7, 100))
	checkUsage(t, s, 300, 300)
	for _, seed := range []uint64{0, 2, 7} {
		checkKept(t, s, put(t, s, someBytes(seed, 100)), someBytes(seed, 100))
	}
	s.Release(hashes[0])
	s.Release(hashes[0])
	_, err := s.PutBytes(someBytes(8, 101))
	checkFull(t, err, FullError{Size: 101, Used: 300, Limit: 300})
}

func TestPut_ReclaimsReleasedContentsForALargeOne(t *testing.T) {
	s := openStore(t, &Options{MaxBytes: 2 * maxSmall})
	small := someBytes(1, 100)
	put(t, s, small)
	s.Release(put(t, s, someBytes(2, maxSmall-101)))
	large := someBytes(3, 2*maxSmall-100)
	checkKept(t, s, put(t, s, large), large)
	checkKept(t, s, put(t, s, small), small)
	checkUsage(t, s, 2*maxSmall, 2*maxSmall)
}

func TestRewrite_PackWithHalfOfItsContentsReleased(t *testing.T) {
	const size, count = 100_000, 60
	s := openStore(t, nil)
	for seed := range uint64(count) {
		put(t, s, someBytes(seed, size))
	}
	for seed := range uint64(count) {
		if seed%4 != 0 {
			h := put(t, s, someBytes(seed, size))
			s.Release(h)
			s.Release(h)
		}
	}
	contents, disk := s.Usage()
	if want := int64(size * count / 4); contents != want || disk > 2*want+maxSmall {
		t.Errorf("contents %d, disk %d, want %d and hardly more than twice that", contents, disk, want)
	}
	checkUsage(t, s, contents, disk)
	for seed := uint64(0); seed < count; seed += 4 {
		checkKept(t, s, put(t, s, someBytes(seed, size)), someBytes(seed, size))
	}
}

func TestRewrite_WaitsForReaders(t *testing.T) {
	const size, count = 600_000, 8
	s := openStore(t, nil)
	for seed := range uint64(count) {
		put(t, s, someBytes(seed, size))
	}
	last := hashOf(count-1, size)
	reading, err := s.find(last)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		for seed := range uint64(count / 2) {
			s.Release(hashOf(seed, size))
		}
	}()
	select {
	case <-released:
		t.Error("the pack was rewritten under a reader")
	case <-time.After(50 * time.Millisecond):
	}
	if err := reading.read(last, make([]byte, size)); err != nil {
		t.Error(err)
	}
	<-released
	checkUsage(t, s, size*count/2, size*count/2)
	checkKept(t, s, last, someBytes(count-1, size))
}

func TestPut_FullPackIsFollowedByAnother(t *testing.T) {
	s := openStore(t, nil)
	s.packSize = 4 * maxSmall
	const count = 4 + 3
	for seed := range uint64(count) {
		put(t, s, someBytes(seed, maxSmall))
	}
	if len(s.packs) != 2 {
		t.Errorf("%d packs, want 2", len(s.packs))
	}
	for p := range s.packs {
		if p.end > s.packSize {
			t.Errorf("a pack of %d bytes", p.end)
		}
	}
	for seed := range uint64(count) {
		h := put(t, s, someBytes(seed, maxSmall))
		s.Release(h)
		s.Release(h)
	}
	checkUsage(t, s, 0, 0)
}

// fullDisk fails like a disk that has room for so many bytes.
func fullDisk(room int64) func(*os.File, []byte, int64) (int, error) {
	return func(f *os.File, b []byte, offset int64) (int, error) {
		fits := min(room, int64(len(b)))
		room -= fits
		n, err := f.WriteAt(b[:fits], offset)
		if err == nil && n < len(b) {
			err = &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return n, err
	}
}

func TestPut_FullDiskLeavesNoPartialContent(t *testing.T) {
	for name, size := range map[string]int{"small": 200, "large": 2 * maxSmall} {
		t.Run(name, func(t *testing.T) {
			s, before := openStore(t, nil), someBytes(1, 300)
			h := put(t, s, before)
			s.sys.writeAt = fullDisk(int64(size) - 100)
			if _, err := s.PutBytes(someBytes(2, size)); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(advice.Text(err), "next:") {
				t.Errorf("got %v, want a full disk and what to do", err)
			}
			checkUsage(t, s, 300, 300)
			s.sys.writeAt = (*os.File).WriteAt
			after := put(t, s, someBytes(2, size))
			checkKept(t, s, h, before)
			checkKept(t, s, after, someBytes(2, size))
			checkUsage(t, s, int64(300+size), int64(300+size))
		})
	}
}

func TestRewrite_FullDiskLosesNothing(t *testing.T) {
	const size = 300_000
	s := openStore(t, nil)
	for seed := range uint64(12) {
		put(t, s, someBytes(seed, size))
	}
	s.sys.writeAt = fullDisk(size + 100)
	for seed := range uint64(12) {
		if seed%3 != 0 {
			s.Release(hashOf(seed, size))
		}
	}
	s.sys.writeAt = (*os.File).WriteAt
	for seed := uint64(0); seed < 12; seed += 3 {
		checkKept(t, s, hashOf(seed, size), someBytes(seed, size))
	}
	contents, disk := s.Usage()
	checkUsage(t, s, 4*size, disk)
	if disk == contents {
		t.Error("the pack was rewritten, and should not have been")
	}
	for seed := uint64(0); seed < 12; seed += 3 {
		s.Release(hashOf(seed, size))
	}
	checkUsage(t, s, 0, 0)
}

// late is a content whose reader, or size, is asked for while others are at work.
type late struct {
	*bytes.Reader
	asked func()
}

func (l late) ReadAt(b []byte, offset int64) (int, error) {
	n, err := l.Reader.ReadAt(b, offset)
	l.asked()
	return n, err
}

func (l late) Size() int64 {
	l.asked()
	return l.Reader.Size()
}

// The first one writes only when the second one has read the same, or has found no room for it.
func TestPut_SecondOfTwoEqualContentsWaitsForTheFirst(t *testing.T) {
	for _, test := range []struct {
		name      string
		size, max int
	}{
		{"small", 5000, 0},
		{"small, with room for one", 5000, 5000},
		{"large", maxSmall + 1, 0},
		{"large, with room for one", maxSmall + 1, maxSmall + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			size := test.size
			s, content := openStore(t, &Options{MaxBytes: int64(test.max)}), someBytes(1, size)
			writing, asked := make(chan struct{}), make(chan struct{})
			var writes atomic.Int32
			s.sys.writeAt = func(f *os.File, b []byte, offset int64) (int, error) {
				if writes.Add(1) == 1 {
					close(writing)
					<-asked
					runtime.Gosched()
					time.Sleep(time.Millisecond) // until the second one has come to where it waits
				}
				return f.WriteAt(b, offset)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := s.PutBytes(content); err != nil {
					t.Error(err)
				}
			})
			<-writing
			wg.Go(func() {
				src := late{bytes.NewReader(content), sync.OnceFunc(func() { close(asked) })}
				if _, _, err := s.putFrom(context.Background(), src, int64(size)); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			checkUsage(t, s, int64(size), int64(size))
			s.Release(hashOf(1, size))
			checkKept(t, s, hashOf(1, size), content)
		})
	}
}
