// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

func item(n, size int) Item {
	data := bytes.Repeat([]byte{byte(n)}, size)
	return Item{Data: data, Tag: uint64(n)}
}

func checkItem(t interface{ Fatalf(string, ...any) }, got, want Item) {
	if got.Tag != want.Tag || !bytes.Equal(got.Data, want.Data) {
		t.Fatalf("got item %d of %d bytes, want %d of %d", got.Tag, len(got.Data), want.Tag, len(want.Data))
	}
}

func TestQueue_KeepsOrderThroughTheDisk(t *testing.T) {
	q := New(Options{Memory: 1000, Dir: t.TempDir(), SegmentSize: 500})
	sizes := []int{0, 1, 400, 700, 2000, writeBuffer, 3 * writeBuffer, 5}
	for n := range 100 {
		if err := q.Push(item(n, sizes[n%len(sizes)])); err != nil {
			t.Fatal(err)
		}
	}
	if q.Spilled() == 0 || q.Len() != 100 {
		t.Fatalf("spilled %d, length %d; want some, 100", q.Spilled(), q.Len())
	}
	if q.Bytes() > 1000 {
		t.Errorf("%d bytes in memory, want at most 1000", q.Bytes())
	}
	q.Close(nil)
	for n := range 100 {
		got, err := q.Pop(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkItem(t, got, item(n, sizes[n%len(sizes)]))
	}
	if _, err := q.Pop(t.Context()); err != io.EOF {
		t.Errorf("after the last item: %v, want EOF", err)
	}
	if q.Len() != 0 || q.Bytes() != 0 {
		t.Errorf("empty queue has length %d, %d bytes", q.Len(), q.Bytes())
	}
}

// TestQueue_AgreesWithASlice checks any sequence of operations against a slice.
func TestQueue_AgreesWithASlice(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(100, 5000).Draw(t, "memory")
		q := New(Options{Memory: limit, Dir: dir, SegmentSize: int64(rapid.IntRange(1, 3000).Draw(t, "segment"))})
		defer q.Discard()
		var model []Item
		n, largest := 0, 0
		pop := func(t *rapid.T) {
			if len(model) == 0 {
				t.Skip()
			}
			got, err := q.Pop(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			checkItem(t, got, model[0])
			model = model[1:]
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				it := item(n, rapid.IntRange(0, 800).Draw(t, "size"))
				n++
				largest = max(largest, int(it.cost()))
				if err := q.Push(it); err != nil {
					t.Fatal(err)
				}
				model = append(model, it)
			},
			"pop": pop,
			"popBatch": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				dst := make([]Item, rapid.IntRange(1, 9).Draw(t, "batch"))
				got, err := q.PopBatch(context.Background(), dst)
				if err != nil || got == 0 {
					t.Fatalf("PopBatch = %d, %v", got, err)
				}
				for i := range got {
					checkItem(t, dst[i], model[i])
				}
				model = model[got:]
			},
			"": func(t *rapid.T) {
				if q.Len() != len(model) {
					t.Fatalf("length %d, want %d", q.Len(), len(model))
				}
				if q.Bytes() > limit+largest {
					t.Fatalf("%d bytes in memory with a limit of %d", q.Bytes(), limit)
				}
			},
		})
		for len(model) > 0 {
			pop(t)
		}
	})
}

func TestQueue_PopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{})
		got := make(chan Item)
		go func() {
			it, _ := q.Pop(t.Context())
			got <- it
		}()
		synctest.Wait()
		_ = q.Push(item(7, 3))
		checkItem(t, <-got, item(7, 3))
	})
}

func TestQueue_PopObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{})
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := q.Pop(ctx)
			done <- err
		}()
		synctest.Wait()
		cancel(cause)
		if err := <-done; err != cause {
			t.Errorf("got %v, want the cause", err)
		}
		_ = q.Push(item(1, 1))
		if it, err := q.Pop(t.Context()); err != nil || it.Tag != 1 {
			t.Errorf("after a cancelled Pop: %v, %v; want item 1", it, err)
		}
	})
}

func TestQueue_CloseWakesAndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("reader broke")
		q := New(Options{})
		done := make(chan error)
		go func() {
			_, err := q.Pop(t.Context())
			done <- err
		}()
		synctest.Wait()
		q.Close(broken)
		q.Close(errors.New("second"))
		if err := <-done; err != broken {
			t.Errorf("waiting Pop: %v, want %v", err, broken)
		}
		if err := q.Push(item(1, 1)); !errors.Is(err, ErrClosed) {
			t.Errorf("Push after Close: %v, want ErrClosed", err)
		}
	})
}

