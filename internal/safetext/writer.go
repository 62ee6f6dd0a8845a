// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"bytes"
	"io"
	"strings"
)

// maxHeld bounds what a Writer keeps back while it waits for the end of a line.
const maxHeld = 256 << 10

// A Writer redacts a stream. It passes on whole lines, so that no secret is cut by the chunks it
// arrives in; Close passes on what is left.
type Writer struct {
	r     *Redactor
	to    io.Writer
	held  []byte
	inKey bool // a private key has begun and was given up; skip to its end
}

// NewWriter returns a Writer onto w. Closing it does not close w.
func (r *Redactor) NewWriter(w io.Writer) *Writer { return &Writer{r: r, to: w} }

// Write takes all of p; an error is that of the writer below.
func (w *Writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	w.skipKey()
	if bytes.IndexByte(p, '\n') >= 0 { // nothing becomes a whole line without
		if err := w.pass(w.safeCut()); err != nil {
			return len(p), err
		}
	}
	for len(w.held) > maxHeld {
		if err := w.passLong(); err != nil {
			return len(p), err
		}
	}
	return len(p), nil
}

// Close passes on the last, unfinished line.
func (w *Writer) Close() error { return w.pass(len(w.held)) }

func (w *Writer) pass(n int) error {
	if n <= 0 {
		return nil
	}
	out := w.r.String(string(w.held[:n]))
	w.held = append(w.held[:0], w.held[n:]...)
	_, err := io.WriteString(w.to, out)
	return err
}

// safeCut finds the end of the last line that may go: after it begins neither a private key nor a
// known value that reaches over lines.
func (w *Writer) safeCut() int {
	cut := bytes.LastIndexByte(w.held, '\n') + 1
	if begin, open := openKey(w.held[:cut]); open {
		cut = bytes.LastIndexByte(w.held[:begin], '\n') + 1
	}
	return w.beforeValue(cut)
}

// openKey finds a private key without its end.
func openKey(b []byte) (int, bool) {
	begin := bytes.LastIndex(b, []byte("-----BEGIN "))
	if begin < 0 {
		return 0, false
	}
	_, end, ended := bytes.Cut(b[begin:], []byte("-----END "))
	return begin, !ended || !bytes.Contains(end, []byte("-----"))
}

// beforeValue moves a cut to before any known value that it would split.
func (w *Writer) beforeValue(cut int) int {
	if w.r == nil {
		return cut
	}
	for moved := true; moved; {
		moved = false
		for _, form := range w.r.forms {
			if k := splitLength(w.held[:cut], form); k > 0 {
				cut -= k
				moved = true
			}
		}
	}
	return cut
}

// splitLength gives the length of the longest proper beginning of form with which b ends.
func splitLength(b []byte, form string) int {
	for k := min(len(form)-1, len(b)); k > 0; k-- {
		if strings.HasPrefix(form, string(b[len(b)-k:])) {
			return k
		}
	}
	return 0
}

// passLong lets go of a line that is too long to be kept whole, up to a blank where there is one.
func (w *Writer) passLong() error {
	if _, open := openKey(w.held); open {
		w.inKey = true
		err := w.pass(len(w.held))
		return err
	}
	cut := len(w.held) / 2
	if blank := bytes.LastIndexAny(w.held[:cut], " \t"); blank > 0 {
		cut = blank
	}
	if before := w.beforeValue(cut); before > 0 {
		cut = before
	}
	return w.pass(cut)
}

// skipKey drops the rest of a private key whose beginning has been passed on as a marker.
func (w *Writer) skipKey() {
	if !w.inKey {
		return
	}
	const mark = "-----END "
	end := bytes.Index(w.held, []byte(mark))
	if end < 0 {
		w.held = append(w.held[:0], w.held[max(0, len(w.held)-len(mark)):]...)
		return
	}
	w.inKey = false
	w.held = append(w.held[:0], w.held[end+len(mark):]...)
}
