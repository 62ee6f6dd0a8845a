// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"
)

const planted = `p@ss "w/örd"+&<x>`

func TestRedactor_KnownValues(t *testing.T) {
	inJSON, err := json.Marshal(map[string]string{"k": planted})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(inJSON))
	if err != nil {
		t.Fatal(err)
	}
	r := NewRedactor("", "abc", planted, "p@ss", planted+"-longer")
	for _, tc := range []struct{ name, in, want string }{
		{"as it is", "x " + planted + " y", "x [redacted] y"},
		{"longest first", planted + "-longer", "[redacted]"},
		{"JSON", string(inJSON), `{"k":"[redacted]"}`},
		{"query", "a=" + url.QueryEscape(planted) + "&b=1", "a=[redacted]&b=1"},
		{"path", "/" + url.PathEscape(planted) + "/b", "/[redacted]/b"},
		{"base64", base64.StdEncoding.EncodeToString([]byte(planted)), "[redacted]"},
		{"raw base64 for URLs", base64.RawURLEncoding.EncodeToString([]byte(planted)), "[redacted]"},
		{"short values are ignored", "abc abcd", "abc abcd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := r.String(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := r.String(string(twice)); strings.Contains(got, "w/") {
		t.Errorf("JSON inside JSON: %s", got)
	}
	for _, user := range []string{"u", "us", "use"} { // the three alignments
		in := base64.StdEncoding.EncodeToString([]byte(user + ":" + planted))
		if got := r.String("x=" + in); !strings.Contains(got, "[redacted]") {
			t.Errorf("inside base64 of %q: %q", user, got)
		}
	}
}

func TestRedactor_Patterns(t *testing.T) {
	const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"
	for _, tc := range []struct{ name, in, want string }{
		{"anthropic key", "key sk-ant-api03-AbC_d-12 used", "key [redacted] used"},
		{"other key", "sk-proj-abcdefghijklmnop1234", "[redacted]"},
		{"bearer", "curl -H 'Authorization: Bearer abc.def-123456'", "curl -H 'Authorization: Bearer [redacted]'"},
		{"bearer alone", "got bearer 0123456789abcdef!", "got bearer [redacted]!"},
		{"header", "x-api-key: hunter22 \nHost: a", "x-api-key: [redacted]\nHost: a"},
		{"header in JSON", `{"X-Api-Key":"hunter22","b":1}`, `{"X-Api-Key":"[redacted]","b":1}`},
		{"header in JSON in JSON", `"{\"authorization\":\"Basic aHVudGVyMjI=\"}"`, `"{\"authorization\":\"Basic [redacted]\"}"`},
		{"variable", "ANTHROPIC_API_KEY=hunter22 claude", "ANTHROPIC_API_KEY=[redacted] claude"},
		{"exported variable", `export GITHUB_TOKEN="hunter22"`, `export GITHUB_TOKEN="[redacted]"`},
		{"variable in JSON", `{"env":{"MY_TOKEN":"hunter22"}}`, `{"env":{"MY_TOKEN":"[redacted]"}}`},
		{"aws id", "id AKIAABCDEFGHIJKLMNOP.", "id [redacted]."},
		{"aws secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = [redacted]"},
		{"jwt", "t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln x", "t=[redacted] x"},
		{"private key", "a\n" + pem + "\nb", "a\n[redacted]\nb"},
		{"private key cut off", "a -----BEGIN PRIVATE KEY-----\nMII", "a [redacted]"},
		{"private key in JSON", `{"k":"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"}`, `{"k":"[redacted]\n"}`},
		{"password in a URL", "postgres://me:hunter22@db/x", "postgres://me:[redacted]@db/x"},
		{"json field", `{"access_token": "hunter22"}`, `{"access_token": "[redacted]"}`},
		{"github", "ghp_abcdefghijklmnopqrstuvwx12", "[redacted]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var none *Redactor
			if got := none.String(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if again := none.String(tc.want); again != tc.want {
				t.Errorf("a second pass changes %q to %q", tc.want, again)
			}
		})
	}
}

