// SPDX-License-Identifier: Apache-2.0

package record

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
)

// Export writes a bundle of the run: a zip with a manifest and the files of the run, and no other file of its folder. [OpenBundle]
// opens it. Compressed files are in a file below [os.TempDir] until they are written.
//
// The bundle of a run in progress has what is stored at that time, in whole lines. On an error, w has a part of a bundle.
func (r *Run) Export(w io.Writer) error {
	if err := r.export(w); err != nil {
		err = fmt.Errorf("record: exporting %s: %w", r.Path, err)
		if advice.Of(err) == "" {
			err = advice.Wrap(err, "check that the run is still there, and that there is room for its bundle and for temporary files")
		}
		return err
	}
	return nil
}

func (r *Run) export(w io.Writer) (err error) {
	spool, err := os.CreateTemp("", "drover-bundle-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	made := time.Now().UTC().Truncate(time.Second)
	m := manifest{Format: bundleFormat, Made: made, Drover: droverVersion(), Run: r.ID}
	var sums []uint32
	var length int64
	ended := false
	for _, name := range bundleOrder { // the end before the events: they are complete where there is an end
		fact, sum, err := r.pack(spool, name, ended)
		if errors.Is(err, fs.ErrNotExist) {
			if name != infoFile {
				continue
			}
			if _, kept := r.files.(folder); !kept {
				err = advice.Wrap(errors.New("it is not a kept run"), "take it in with drover runs import, and export that")
			}
		}
		if err != nil {
			return err
		}
		ended = ended || name == endFile
		m.Files = append(m.Files, fact)
		sums = append(sums, sum)
		length += fact.Compressed
	}
	if most := int64(elsewhere32 - maxManifest - maxDirectory); length > most {
		return advice.Wrap(fmt.Errorf("its bundle has more than %d bytes", most), "copy %s itself", r.Path)
	}
	text, err := plainjson.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z := zip.NewWriter(w)
	own := manifestFact{Name: manifestFile, Size: int64(len(text)), Compressed: int64(len(text))}
	if err := put(z, own, zip.Store, crc32.ChecksumIEEE(text), made, bytes.NewReader(text)); err != nil {
		return err
	}
	for i, fact := range m.Files {
		if err := put(z, fact, zip.Deflate, sums[i], made, spool); err != nil {
			return err
		}
	}
	return z.Close()
}

// put adds a file to the zip, with all its sizes before its contents: without the directory it can be found.
func put(z *zip.Writer, fact manifestFact, method uint16, sum uint32, made time.Time, contents io.Reader) error {
	h := &zip.FileHeader{
		Name: fact.Name, Method: method, CRC32: sum, CompressedSize64: uint64(fact.Compressed), UncompressedSize64: uint64(fact.Size), ReaderVersion: 20,
		// The field of the time of change: its tag, length and flag.
		Extra: binary.LittleEndian.AppendUint32([]byte{0x55, 0x54, 5, 0, 1}, uint32(made.Unix())),
	}
	h.SetMode(0o600)
	w, err := z.CreateRaw(h)
	if err == nil {
		_, err = io.CopyN(w, contents, fact.Compressed)
	}
	return err
}

// pack appends a file of the run to the spool, compressed. Of a log that may grow it takes the whole lines.
func (r *Run) pack(spool io.Writer, name string, ended bool) (fact manifestFact, sum uint32, err error) {
	fact.Name = name
	f, size, err := r.openSized(name)
	if err != nil {
		return fact, 0, err
	}
	defer func() { _ = f.Close() }()
	if size > maxBundled(name) {
		return fact, 0, r.tooLarge(name)
	}
	src := io.Reader(f)
	if !ended && path.Ext(name) == ".jsonl" {
		whole, err := r.wholeLines(name, size)
		if err != nil {
			return fact, 0, err
		}
		src = io.LimitReader(f, whole)
	}
	packed := &counter{w: bufio.NewWriter(spool)}
	deflate, err := flate.NewWriter(packed, flate.DefaultCompression)
	if err != nil {
		return fact, 0, err
	}
	sha, crc := sha256.New(), crc32.NewIEEE()
	if fact.Size, err = io.Copy(io.MultiWriter(deflate, sha, crc), io.LimitReader(src, maxBundled(name)+1)); err != nil {
		return fact, 0, err
	}
	if fact.Size > maxBundled(name) {
		return fact, 0, r.tooLarge(name) // it has grown
	}
	if err := errors.Join(deflate.Close(), packed.w.Flush()); err != nil {
		return fact, 0, err
	}
	fact.SHA256, fact.Compressed = hex.EncodeToString(sha.Sum(nil)), packed.n
	return fact, crc.Sum32(), nil
}

func (r *Run) tooLarge(name string) error {
	return advice.Wrap(fmt.Errorf("%s has more than the %d bytes that a bundle takes", name, maxBundled(name)), "copy %s itself", r.Path)
}

// openSized opens a file of the run, and returns its size.
func (r *Run) openSized(name string) (f fs.File, size int64, err error) {
	if f, err = r.files.Open(name); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// wholeLines returns the length of the whole lines in the first bytes of a file.
func (r *Run) wholeLines(name string, size int64) (whole int64, err error) {
	f, err := r.files.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	at := int64(0)
	for b := make([]byte, 64<<10); at < size; {
		n, err := f.Read(b[:min(int64(len(b)), size-at)])
		if last := bytes.LastIndexByte(b[:n], '\n'); last >= 0 {
			whole = at + int64(last) + 1
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
	}
	// A bundle checks the contents at the end.
	if _, err := f.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return whole, nil
}

// A counter counts what is written.
type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// droverVersion is the version of Drover in this program, or empty.
func droverVersion() string {
	const module = "github.com/drover-agents/drover"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
