// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/record"
)

// A part is a file of a bundle that a test makes by itself.
type part struct {
	name string
	text []byte
	// packed is the compressed text; nil means that it is stored as it is.
	packed []byte
	// size is what the manifest declares, if it is not the length.
	size string
	sum  string
	// hide leaves it out of the manifest.
	hide bool
	edit func(*zip.FileHeader)
}

// partsOf are those of a whole bundle, without the manifest.
func partsOf(t testing.TB) (parts []part) {
	t.Helper()
	_, r := whole().write(t, t.TempDir())
	for _, name := range order[1:] {
		text, err := os.ReadFile(filepath.Join(r.Path, name))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part{name: name, text: text})
	}
	return parts
}

// build makes a bundle. A part manifest.json replaces the one that is right.
func build(t testing.TB, parts []part) []byte {
	t.Helper()
	if !slices.ContainsFunc(parts, func(p part) bool { return p.name == "manifest.json" }) {
		parts = append([]part{{name: "manifest.json", text: manifestOf(t, parts, "1", "r1")}}, parts...)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, p := range parts {
		h := &zip.FileHeader{Name: p.name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(p.text), UncompressedSize64: uint64(len(p.text))}
		stored := p.text
		if p.packed != nil {
			h.Method, stored = zip.Deflate, p.packed
		}
		h.CompressedSize64 = uint64(len(stored))
		if p.edit != nil {
			p.edit(h)
		}
		w, err := z.CreateRaw(h)
		if err == nil {
			_, err = w.Write(stored)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func manifestOf(t testing.TB, parts []part, version, run string) []byte {
	t.Helper()
	var files []string
	for _, p := range parts {
		if p.hide {
			continue
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(p.text)
		files = append(files, fmt.Sprintf(`{"name":%s,"size":%s,"sha256":%q,"compressed":%d}`, name,
			orText(p.size, fmt.Sprint(len(p.text))), orText(p.sum, hex.EncodeToString(sum[:])), len(p.text)))
	}
	return fmt.Appendf(nil, `{"droverBundle":%s,"made":"2026-03-01T12:00:00Z","run":%q,"files":[%s]}`, version, run, strings.Join(files, ","))
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// bomb is n equal bytes, compressed.
func bomb(t testing.TB, c byte, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		_, err = io.CopyN(w, repeated(c), n)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// at is the part of a name.
func at(parts []part, name string) *part {
	return &parts[slices.IndexFunc(parts, func(p part) bool { return p.name == name })]
}

// patch changes the end record of a zip, or the first entry of its directory.
func patch(zip []byte, signature string, offset int, b ...byte) []byte {
	copy(zip[bytes.LastIndex(zip, []byte(signature))+offset:], b)
	return zip
}

const (
	endRecord = "PK\x05\x06"
	mega      = 1 << 20
)

func TestOpenBundle_Hostile(t *testing.T) {
	symlink := func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }
	sizes := func(size, packed uint64) func(*zip.FileHeader) {
		return func(h *zip.FileHeader) { h.UncompressedSize64, h.CompressedSize64 = size, packed }
	}
	many := func(n int) (parts []part) {
		for i := range n {
			parts = append(parts, part{name: fmt.Sprint("x", i), hide: true})
		}
		return parts
	}
	build := func(parts []part) []byte { return build(t, parts) }
	for _, test := range []struct {
		name   string
		make   func(parts []part) []byte
		err    string            // of opening
		next   string            // of its advice
		damage string            // of one of Damage
		errs   map[string]string // of reading, by file
		memory uint64            // that may be allocated; 0 means 4 MiB
	}{
		{name: "nothing hostile", make: build},
		{name: "names out of the folder", make: func(parts []part) []byte {
			for _, name := range []string{"../../escape.txt", "/tmp/escape.txt", `..\..\escape.txt`, "a/../../escape.txt", "./run.json", "lock", "x/run.json", "RUN.JSON"} {
				parts = append(parts, part{name: name, text: []byte("{}")})
			}
			return build(parts)
		}, damage: `"../../escape.txt" is not a file of a bundle; it is ignored`},
		{name: "control characters in a name", make: func(parts []part) []byte {
			return build(append(parts, part{name: "\x1b[2Jrun.json", text: []byte("{}")}))
		}, damage: `"\x1b[2Jrun.json" is not a file`},
		{name: "a name of 60,000 bytes", make: func(parts []part) []byte {
			return build(append(parts, part{name: strings.Repeat("a", 60000), hide: true}))
		}, damage: `aaa" is not a file`},
		{name: "bomb that declares few bytes", make: func(parts []part) []byte {
			p := at(parts, "workspace.diff")
			p.packed = bomb(t, 'x', 64*mega)
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "has more bytes than"}},
		{name: "bomb that declares all its bytes", make: func(parts []part) []byte {
			p := at(parts, "workspace.diff")
			p.packed, p.size = bomb(t, 'x', mega), fmt.Sprint(1024*mega)
			p.edit = func(h *zip.FileHeader) { h.UncompressedSize64 = 1024 * mega }
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "out of range"}, damage: "workspace.diff cannot be read: its declared size of 1073741824 bytes is out of range"},
		{name: "bomb in the end", make: func(parts []part) []byte {
			p := at(parts, "end.json")
			p.packed, p.size = bomb(t, ' ', mega), fmt.Sprint(100*mega)
			p.edit = func(h *zip.FileHeader) { h.UncompressedSize64 = 100 * mega }
			return build(parts)
		}, damage: "end.json cannot be read: its declared size"},
		{name: "bomb of one line in the transcript", make: func(parts []part) []byte {
			p := at(parts, "transcript.jsonl")
			p.packed, p.size = bomb(t, '[', 80*mega), fmt.Sprint(80*mega)
			p.edit = func(h *zip.FileHeader) { h.UncompressedSize64 = 80 * mega }
			return build(parts)
		}, errs: map[string]string{"transcript.jsonl": "is longer than"}, memory: 200 * mega},
		{name: "bomb of one line in the log", make: func(parts []part) []byte {
			p := at(parts, "events.jsonl")
			p.packed, p.size = bomb(t, '[', 80*mega), fmt.Sprint(80*mega)
			p.edit = func(h *zip.FileHeader) { h.UncompressedSize64 = 80 * mega }
			return build(parts)
		}, errs: map[string]string{"events.jsonl": "events.jsonl"}, memory: 600 * mega},
		{name: "link instead of run.json", make: func(parts []part) []byte {
			p := at(parts, "run.json")
			p.text, p.edit = []byte("/etc/passwd"), symlink
			return build(parts)
		}, err: "run.json: it is missing"},
		{name: "link instead of traffic", make: func(parts []part) []byte {
			p := at(parts, "traffic.jsonl")
			p.text, p.edit = []byte("/etc/passwd"), symlink
			return build(parts)
		}, damage: "traffic.jsonl is a link or another special file"},
		{name: "two files run.json", make: func(parts []part) []byte { return build(append(parts, parts[0])) }, err: "it has two files run.json"},
		{name: "two manifests", make: func(parts []part) []byte {
			m := part{name: "manifest.json", text: manifestOf(t, parts, "1", "r1")}
			return build(append([]part{m, m}, parts...))
		}, err: "it has two files manifest.json"},
		{name: "a file is in the manifest twice", make: func(parts []part) []byte {
			m := part{name: "manifest.json", text: manifestOf(t, append(slices.Clone(parts), *at(parts, "workspace.diff")), "1", "r1")}
			return build(append([]part{m}, parts...))
		}, errs: map[string]string{"workspace.diff": "lists it twice"}, damage: "workspace.diff cannot be read: the manifest lists it twice"},
		{name: "1,000 files", make: func(parts []part) []byte { return build(append(parts, many(1000)...)) }, err: "more than 64 files"},
		{name: "1,000 files without a directory", make: func(parts []part) []byte {
			text := build(append(parts, many(1000)...))
			return text[:bytes.Index(text, []byte("PK\x01\x02"))]
		}, err: "more than 64 files"},
		{name: "1,000 files and a directory that declares 6", make: func(parts []part) []byte {
			return patch(build(append(parts, many(1000)...)), endRecord, 8, 6, 0, 6, 0)
		}, err: "more than 64 files"},
		{name: "65,534 files are declared", make: func(parts []part) []byte {
			return patch(build(parts), endRecord, 8, 0xfe, 0xff, 0xfe, 0xff)
		}, err: "more than 64 files"},
		{name: "a directory of 4 GB is declared", make: func(parts []part) []byte {
			return patch(build(parts), endRecord, 12, 0xfe, 0xff, 0xff, 0xff)
		}, err: "a directory of more than"},
		{name: "65,535 files mean zip64", make: func(parts []part) []byte {
			return patch(build(parts), endRecord, 10, 0xff, 0xff)
		}, err: "zip64"},
		{name: "70,000 files", make: func([]part) []byte { return build(many(70000)) }, err: "zip64", memory: 4 * mega},
		{name: "directory behind 4 GB", make: func(parts []part) []byte {
			return patch(build(parts), endRecord, 16, 0xff, 0xff, 0xff, 0xff)
		}, err: "zip64"},
		{name: "a zip64 end record beside the right one", make: func(parts []part) []byte {
			text := build(parts)
			end := bytes.LastIndex(text, []byte(endRecord))
			locator := make([]byte, 20)
			copy(locator, "PK\x06\x07")
			return slices.Concat(text[:end], locator, text[end:])
		}, err: "zip64"},
		{name: "zip64 sizes of a file", make: func(parts []part) []byte {
			at(parts, "workspace.diff").edit = func(h *zip.FileHeader) {
				h.UncompressedSize64, h.Extra = 1<<32, binary.LittleEndian.AppendUint64([]byte{1, 0, 8, 0}, 1<<63)
			}
			return build(parts)
		}, err: "zip64"},
		{name: "directory out of the file", make: func(parts []part) []byte {
			return patch(build(parts), endRecord, 16, 0xfe, 0xff, 0xff, 0xfe)
		}, damage: "the directory of the zip is missing or damaged"},
		{name: "an entry that leads to another file", make: func(parts []part) []byte {
			return patch(build(parts), "PK\x01\x02", 42, 0, 0, 0, 0) // the last one is of traffic.jsonl
		}, damage: "the directory of the zip is missing or damaged"},
		{name: "an entry that leads out of the file", make: func(parts []part) []byte {
			return patch(build(parts), "PK\x01\x02", 42, 0xfe, 0xff, 0xff, 0xfe)
		}, damage: "the directory of the zip is missing or damaged"},
		{name: "wrong hash of the log", make: func(parts []part) []byte {
			at(parts, "events.jsonl").sum = strings.Repeat("ab", 32)
			return build(parts)
		}, errs: map[string]string{"events.jsonl": "events.jsonl: its SHA-256 is not that of the manifest"}},
		{name: "wrong hash of the transcript", make: func(parts []part) []byte {
			at(parts, "transcript.jsonl").sum = strings.Repeat("ab", 32)
			return build(parts)
		}, errs: map[string]string{"transcript.jsonl": "transcript.jsonl: its SHA-256"}},
		{name: "wrong hash of the diff", make: func(parts []part) []byte {
			at(parts, "workspace.diff").sum = strings.Repeat("ab", 32)
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "workspace.diff: its SHA-256"}},
		{name: "wrong hash of the info", make: func(parts []part) []byte {
			at(parts, "run.json").sum = strings.Repeat("ab", 32)
			return build(parts)
		}, err: "run.json: its SHA-256", next: "export the run again"},
		{name: "wrong hash of the end", make: func(parts []part) []byte {
			at(parts, "end.json").sum = strings.Repeat("ab", 32)
			return build(parts)
		}, damage: "how the run ended is not known: read end.json: its SHA-256"},
		{name: "a hash that is not one", make: func(parts []part) []byte {
			at(parts, "workspace.diff").sum = "abc"
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "no SHA-256"}},
		{name: "size of the zip and of the manifest differ", make: func(parts []part) []byte {
			at(parts, "workspace.diff").size = "7"
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "and 7 in the manifest"}},
		{name: "both sizes are too small", make: func(parts []part) []byte {
			p := at(parts, "workspace.diff")
			p.size, p.edit = "7", sizes(7, uint64(len(p.text)))
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "more bytes than the 7"}},
		{name: "both sizes are too large", make: func(parts []part) []byte {
			p := at(parts, "workspace.diff")
			p.size, p.edit = "7000", sizes(7000, uint64(len(p.text)))
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "the manifest declares 7000"}},
		{name: "compressed size out of the file", make: func(parts []part) []byte {
			p := at(parts, "traffic.jsonl")
			p.size, p.edit = "4294967294", sizes(1<<32-2, 1<<32-2)
			return build(parts)
		}, damage: "traffic.jsonl is cut off"},
		{name: "negative size", make: func(parts []part) []byte {
			at(parts, "workspace.diff").size = "-1"
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "out of range"}},
		{name: "smallest number", make: func(parts []part) []byte {
			at(parts, "workspace.diff").size = "-9223372036854775808"
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "out of range"}},
		{name: "largest number", make: func(parts []part) []byte {
			at(parts, "workspace.diff").size = "9223372036854775807"
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "out of range"}},
		{name: "a number that is too large", make: func(parts []part) []byte {
			at(parts, "workspace.diff").size = "1e300"
			return build(parts)
		}, err: "manifest.json"},
		{name: "manifest of 1 GB", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", packed: bomb(t, ' ', mega), edit: func(h *zip.FileHeader) { h.UncompressedSize64 = 1024 * mega }}}, parts...))
		}, err: "manifest.json has more than 65536 bytes"},
		{name: "manifest of 12 MB that declares few bytes", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", packed: bomb(t, ' ', 12*mega), edit: func(h *zip.FileHeader) { h.UncompressedSize64 = 100 }}}, parts...))
		}, err: "its size or checksum is not that of the zip"},
		{name: "manifest of 1,000 files", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: []byte(`{"droverBundle":1,"files":[` + strings.Repeat("{},", 1000) + `{}]}`)}}, parts...))
		}, err: "lists 1001 files"},
		{name: "manifest without JSON", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: []byte("{")}}, parts...))
		}, err: "manifest.json"},
		{name: "manifest that lists foreign files", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: manifestOf(t, append(parts, part{name: "../../x"}), "1", "r1")}}, parts...))
		}, damage: `manifest.json lists "../../x"`},
		{name: "a file that the manifest does not list", make: func(parts []part) []byte {
			at(parts, "traffic.jsonl").hide = true
			return build(parts)
		}, damage: "manifest.json does not list traffic.jsonl"},
		{name: "a file that is only listed", make: func(parts []part) []byte {
			m := part{name: "manifest.json", text: manifestOf(t, parts, "1", "r1")}
			return build(append([]part{m}, slices.DeleteFunc(parts, func(p part) bool { return p.name == "transcript.jsonl" })...))
		}, errs: map[string]string{"transcript.jsonl": "it is missing"}, damage: "transcript.jsonl cannot be read: it is missing"},
		{name: "newer version", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: []byte(`{"droverBundle":2,"files":"in another form"}`)}}, parts...))
		}, err: "has format 2, this program reads up to 1", next: "use a newer version of Drover"},
		{name: "no version", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: []byte(`{}`)}}, parts...))
		}, err: "is not that of a bundle"},
		{name: "negative version", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: manifestOf(t, parts, "-1", "r1")}}, parts...))
		}, err: "is not that of a bundle"},
		{name: "manifest of another run", make: func(parts []part) []byte {
			return build(append([]part{{name: "manifest.json", text: manifestOf(t, parts, "1", "r2")}}, parts...))
		}, err: `is of the run "r2"`},
		{name: "id that leads elsewhere", make: func(parts []part) []byte {
			p := at(parts, "run.json")
			p.text = bytes.Replace(p.text, []byte(`"id":"r1"`), []byte(`"id":"../../r1"`), 1)
			return build(append([]part{{name: "manifest.json", text: manifestOf(t, parts, "1", "../../r1")}}, parts...))
		}, err: `the id "../../r1" cannot name a run`},
		{name: "compression that is not known", make: func(parts []part) []byte {
			at(parts, "workspace.diff").edit = func(h *zip.FileHeader) { h.Method = 12 }
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "compression method 12 is not supported"}},
		{name: "encrypted", make: func(parts []part) []byte {
			at(parts, "workspace.diff").edit = func(h *zip.FileHeader) { h.Flags |= 1 }
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "it is encrypted"}},
		{name: "compressed data that is not", make: func(parts []part) []byte {
			at(parts, "workspace.diff").packed = []byte("this is not compressed")
			return build(parts)
		}, errs: map[string]string{"workspace.diff": "it is damaged after 0 of"}},
		{name: "another zip", make: func([]part) []byte {
			return bytes.ReplaceAll(build(many(3)), []byte("manifest.json"), []byte("manifest.yaml"))
		}, err: "there is no manifest.json"},
		{name: "empty", make: func([]part) []byte { return nil }, err: "there is no manifest.json"},
		{name: "an end record alone", make: func([]part) []byte { return append([]byte(endRecord), make([]byte, 18)...) }, err: "there is no manifest.json"},
		{name: "not a zip", make: func([]part) []byte { return bytes.Repeat([]byte("PK\x05\x06"), 40000) }, err: "there is no manifest.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := partsOf(t)
			text := test.make(slices.Clone(made))
			dir := t.TempDir()
			inner := filepath.Join(dir, "a", "b")
			path := filepath.Join(inner, "bundle.zip")
			if err := os.MkdirAll(inner, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Chdir(inner)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			run, err := record.OpenBundle(path)
			var got contents
			if err == nil {
				defer run.Close()
				got = read(run)
			}
			runtime.ReadMemStats(&after)
			if most := max(test.memory, 4*mega); after.TotalAlloc-before.TotalAlloc > most || time.Since(start) > time.Minute {
				t.Errorf("it took %d bytes and %v", after.TotalAlloc-before.TotalAlloc, time.Since(start))
			}
			if files := filesBelow(t, dir); !slices.Equal(files, []string{"a/b/bundle.zip"}) {
				t.Errorf("there are the files %q", files)
			}
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), path) || !strings.Contains(advice.Of(err), orText(test.next, "export")) {
					t.Errorf("the error is %v, its advice %q; want %q and %q", err, advice.Of(err), test.err, test.next)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if damage := strings.Join(run.Damage(), "\n"); !strings.Contains(damage, test.damage) || test.damage == "" && test.errs == nil && damage != "" {
				t.Errorf("the damage is %q, want %q", damage, test.damage)
			}
			for _, name := range []string{"events.jsonl", "transcript.jsonl", "workspace.diff"} {
				want, err := test.errs[name], got.errs[name]
				if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || advice.Of(err) == "" && !strings.Contains(want, "longer")) {
					t.Errorf("%s: the error is %v, want %q", name, err, want)
				}
			}
			if want := whole(); test.errs == nil && (len(got.entries) != len(want.texts) || len(got.transcript) != len(want.transcript) || got.diff != want.diff) {
				t.Errorf("got %d entries, %d of the transcript, the diff %q", len(got.entries), len(got.transcript), got.diff)
			}
		})
	}
}