func TestRedactor_OrdinaryTextStays(t *testing.T) {
	for _, in := range []string{
		"",
		`{"usage":{"input_tokens":1234,"cache_read_input_tokens":5}}`,
		"max_tokens=4096 and MAX_OUTPUT_TOKENS=32000",
		"the bearer of this letter, bearer authentication",
		"Authorization header is missing",
		"set ANTHROPIC_API_KEY to your key",
		"ANTHROPIC_API_KEY=",
		"ANTHROPIC_API_KEY=$OTHER and X_TOKEN=${Y_TOKEN}",
		"risk-averse task-oriented desk-lamp sk-1",
		"https://example.com:8080/path and git@example.com:a/b",
		"session 3f1c7c1e-6c8e-4d0e-9a53-0f6a6a1b2c3d",
		"toolu_01AbCdEfGhIjKlMnOpQrStUv",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"eyJ is how base64 of a brace begins",
		"the secret: nobody knows", "password required",
	} {
		var none *Redactor
		if got := none.String(in); got != in {
			t.Errorf("%q became %q", in, got)
		}
		if got := NewRedactor("unrelated").Bytes([]byte(in)); string(got) != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestWriter_RedactsAcrossChunks(t *testing.T) {
	multi := "first half\nsecond half"
	r := NewRedactor("hunter22", multi)
	in := "a hunter22 b\nx-api-key: topsecret1\n" + multi + " c\n-----BEGIN PRIVATE KEY-----\nAAA\nBBB\n-----END PRIVATE KEY-----\nend hunter22"
	want := r.String(in)
	for size := 1; size < 20; size++ {
		var out bytes.Buffer
		w := r.NewWriter(&out)
		for i := 0; i < len(in); i += size {
			if n, err := w.Write([]byte(in[i:min(i+size, len(in))])); err != nil || n != min(size, len(in)-i) {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("chunks of %d: got %q, want %q", size, out.String(), want)
		}
	}
}

func TestWriter_PassesWholeLinesAtOnce(t *testing.T) {
	var out bytes.Buffer
	w := NewRedactor("hunter22").NewWriter(&out)
	if _, err := w.Write([]byte("one\ntwo hun")); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "one\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriter_BoundsMemory(t *testing.T) {
	for _, tc := range []struct{ name, start string }{{"a line without end", "x"}, {"a key without end", "-----BEGIN PRIVATE KEY-----"}} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewRedactor("hunter22").NewWriter(&out)
			chunk := []byte(strings.Repeat("yhunter22", 1000))
			if _, err := w.Write([]byte(tc.start)); err != nil {
				t.Fatal(err)
			}
			for range 200 {
				if _, err := w.Write(chunk); err != nil {
					t.Fatal(err)
				}
				if len(w.held) > maxHeld {
					t.Fatalf("holds %d bytes", len(w.held))
				}
			}
			if _, err := w.Write([]byte("-----END PRIVATE KEY-----\nafter\n")); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "hunter22") || !strings.HasSuffix(out.String(), "after\n") {
				t.Errorf("output of %d bytes leaks or ends wrong: %q", out.Len(), out.String()[max(0, out.Len()-40):])
			}
			if tc.start != "x" && strings.Contains(out.String(), "yyy") {
				t.Error("the inside of the key came through")
			}
		})
	}
}

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.StringValue(v.s) }

func TestHandler_RedactsEveryAttribute(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(NewRedactor("hunter22").Handler(slog.NewJSONHandler(&out, nil)))
	log = log.With("with", "hunter22").WithGroup("g")
	log.Info("msg hunter22", "s", "a hunter22", "err", errors.New("bad hunter22"), "n", 3, "api_key", "anything",
		"bytes", []byte("hunter22"), "struct", struct{ A string }{"hunter22"}, "v", valuer{"hunter22"},
		"d", time.Second, slog.Group("inner", "k", "hunter22", "map", map[string]any{"x": []string{"hunter22"}}))
	if got := out.String(); strings.Contains(got, "hunter22") || strings.Contains(got, "anything") {
		t.Errorf("leaks: %s", got)
	}
	for _, keep := range []string{`"n":3`, `"d":1000000000`, `"msg":"msg [redacted]"`, `"err":"bad [redacted]"`, `"inner":{`} {
		if !strings.Contains(out.String(), keep) {
			t.Errorf("%s is missing in %s", keep, out.String())
		}
	}
}

