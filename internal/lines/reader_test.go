// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// got is one answer of Next.
type got struct {
	Number  int
	Line    string
	Last    bool
	TooLong bool
}

func readAll(t testing.TB, r *Reader) (all []got, err error) {
	t.Helper()
	for {
		line, err := r.Next()
		var long *TooLongError
		if err != nil && !errors.As(err, &long) {
			return all, err
		}
		if long != nil && long.Line != r.Number() {
			t.Errorf("TooLongError names line %d, Number is %d", long.Line, r.Number())
		}
		all = append(all, got{r.Number(), string(line), r.Last(), long != nil})
	}
}

// naive splits data in the simplest way; the Reader must agree with it.
func naive(data []byte, limit int) (all []got) {
	parts := bytes.Split(data, []byte("\n"))
	for i, part := range parts {
		last := i == len(parts)-1
		if last && len(part) == 0 {
			break
		}
		if !last {
			part = bytes.TrimSuffix(part, []byte("\r"))
		}
		if len(part) > limit {
			all = append(all, got{Number: i + 1, TooLong: true})
			continue
		}
		all = append(all, got{i + 1, string(part), last, false})
	}
	return all
}

func check(t *testing.T, name string, src io.Reader, data []byte, limit int) {
	t.Helper()
	all, err := readAll(t, NewReader(src, limit))
	if err != io.EOF {
		t.Errorf("%s: error %v, want EOF", name, err)
	}
	if diff := cmp.Diff(naive(data, limit), all); diff != "" {
		t.Errorf("%s, limit %d (-want +got):\n%.2000s", name, limit, diff)
	}
}

var streams = map[string]string{
	"empty":              "",
	"one line":           "a\n",
	"no line end":        "a",
	"blank lines":        "\n\n\r\n\n",
	"CRLF":               "a\r\nb\r\n",
	"CR inside":          "a\rb\n\r\r\n",
	"CR at the end":      "a\r",
	"split UTF-8":        "é✓😀\n😀",
	"invalid UTF-8":      "\xff\xfe\n\xc3",
	"at the limit":       strings.Repeat("x", 16) + "\n" + strings.Repeat("x", 16) + "\r\n" + strings.Repeat("x", 17) + "\n" + strings.Repeat("x", 16) + "\r\r\nz\n",
	"too long at end":    "a\n" + strings.Repeat("x", 40),
	"limit without LF":   strings.Repeat("x", 17),
	"too long, then two": strings.Repeat("x", 40) + "\na\nb\n",
	"fills a chunk":      strings.Repeat("x", chunkSize-1) + "\ny\n",
	"one over a chunk":   strings.Repeat("x", chunkSize) + "\ny\n",
	"CR on the seam":     strings.Repeat("x", chunkSize-1) + "\r\ny\n",
	"three chunks":       "a\n" + strings.Repeat("0123456789abcdef", 3*chunkSize/16) + "\nb\n" + strings.Repeat("y", 3*chunkSize),
}

func TestReader_AgreesWithSplitting(t *testing.T) {
	for name, stream := range streams {
		data := []byte(stream)
		for _, limit := range []int{16, chunkSize, DefaultLimit} {
			check(t, name, bytes.NewReader(data), data, limit)
			check(t, name+" by halves", iotest.HalfReader(bytes.NewReader(data)), data, limit)
			check(t, name+" with late data", iotest.DataErrReader(bytes.NewReader(data)), data, limit)
			if len(data) < 1000 {
				check(t, name+" by bytes", iotest.OneByteReader(bytes.NewReader(data)), data, limit)
			}
		}
	}
}

func TestReader_ReturnsLinesBeforeAnError(t *testing.T) {
	broken := errors.New("pipe broke")
	r := NewReader(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(broken)), 0)
	all, err := readAll(t, r)
	if err != broken {
		t.Errorf("error %v, want %v", err, broken)
	}
	want := []got{{1, "a", false, false}, {2, "half", true, false}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if _, again := r.Next(); again != broken {
		t.Errorf("second call: error %v, want the same one", again)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestReader_StopsOnASourceWithoutProgress(t *testing.T) {
	if _, err := NewReader(idle{}, 0).Next(); err != io.ErrNoProgress {
		t.Errorf("error %v, want ErrNoProgress", err)
	}
}

func TestReader_ReportsALongLineBeforeItEnds(t *testing.T) {
	src, w := io.Pipe()
	r := NewReader(src, 10)
	go func() {
		_, _ = w.Write([]byte(strings.Repeat("x", 100))) // no LF: the error must not wait for it
	}()
	_, err := r.Next()
	var long *TooLongError
	if !errors.As(err, &long) || long.Limit != 10 || long.Line != 1 {
		t.Fatalf("error %v, want line 1 too long for 10 bytes", err)
	}
	go func() {
		_, _ = w.Write([]byte("rest\nnext\n"))
		_ = w.Close()
	}()
	if line, err := r.Next(); string(line) != "next" || err != nil || r.Number() != 2 {
		t.Errorf("after the long line: %q, %v, number %d; want next, nil, 2", line, err, r.Number())
	}
}

func TestReader_LinesBelongToTheCaller(t *testing.T) {
	r := NewReader(strings.NewReader("first\nsecond\n"), 0)
	first, _ := r.Next()
	if cap(first) != len(first) && cap(first) > 8 {
		t.Errorf("line of %d bytes has capacity %d: it keeps more alive than itself", len(first), cap(first))
	}
	first = append(first[:0], "XXXXX"...)
	if second, _ := r.Next(); string(second) != "second" || string(first) != "XXXXX" {
		t.Errorf("got %q after writing to the first line, want second", second)
	}
}

func TestReader_AllocatesOncePerLine(t *testing.T) {
	for _, size := range []int{10, 3000, 1 << 20} {
		line := append(bytes.Repeat([]byte("x"), size), '\n')
		r := NewReader(&endless{line: line}, 0)
		for range 3 {
			_, _ = r.Next()
		}
		if got := testing.AllocsPerRun(20, func() { _, _ = r.Next() }); got > 1 {
			t.Errorf("lines of %d bytes: %v allocations each, want 1", size, got)
		}
	}
}

// endless repeats one line for ever.
type endless struct {
	line []byte
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := copy(p[n:], e.line[e.at:])
		n += c
		e.at = (e.at + c) % len(e.line)
	}
	return n, nil
}

func FuzzReader(f *testing.F) {
	for _, stream := range streams {
		if len(stream) < 1000 {
			f.Add([]byte(stream), 16, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, limit int, step uint8) {
		limit = max(1, limit%1000)
		check(t, "fuzz", &stepReader{data, int(step)%64 + 1}, data, limit)
	})
}

// stepReader returns n bytes at a time.
type stepReader struct {
	data []byte
	n    int
}

func (s *stepReader) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.data)
	s.data = s.data[n:]
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{300, 1500, 20 << 10, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := NewReader(&endless{line: append(bytes.Repeat([]byte("x"), size), '\n')}, 0)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