func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// FuzzOpenBundle opens anything, and reads what there is of it.
func FuzzOpenBundle(f *testing.F) {
	_, r := whole().write(f, f.TempDir())
	text := export(f, r)
	for _, seed := range [][]byte{
		nil, text, text[:len(text)-1], text[:len(text)*2/3], build(f, partsOf(f)), build(f, append(partsOf(f), part{name: "../x"})),
		patch(bytes.Clone(text), endRecord, 8, 0xff, 0xff), patch(bytes.Clone(text), endRecord, 16, 1, 0, 0, 0), patch(bytes.Clone(text), "PK\x01\x02", 42, 0, 0, 0, 0),
		patch(bytes.Clone(text), "PK\x01\x02", 20, 0xfe, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		run, err := openAt(text)
		if err != nil {
			if advice.Of(err) == "" || run != nil {
				t.Errorf("the error %q has no advice, or a run", err)
			}
			return
		}
		if run.ID == "" || run.Format < 1 || strings.ContainsAny(run.ID, `/\`) || (run.State == record.Ended) != (run.End != nil) {
			t.Errorf("the run is %+v", run)
		}
		read(run)
		if len(run.Damage()) > 200 || len(strings.Join(run.Damage(), "")) > mega {
			t.Errorf("the damage has %d lines", len(run.Damage()))
		}
	})
}

// sparse writes to a file, and leaves out zeros.
type sparse struct{ *os.File }

func (s sparse) Write(p []byte) (int, error) {
	if len(bytes.Trim(p, "\x00")) > 0 {
		return s.File.Write(p)
	}
	_, err := s.Seek(int64(len(p)), io.SeekCurrent)
	return len(p), err
}

// BenchmarkOpenBundle_ListEvents opens a bundle and lists its 1,000 events, with 10 MB and with 1 GB of traffic. The metric ratio says
// how much longer the large one takes.
func BenchmarkOpenBundle_ListEvents(b *testing.B) {
	k := whole()
	k.texts, k.traffic = words(1000), ""
	_, r := k.write(b, b.TempDir())
	bundle := func(traffic int64) string {
		path := filepath.Join(b.TempDir(), "bundle.zip")
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		var parts []part
		for _, name := range order[1:6] {
			text, err := os.ReadFile(filepath.Join(r.Path, name))
			if err != nil {
				b.Fatal(err)
			}
			parts = append(parts, part{name: name, text: text})
		}
		m := manifestOf(b, append(slices.Clone(parts), part{name: "traffic.jsonl", size: fmt.Sprint(traffic)}), "1", "r1")
		z := zip.NewWriter(sparse{f})
		for _, p := range append([]part{{name: "manifest.json", text: m}}, append(parts, part{name: "traffic.jsonl"})...) {
			h := &zip.FileHeader{Name: p.name, CRC32: crc32.ChecksumIEEE(p.text), CompressedSize64: uint64(len(p.text)), UncompressedSize64: uint64(len(p.text))}
			contents, size := io.Reader(bytes.NewReader(p.text)), int64(len(p.text))
			if p.name == "traffic.jsonl" {
				contents, size = repeated(0), traffic
				h.CompressedSize64, h.UncompressedSize64 = uint64(size), uint64(size)
			}
			w, err := z.CreateRaw(h)
			if err == nil {
				_, err = io.CopyN(w, contents, size)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			b.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() < traffic {
			b.Fatalf("the bundle has %v (%v)", info, err)
		}
		return path
	}
	list := func(path string) time.Duration {
		start := time.Now()
		run, err := record.OpenBundle(path)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range run.Entries() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != len(k.texts) || len(run.Damage()) > 0 {
			b.Fatalf("%d entries, the damage %q", n, run.Damage())
		}
		if err := run.Close(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	small, large := bundle(10*mega), bundle(1024*mega)
	var quick, slow time.Duration
	for b.Loop() {
		quick += list(small)
		slow += list(large)
	}
	b.ReportMetric(slow.Seconds()/quick.Seconds(), "ratio")
	b.ReportMetric(slow.Seconds()*1000/float64(b.N), "large-ms/op")
}