func FuzzKnownValue(f *testing.F) {
	f.Add("hunter22", "a ", " b", uint8(3))
	f.Add("redacted", "x", "y", uint8(1))
	f.Add("d]aa", "d]aaaa", "aa", uint8(2))
	f.Add("a\nb\nc", "a\n", "b\nc\n", uint8(1))
	f.Add("aaaa", "aaa", "a", uint8(5))
	f.Fuzz(func(t *testing.T, value, before, after string, size uint8) {
		if len(value) < minValue || strings.Contains("***#", value) {
			return
		}
		r := NewRedactor(value)
		in := before + value + after
		if got := r.String(in); strings.Contains(got, value) {
			t.Fatalf("%q survives in %q", value, got)
		}
		var out bytes.Buffer
		w := r.NewWriter(&out)
		for chunk := in; chunk != ""; {
			n := min(int(size)+1, len(chunk))
			if _, err := w.Write([]byte(chunk[:n])); err != nil {
				t.Fatal(err)
			}
			chunk = chunk[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), value) {
			t.Fatalf("%q survives the writer in %q", value, out.String())
		}
	})
}

func BenchmarkString(b *testing.B) {
	r := NewRedactor("hunter22-secret-value", "another-secret-value")
	line := strings.Repeat("an ordinary line of a log, with numbers 12345 and words; ", 4)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r.String(line)
	}
}

// The words that are looked for before an expression is tried are in every form that it takes.
func TestRedactor_EveryNameAndPrefixOfASecret(t *testing.T) {
	r := NewRedactor()
	const value = "abcdefgh0123456789abcdefgh"
	for _, name := range strings.Fields(`apiKey api_key accessToken ACCESS_token refreshToken refresh_token authToken auth_token clientSecret
		client_secret secretKey secret_key secretAccessKey secret_access_key secret_accessKey secretaccess_key aws_secret_access_key password`) {
		if got := r.String(`{"` + name + `": "` + value + `"}`); strings.Contains(got, value) {
			t.Errorf("got %s", got)
		}
		if !r.HidesPair([]byte(name), []byte(value)) {
			t.Errorf("%s hides nothing", name)
		}
	}
	for _, prefix := range strings.Fields(`ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ xoxa- xoxb- xoxp- xoxr- xoxs-
		aws_secret_access_key= awssecretaccesskey= aws_session_token: awsSessionToken:`) {
		if got := r.String("use " + prefix + value + " now"); strings.Contains(got, value) {
			t.Errorf("got %s", got)
		}
	}
	if r.HidesPair([]byte("note"), []byte("the password is of no use, nor a token")) {
		t.Error("a note is a secret")
	}
}

// plainly is Redactor.String that tries each expression.
func plainly(r *Redactor, s string) string {
	s = r.known(s)
	for i := range patterns {
		if out := patterns[i].replace(s, r.Mark()); out != s {
			s = r.known(out)
		}
	}
	return s
}

