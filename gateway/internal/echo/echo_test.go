// SPDX-License-Identifier: Apache-2.0

package echo_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drover-agents/drover/gateway/internal/echo"
)

const secret = `sk-ant-api03/the+key"of=all`

// pieces is a body that comes in the pieces in which it was written, and ends with an error.
type pieces struct {
	parts []string
	err   error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, p.err
	}
	n := copy(b, p.parts[0])
	if p.parts[0] = p.parts[0][n:]; p.parts[0] == "" {
		p.parts = p.parts[1:]
	}
	return n, nil
}

func (*pieces) Close() error { return nil }

func masked(body io.ReadCloser, sent http.Header) *http.Response {
	resp := &http.Response{Header: http.Header{}, Body: body}
	echo.Mask(resp, sent)
	return resp
}

func TestMask_CredentialSplitAnywhere(t *testing.T) {
	for name, form := range map[string]string{
		"as it is": secret, "for JSON": strings.ReplaceAll(secret, `"`, `\"`), "for a URL": url.QueryEscape(secret),
		"in base64": base64.StdEncoding.EncodeToString([]byte(secret)), "within base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret + "!")),
	} {
		t.Run(name, func(t *testing.T) {
			text := "data: {sk-ant" + form + form + "\n\n"
			for first := range len(text) {
				for _, second := range []int{first, len(text) - 1} {
					if second < first {
						continue
					}
					resp := masked(&pieces{[]string{text[:first], text[first:second], text[second:]}, io.EOF}, http.Header{"X-Api-Key": {secret}})
					got, err := io.ReadAll(resp.Body)
					if err != nil || len(got) != len(text) || strings.Contains(string(got), form[4:len(form)-4]) || !strings.HasPrefix(string(got), "data: {sk-ant") || !strings.HasSuffix(string(got), "\n\n") {
						t.Fatalf("split at %d and %d: got %q, %v", first, second, got, err)
					}
				}
			}
		})
	}
}

func TestMask_OtherBytesPassAtOnce(t *testing.T) {
	parts := []string{"event: x\n", "data: {\"text\":\"sk-\"}\n\n", "skip\n"}
	resp := masked(&pieces{append([]string(nil), parts...), io.EOF}, http.Header{"Authorization": {"Bearer " + secret}})
	for _, part := range parts {
		buffer := make([]byte, 100)
		if n, err := resp.Body.Read(buffer); err != nil || string(buffer[:n]) != part {
			t.Errorf("got %q, %v; want %q", buffer[:n], err, part)
		}
	}
	if err := iotest.TestReader(masked(&pieces{[]string{"sk-ant-api03", "/x"}, io.EOF}, http.Header{"X-Api-Key": {secret}}).Body, []byte("sk-ant-api03/x")); err != nil {
		t.Error(err)
	}
}

// A stream that is torn within the credential leaves less than eight bytes of it.
func TestMask_TornCredential(t *testing.T) {
	torn := errors.New("torn")
	for n := range len(secret) {
		resp := masked(&pieces{[]string{"x" + secret[:n]}, torn}, http.Header{"X-Api-Key": {secret}})
		got, err := io.ReadAll(resp.Body)
		if !errors.Is(err, torn) || len(got) != 1+n || n >= 8 && strings.Contains(string(got), secret[:8]) {
			t.Errorf("torn after %d bytes: got %q, %v", n, got, err)
		}
	}
}

func TestMask_Headers(t *testing.T) {
	const signature = "0123456789abcdef0123456789abcdef"
	resp := &http.Response{Header: http.Header{
		"X-Echo": {"Bearer " + secret, "fine"}, "X-" + secret: {"1"}, "Www-Authenticate": {`sig="` + signature + `"`}, "X-Token": {"session-token-1234"},
	}, Body: http.NoBody}
	echo.Mask(resp, http.Header{
		"Authorization": {"Bearer " + secret, "AWS4-HMAC-SHA256 Credential=A, Signature=" + signature}, "X-Amz-Security-Token": {"session-token-1234"}, "Accept": {"text/event-stream"},
	})
	for name, values := range resp.Header {
		if all := name + strings.Join(values, ""); strings.Contains(all, secret) || strings.Contains(all, signature) || strings.Contains(all, "session-token-1234") {
			t.Errorf("%s: %q", name, values)
		}
	}
	if got := resp.Header["X-Echo"]; len(got) != 2 || got[1] != "fine" || !strings.HasPrefix(got[0], "Bearer ***") {
		t.Errorf("got %q", got)
	}
}

// What people give servers that need no key is no secret, and is found in ordinary text.
func TestMask_ShortValuesPass(t *testing.T) {
	resp := masked(&pieces{[]string{"a test"}, io.EOF}, http.Header{"X-Api-Key": {"test"}})
	if got, _ := io.ReadAll(resp.Body); string(got) != "a test" {
		t.Errorf("got %q", got)
	}
}
