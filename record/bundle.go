// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainfile"
)

// bundleFormat is the version of bundles. Readers take all versions up to it.
const bundleFormat = 1

// manifestFile is the first file of a bundle. It lists the others.
const manifestFile = "manifest.json"

// bundleOrder lists the files of a run in the order that they have in a bundle: a bundle that is cut off has lost the last ones.
var bundleOrder = []string{infoFile, endFile, eventsFile, diffFile, transcriptFile, trafficFile}

// maxManifest bounds the manifest of a bundle.
const maxManifest = 64 << 10

// maxBundled returns the largest size of a file in a bundle. Files that are decoded as one value have small limits.
func maxBundled(name string) int64 {
	switch name {
	case infoFile, endFile:
		return 16 << 20
	case diffFile:
		return maxDiff
	}
	return 1<<32 - 2 // without zip64, a size of 1<<32 - 1 means that it is stored elsewhere
}

// A manifest says what a bundle contains.
type manifest struct {
	Format int            `json:"droverBundle"`
	Made   time.Time      `json:"made"`
	Drover string         `json:"drover,omitzero"` // version of the program that made the bundle
	Run    string         `json:"run"`
	Files  []manifestFact `json:"files"`
}

// A manifestFact is one file of a bundle. Compressed is for people and for programs that repair zips: readers have the zip's.
type manifestFact struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"`
	Compressed int64  `json:"compressed"`
}

