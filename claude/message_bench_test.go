// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/drover-agents/drover/claude/internal/streamgen"
	"github.com/drover-agents/drover/internal/lines"
)

// reportMessages prints the figures that can be compared with other clients.
func reportMessages(b *testing.B, messages, size int) {
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(messages)*float64(b.N)/seconds, "msg/s")
	b.SetBytes(int64(size))
}

// lookAt does what a consumer does with a message: it uses the text of the most frequent types.
func lookAt(m Message) {
	switch m := m.(type) {
	case *StreamEvent:
		text, _ := m.TextDelta()
		runtime.KeepAlive(text)
	case *AssistantMessage:
		runtime.KeepAlive(m.Text())
	}
}

func benchmarkDecode(b *testing.B, stream [][]byte) {
	size := len(streamgen.Join(stream))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range stream {
			m, err := DecodeMessage(line)
			if err != nil {
				b.Fatal(err)
			}
			lookAt(m)
		}
	}
	reportMessages(b, len(stream), size)
	reportAllocs(b, len(stream), func() {
		for _, line := range stream {
			m, _ := DecodeMessage(line)
			lookAt(m)
		}
	})
}

func reportAllocs(b *testing.B, messages int, run func()) {
	b.ReportMetric(testing.AllocsPerRun(3, run)/float64(messages), "allocs/msg")
}

func BenchmarkDecodeText(b *testing.B) { benchmarkDecode(b, streamgen.Text(1000)) }

func BenchmarkDecodeMixed(b *testing.B) { benchmarkDecode(b, streamgen.Mixed(streamgen.RoundLines)) }

func BenchmarkPeek(b *testing.B) {
	for name, stream := range map[string][][]byte{"text": streamgen.Text(1000), "mixed": streamgen.Mixed(streamgen.RoundLines)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run := func() {
				for _, line := range stream {
					if _, err := ParseLine(line); err != nil {
						b.Fatal(err)
					}
				}
			}
			for b.Loop() {
				run()
			}
			reportMessages(b, len(stream), len(streamgen.Join(stream)))
			reportAllocs(b, len(stream), run)
		})
	}
}

// repeatedStream is an endless stream.
type repeatedStream struct {
	data []byte
	at   int
}

func (r *repeatedStream) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

// benchmarkPipeline reads on one goroutine, with the check of every line, and decodes on another.
func benchmarkPipeline(b *testing.B, stream [][]byte, use func(Line)) {
	data := streamgen.Join(stream)
	r := lines.NewReader(&repeatedStream{data: data}, 0)
	queue := make(chan []Line, 4)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		defer close(queue)
		for range b.N {
			batch := make([]Line, 0, len(stream))
			for range stream {
				raw, _ := r.Next()
				line, err := ParseLine(raw)
				if err != nil {
					b.Error(err)
				}
				batch = append(batch, line)
				if len(batch) == 32 {
					queue <- batch
					batch = make([]Line, 0, 32)
				}
			}
			queue <- batch
		}
	}()
	for batch := range queue {
		for _, line := range batch {
			use(line)
		}
	}
	reportMessages(b, len(stream), len(data))
}

func BenchmarkPipeline(b *testing.B) {
	decode := func(line Line) {
		m, _ := line.Decode()
		lookAt(m)
	}
	for name, stream := range map[string][][]byte{"text": streamgen.Text(1000), "mixed": streamgen.Mixed(streamgen.RoundLines)} {
		b.Run(name+"/typed", func(b *testing.B) { benchmarkPipeline(b, stream, decode) })
		b.Run(name+"/lazy", func(b *testing.B) { benchmarkPipeline(b, stream, func(Line) {}) })
	}
}

// Benchmark4MBLines reads and decodes lines of 4 MB one after the other; heap-MB is the most that
// was in use.
func Benchmark4MBLines(b *testing.B) {
	data := streamgen.Join(streamgen.Large(1, 4<<20))
	r := lines.NewReader(&repeatedStream{data: data}, 0)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	debug.FreeOSMemory() // what making the stream took
	var peak uint64
	for b.Loop() {
		raw, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		line, err := ParseLine(raw)
		if err != nil {
			b.Fatal(err)
		}
		m, err := line.Decode()
		if err != nil || len(m.(*UserMessage).ToolResults()[0].Text()) < 1<<20 {
			b.Fatal("not decoded", err)
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		peak = max(peak, stats.HeapSys-stats.HeapReleased)
	}
	b.ReportMetric(float64(peak)/1e6, "heap-MB")
	if !bytes.HasSuffix(data, []byte("\n")) {
		b.Fatal("no line")
	}
}