// What is looked for before an expression is tried is in each text that the expression matches.
func TestRedactor_AgreesWithEachExpression(t *testing.T) {
	pieces := []string{
		" ", "\n", "\t", "\v", "a", "task", "-", "_", `"`, `\`, "'", ":", "=", " : ", "://", "@", "/", ",", "é", "\u212a", "9", "$", ".", "~+/", "user:pass@",
		"ab12", "abcdefghij", "ABCDEFGHIJ", "abcdefgh12345678abcdefgh", "ABCDEFGH12345678", "-----BEGIN ", "RSA ", "PRIVATE KEY-----", "-----END ",
		"sk-", "sk-ant-", "drover-run-", "eyJ", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xoxb-", "xoxs-", "AIza",
		"bearer ", "Bearer\n", "BEARER", "basic ", "x-api-key", "API-KEY", "api-\u212aey", "Proxy-Authorization", "authorization", "Cookie", "coo\u212aie", "set-cookie",
		"API_KEY", "_TOKEN", "SECRET", "_KEY", "ACCESS_KEY", "PASSWORD", "PASSWD", "PRIVATE_KEY", "api", "key", "Key", "access", "refresh", "auth", "token", "Token",
		"client", "secret", "Secret", "aws", "aws_", "session", "password", "pass", "hunter22",
	}
	seed := rand.Uint64()
	rnd, changed := rand.New(rand.NewPCG(seed, 1)), 0
	for _, r := range []*Redactor{nil, NewRedactor("hunter22", `"ab12":"`, "a task")} {
		for i := range 2000 {
			var b, name strings.Builder
			if i == 0 { // a word that is alone when the key before it is gone
				b.WriteString("AIza" + strings.Repeat("x", 35) + "bearer abcdefgh1")
			}
			for range rnd.IntN(10) {
				b.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			for range rnd.IntN(4) {
				name.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			got, want := r.String(b.String()), plainly(r, b.String())
			if inner, _, nested := unescape(nil, []byte(want), nil); nested { // see TestRedactor_NestedSecrets
				want = got
				if plainly(r, string(inner)) == string(inner) && !strings.Contains(string(inner), `\`) {
					want = plainly(r, b.String())
				}
			}
			if got != want || string(r.Bytes([]byte(b.String()))) != want {
				t.Fatalf("seed %d: %q becomes %q, and not %q", seed, b.String(), got, want)
			}
			if got != b.String() {
				changed++
				continue
			}
			pair := `"` + name.String() + `":"` + got + `"`
			if got, want := r.HidesPair([]byte(name.String()), []byte(got)), plainly(r, pair) != pair; got != want {
				t.Fatalf("seed %d: %q hides a secret: %t, and not %t", seed, pair, got, want)
			}
		}
	}
	if changed < 200 {
		t.Errorf("only %d of the texts have a secret", changed)
	}
}

// A secret is found behind levels of escapes, as in JSON in JSON. What is around it stays as it is.
func TestRedactor_NestedSecrets(t *testing.T) {
	r := NewRedactor(`hunter"2 ü😀`, "first\nsecond")
	for in, want := range map[string]string{
		`{"a":"x\nghp_abcdefghijklmnopqrstuvwx12\n\"y\""}`:                  `{"a":"x\n[redacted]\n\"y\""}`,
		`\\tAKIAIOSFODNN7EXAMPLE`:                                           `\\t[redacted]`,
		`{\\\"clientSecret\\\":\\\"correct horse\\\",\\\"b\\\":1}`:          `{\\\"clientSecret\\\":\\\"[redacted]\\\",\\\"b\\\":1}`,
		`a \\u0068unter\\\"2\\u0020\\u00fc\\ud83d\\uDE00 b`:                 `a [redacted] b`,
		`C:\new\folder \x \u12 \ud83d \`:                                    `C:\new\folder \x \u12 \ud83d \`,
		`first\\\\nsecond and \\\\\\\\first\\\\\\\\nsecond`:                 `[redacted] and \\\\\\\\[redacted]`,
		`\` + strings.Repeat("u005c", 20_000) + "n":                         `\` + strings.Repeat("u005c", 20_000) + "n",
		strings.Repeat(`\`, 1<<16) + "n":                                    strings.Repeat(`\`, 1<<16) + "n",
		strings.Repeat(" ", maxTraced) + `\nghp_abcdefghijklmnopqrstuvwx12`: defaultMarker,
	} {
		if got := r.String(in); got != want {
			t.Errorf("%.100q becomes %.100q, and not %.100q", in, got, want)
		}
		if got := r.Bytes([]byte(in)); string(got) != want {
			t.Errorf("%.100q becomes the bytes %.100q", in, got)
		}
		if again := r.String(want); again != want {
			t.Errorf("a second pass changes %.100q to %.100q", want, again)
		}
	}
}
