// SPDX-License-Identifier: Apache-2.0

// Package echo keeps a credential out of the answer to the request that carried it. Upstreams that report
// errors, and proxies before them, may repeat what they were sent.
//
// Promises:
//
//   - A credential of 12 bytes or more does not appear in the headers and the body of the answer, neither as
//     it is nor escaped for JSON or a URL, nor in base64, however the body is split.
//   - Every other byte passes unchanged and in order. A byte waits for the next ones only if it may begin
//     a credential.
//
// Not promised: a credential that the upstream has encoded in another way, or compressed without saying so.
package echo

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
)

// shortest is the shortest credential that is looked for, and partial how much of one may end an answer.
const (
	shortest = 12
	partial  = 8
)

const mask = '*'

// Mask takes the credentials in the headers of a request out of its answer.
func Mask(resp *http.Response, sent http.Header) {
	forms := formsOf(sent)
	if len(forms) == 0 {
		return
	}
	for name, values := range resp.Header {
		masked := make([]string, len(values))
		for i, v := range values {
			masked[i] = string(hide([]byte(v), forms))
		}
		resp.Header[name] = masked
		if named(name, forms) {
			delete(resp.Header, name)
		}
	}
	resp.Body = &body{from: resp.Body, forms: forms}
}

// Error is the error of a request whose credentials are not in its text. One that would quote them, as that
// about an answer which is not HTTP may, is replaced by its masked text.
func Error(err error, sent http.Header) error {
	text := err.Error()
	if masked := string(hide([]byte(text), formsOf(sent))); masked != text {
		return errors.New(masked)
	}
	return err
}

var carriers = []string{"X-Api-Key", "Authorization", "X-Amz-Security-Token"}

func formsOf(sent http.Header) [][]byte {
	var forms [][]byte
	seen := map[string]bool{}
	for _, carrier := range carriers {
		for _, value := range sent[carrier] {
			secret := strings.TrimPrefix(value, "Bearer ")
			if _, signature, ok := strings.Cut(value, "Signature="); ok {
				secret = signature
			}
			if len(secret) < shortest {
				continue
			}
			for _, form := range safetext.Spellings(secret) {
				if !seen[form] {
					seen[form] = true
					forms = append(forms, []byte(form))
				}
			}
		}
	}
	return forms
}

// hide masks all forms in b, which it changes.
func hide(b []byte, forms [][]byte) []byte {
	for _, form := range forms {
		for from := 0; ; {
			at := bytes.Index(b[from:], form)
			if at < 0 {
				break
			}
			cover(b[from+at : from+at+len(form)])
			from += at + len(form)
		}
	}
	return b
}

func cover(b []byte) {
	for i := range b {
		b[i] = mask
	}
}

func named(name string, forms [][]byte) bool {
	return slices.ContainsFunc(forms, func(form []byte) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(string(form)))
	})
}

// A body is an answer without the forms of a credential.
type body struct {
	from  io.ReadCloser
	forms [][]byte
	data  []byte // what was read; the first of it may be passed on
	ready int    // how much
	err   error  // of from, once the data is passed on
}

func (b *body) Close() error { return b.from.Close() }

func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for b.ready == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.fill(len(p))
	}
	n := copy(p, b.data[:b.ready])
	b.data = append(b.data[:0], b.data[n:]...)
	b.ready -= n
	return n, nil
}

func (b *body) fill(size int) {
	held := len(b.data)
	b.data = append(b.data, make([]byte, size)...)
	n, err := b.from.Read(b.data[held:])
	b.data, b.err = b.data[:held+n], err
	hide(b.data, b.forms)
	tail := b.tail()
	if err != nil {
		if tail >= partial {
			cover(b.data[len(b.data)-tail:])
		}
		tail = 0
	}
	b.ready = len(b.data) - tail
}

// tail is the length of the longest end of the data that begins a form.
func (b *body) tail() int {
	longest := 0
	for _, form := range b.forms {
		for n := min(len(form)-1, len(b.data)); n > longest; n-- {
			if bytes.HasSuffix(b.data, form[:n]) {
				longest = n
			}
		}
	}
	return longest
}