func TestQueue_DiskErrorComesAfterEarlierItems(t *testing.T) {
	q := New(Options{Memory: 200, Dir: filepath.Join(t.TempDir(), "missing")})
	if err := q.Push(item(1, 100)); err != nil {
		t.Fatal(err)
	}
	if err := q.Push(item(2, 100)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("Push without a directory: %v, want ErrNotExist", err)
	}
	if err := q.Push(item(3, 1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("next Push: %v, want the same error, for the order is broken", err)
	}
	got, err := q.Pop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkItem(t, got, item(1, 100))
	if _, err := q.Pop(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Pop in the place of the lost item: %v, want ErrNotExist", err)
	}
}

func TestQueue_ReportsAReadError(t *testing.T) {
	q := New(Options{Memory: 100, Dir: t.TempDir()})
	for n := range 5 {
		_ = q.Push(item(n, 90))
	}
	_ = q.disk.segments[0].file.Close()
	if _, err := q.Pop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := q.Pop(t.Context()); !errors.Is(err, os.ErrClosed) {
			t.Errorf("got %v, want the error of the file", err)
		}
	}
	if q.Len() != 0 {
		t.Errorf("length %d after a read error, want 0", q.Len())
	}
}

func TestQueue_LeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	q := New(Options{Memory: 100, Dir: dir, SegmentSize: 100})
	for n := range 20 {
		_ = q.Push(item(n, 90))
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 && os.PathSeparator == '/' {
		t.Errorf("files with names while in use: %v", names)
	}
	q.Discard()
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("files left: %v", names)
	}
	if _, err := q.Pop(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Pop after Discard: %v, want ErrClosed", err)
	}
}

func TestQueue_ReleasesSegments(t *testing.T) {
	q := New(Options{Memory: 4 * writeBuffer, Dir: t.TempDir(), SegmentSize: writeBuffer})
	defer q.Discard()
	for n := range 50 { // a consumer that stays behind for ever
		_ = q.Push(item(n, writeBuffer))
		_ = q.Push(item(n, writeBuffer))
		_, _ = q.Pop(t.Context())
	}
	for q.Len() > 8 {
		_, _ = q.Pop(t.Context())
	}
	if got := len(q.disk.segments); got > 9 {
		t.Errorf("%d segments for at most 8 items of one segment each", got)
	}
}

func TestQueue_Concurrent(t *testing.T) {
	q := New(Options{Memory: 2000, Dir: t.TempDir(), SegmentSize: 4096})
	const n = 20000
	go func() {
		for i := range n {
			_ = q.Push(Item{Data: binary.LittleEndian.AppendUint32(nil, uint32(i)), Tag: uint64(i)})
		}
		q.Close(nil)
	}()
	for i := range n {
		it, err := q.Pop(t.Context())
		if err != nil || it.Tag != uint64(i) || binary.LittleEndian.Uint32(it.Data) != uint32(i) {
			t.Fatalf("item %d: got %v, %v", i, it, err)
		}
	}
}

func BenchmarkQueue(b *testing.B) {
	data := make([]byte, 300)
	run := func(b *testing.B, opts Options, consume func(*Queue, int)) {
		q := New(opts)
		defer q.Discard()
		b.ReportAllocs()
		b.ResetTimer()
		go func() {
			for range b.N {
				_ = q.Push(Item{Data: data})
			}
		}()
		consume(q, b.N)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	}
	pop := func(q *Queue, n int) {
		for range n {
			_, _ = q.Pop(context.Background())
		}
	}
	b.Run("Pop", func(b *testing.B) { run(b, Options{}, pop) })
	b.Run("PopBatch", func(b *testing.B) {
		run(b, Options{}, func(q *Queue, n int) {
			dst := make([]Item, 64)
			for n > 0 {
				got, _ := q.PopBatch(context.Background(), dst)
				n -= got
			}
		})
	})
	b.Run("Disk", func(b *testing.B) { run(b, Options{Memory: 1, Dir: b.TempDir()}, pop) })
}

func ExampleQueue() {
	q := New(Options{Memory: 1 << 20})
	_ = q.Push(Item{Data: []byte("hello"), Tag: 1})
	q.Close(nil)
	it, err := q.Pop(context.Background())
	fmt.Printf("%s %d %v\n", it.Data, it.Tag, err)
	// Output: hello 1 <nil>
}