func parseManifest(text []byte) (*manifest, error) {
	var version struct {
		Format int `json:"droverBundle"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if version.Format > bundleFormat {
		return nil, advice.Wrap(fmt.Errorf("%s has format %d, this program reads up to %d", manifestFile, version.Format, bundleFormat),
			"use a newer version of Drover")
	}
	if version.Format < 1 {
		return nil, fmt.Errorf("%s is not that of a bundle", manifestFile)
	}
	m := &manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if len(m.Files) > maxEntries {
		return nil, fmt.Errorf("%s lists %d files, a bundle has at most %d", manifestFile, len(m.Files), maxEntries)
	}
	return m, nil
}

// OpenBundle opens the file that [Run.Export] made. Close the run when it is no longer needed. A run without an end is [Lost].
//
// A bundle that is cut off or damaged opens if its manifest and run.json are whole. [Run.Damage] reports the rest. Contents are
// checked when they are read to their end: entries that come before an error of [Run.Entries] are not confirmed by the hash.
//
// The file may come from anyone: nothing is extracted, files that do not belong to a run are ignored, and sizes are bounded.
func OpenBundle(path string) (*Run, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("record: opening a bundle: %w", err), "check the path of the bundle")
	}
	var r *Run
	info, err := f.Stat()
	if err == nil {
		r, err = openBundle(f, info.Size(), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.closer = f
	return r, nil
}

func openBundle(src io.ReaderAt, size int64, path string) (*Run, error) {
	b, err := readBundle(src, size)
	if err != nil {
		return nil, damaged(fmt.Errorf("record: opening the bundle %s: %w", path, err))
	}
	r, err := openRun(b, path, false)
	switch {
	case err != nil:
	case !validID(r.ID):
		err = fmt.Errorf("record: opening the bundle %s: %s: the id %.80q cannot name a run", path, infoFile, r.ID)
	case r.ID != b.manifest.Run:
		err = fmt.Errorf("record: opening the bundle %s: %s is of the run %.80q, and %s of %s", path, manifestFile, b.manifest.Run, infoFile, r.ID)
	}
	if err != nil {
		return nil, damaged(err)
	}
	r.damage = b.damage
	return r, nil
}

// damaged adds what to do about a bundle that is damaged, unless err knows better.
func damaged(err error) error {
	if advice.Of(err) != "" {
		return err
	}
	return advice.Wrap(err, "export the run again where it is kept, or copy the bundle again")
}

// Close closes the bundle of the run. It does nothing for a run in a folder.
func (r *Run) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Damage lists what is missing, damaged or foreign in the bundle of the run, and what can still be read. It is empty for a whole
// bundle and for a run in a folder. Files are not read for it: contents that differ from the manifest are errors of reading.
func (r *Run) Damage() []string { return slices.Clone(r.damage) }

// A bundle is the files of a run in a zip. Only [fs.FS.Open] of single files is supported.
type bundle struct {
	src      io.ReaderAt
	size     int64
	entries  map[string]zipEntry // of the files that a bundle may have
	links    map[string]bool     // those that are no regular files
	manifest *manifest
	files    map[string]*bundledFile
	damage   []string
}

func isBundled(name string) bool { return name == manifestFile || slices.Contains(bundleOrder, name) }

func readBundle(src io.ReaderAt, size int64) (*bundle, error) {
	b := &bundle{src: src, size: size, entries: map[string]zipEntry{}, links: map[string]bool{}, files: map[string]*bundledFile{}}
	found, whole, err := readDirectory(src, size)
	if err != nil {
		return nil, err
	}
	if err := b.add(found); err != nil {
		return nil, err
	}
	text, err := b.manifestText()
	if err != nil { // the directory has another idea of where the manifest is
		clear(b.entries)
		whole = false
	} else if b.manifest, err = parseManifest(text); err != nil {
		return nil, err
	}
	if !whole || !b.hasAll() {
		if err := b.scan(); err != nil {
			return nil, err
		}
	}
	b.check()
	b.checkEnd()
	return b, nil
}

// add takes the entries of a zip that are files of a bundle. Those that it has stay.
func (b *bundle) add(found []zipEntry) error {
	seen := map[string]bool{}
	for _, e := range found {
		switch {
		case !isBundled(e.name):
			b.report(fmt.Sprintf("%.80q is not a file of a bundle; it is ignored", e.name))
			continue
		case seen[e.name]:
			return fmt.Errorf("it has two files %s", e.name)
		case !e.regular:
			b.links[e.name] = true
			b.report(fmt.Sprintf("%s is a link or another special file; it is ignored", e.name))
			continue
		}
		seen[e.name] = true
		if _, ok := b.entries[e.name]; !ok && !b.links[e.name] { // a local header does not say that it is of a link
			b.entries[e.name] = e
		}
	}
	return nil
}

// scan adds the files that only their own headers lead to, and the manifest if it is one of them.
func (b *bundle) scan() error {
	b.report("the directory of the zip is missing or damaged; the files were found by their own headers")
	found, err := scanHeaders(b.src, b.size)
	if err == nil {
		err = b.add(found)
	}
	if err != nil || b.manifest != nil {
		return err
	}
	text, err := b.manifestText()
	if err == nil {
		b.manifest, err = parseManifest(text)
	}
	return err
}

// manifestText returns the text of the manifest, which alone is checked by the checksum of the zip.
func (b *bundle) manifestText() ([]byte, error) {
	e, ok := b.entries[manifestFile]
	switch {
	case !ok:
		return nil, fmt.Errorf("it is not a bundle, or its beginning is damaged: there is no %s", manifestFile)
	case e.size > maxManifest || e.packed > maxManifest:
		return nil, fmt.Errorf("%s has more than %d bytes", manifestFile, maxManifest)
	}
	text, err := e.checked(b.src, b.size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	return text, nil
}

func (b *bundle) hasAll() bool {
	return !slices.ContainsFunc(b.manifest.Files, func(f manifestFact) bool {
		_, ok := b.entries[f.Name]
		return !ok && slices.Contains(bundleOrder, f.Name)
	})
}

func (b *bundle) report(damage string) {
	if !slices.Contains(b.damage, damage) {
		b.damage = append(b.damage, damage)
	}
}

// check compares the manifest with the entries of the zip.
func (b *bundle) check() {
	for _, fact := range b.manifest.Files {
		if !slices.Contains(bundleOrder, fact.Name) {
			b.report(fmt.Sprintf("%s lists %.80q, which is not a file of a run; it is ignored", manifestFile, fact.Name))
			continue
		}
		f := &bundledFile{bundle: b, fact: fact}
		var ok bool
		f.entry, ok = b.entries[fact.Name]
		f.sum, _ = hex.DecodeString(fact.SHA256)
		switch {
		case b.files[fact.Name] != nil:
			f.problem = errors.New("the manifest lists it twice")
		case fact.Size < 0 || fact.Size > maxBundled(fact.Name):
			f.problem = fmt.Errorf("its declared size of %d bytes is out of range", fact.Size)
		case len(f.sum) != sumSize:
			f.problem = errors.New("the manifest has no SHA-256 of it")
		case !ok:
			f.problem = errors.New("it is missing")
		case f.entry.size != fact.Size:
			f.problem = fmt.Errorf("it has %d bytes in the zip and %d in the manifest", f.entry.size, fact.Size)
		default:
			f.problem = f.entry.unsupported()
		}
		b.files[fact.Name] = f
	}
	for _, name := range bundleOrder {
		f := b.files[name]
		_, ok := b.entries[name]
		switch {
		case f == nil && ok:
			b.report(fmt.Sprintf("%s does not list %s; it is ignored", manifestFile, name))
		case f == nil:
		case f.problem != nil:
			b.report(fmt.Sprintf("%s cannot be read: %v", name, f.problem))
		case f.cut():
			b.report(fmt.Sprintf("%s is cut off: %d of %d compressed bytes are there, and the lines in them can be read", name, f.there(), f.entry.packed))
		}
	}
}

// checkEnd hides an end that cannot be read: the run is opened without.
func (b *bundle) checkEnd() {
	f, err := b.Open(endFile)
	if err == nil {
		_, err = io.Copy(io.Discard, f)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	b.report(fmt.Sprintf("how the run ended is not known: %v", err))
	delete(b.files, endFile)
}

// Open implements [fs.FS].
func (b *bundle) Open(name string) (fs.File, error) {
	f := b.files[name]
	switch {
	case f == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case f.problem != nil:
		return nil, damaged(&fs.PathError{Op: "open", Path: name, Err: f.problem})
	}
	return f.open(), nil
}
