// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

const checkout = "../.."

// The second build is of a copy of the checkout. An ordinary run builds one platform, and both builds share the cache of the go
// command, where most of what they need is. A soak builds all, each time from an empty cache.
func TestRelease_SameCommitGivesTheSameBytes(t *testing.T) {
	if _, err := os.Stat(filepath.Join(checkout, ".git")); err != nil {
		t.Skip("the checkout has no git, and a release is built from a commit")
	}
	built := func(root string) string {
		r := release{root: root, out: t.TempDir(), version: version(t), platforms: []platform{{"linux", "amd64"}}, uncommitted: true, log: io.Discard}
		if testkit.Soak() {
			t.Setenv("GOCACHE", t.TempDir())
			r.platforms = platforms
		}
		if err := r.build(t.Context()); err != nil {
			t.Fatal(advice.Text(err))
		}
		if left := filesOf(t, r.out); !slices.Equal(left, []string{r.version}) {
			t.Errorf("the output folder has %v", left)
		}
		return filepath.Join(r.out, r.version)
	}
	first, second := built(checkout), built(copyOf(t, checkout))
	names := filesOf(t, first)
	if got := filesOf(t, second); !slices.Equal(names, got) {
		t.Fatalf("the second build has the files %v, the first one %v", got, names)
	}
	for _, name := range names {
		if !bytes.Equal(content(t, first, name), content(t, second, name)) {
			t.Errorf("%s differs", name)
		}
	}
	base := "drover_" + version(t) + "_linux_amd64"
	if want := []string{"SHA256SUMS", base + ".cdx.json", base + ".tar.gz"}; !testkit.Soak() && !slices.Equal(names, want) {
		t.Fatalf("the release has %v, want %v", names, want)
	}
	checkSums(t, first)
	archived := untar(t, content(t, first, base+".tar.gz"))
	binary := archived[base+"/drover"]
	checkBinary(t, binary)
	checkBill(t, content(t, first, base+".cdx.json"), binary)
	checkLicences(t, string(archived[base+"/THIRD-PARTY-LICENSES.txt"]), binary)
	if !bytes.Equal(archived[base+"/drover.cdx.json"], content(t, first, base+".cdx.json")) {
		t.Error("the bill of materials in the archive is another one")
	}
}

// version is a candidate of that of the code, which the binary knows by the release alone.
func version(t *testing.T) string {
	t.Helper()
	found := constant.FindSubmatch(content(t, checkout, "claude/environ.go"))
	if found == nil {
		t.Fatal("claude/environ.go has no version")
	}
	return string(found[1]) + "-rc.1"
}

// copyOf is another folder with the commit of a checkout, and with its files as they are.
func copyOf(t *testing.T, checkout string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("clone", "-q", "--shared", checkout, dir)
	git("-C", dir, "rm", "-rq", ".")
	for name := range strings.SplitSeq(git("-C", checkout, "ls-files", "-zco", "--exclude-standard"), "\x00") {
		from, to := filepath.Join(checkout, name), filepath.Join(dir, name)
		info, err := os.Lstat(from)
		if name == "" || errors.Is(err, fs.ErrNotExist) { // deleted, and not yet in a commit
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil && info.Mode().IsRegular() {
			err = os.WriteFile(to, content(t, checkout, name), info.Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	git("-C", dir, "reset", "-q")
	return dir
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func content(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func checkSums(t *testing.T, dir string) {
	t.Helper()
	seen := 0
	for line := range strings.Lines(string(content(t, dir, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if seen++; fmt.Sprintf("%x", sha256.Sum256(content(t, dir, name))) != sum {
			t.Errorf("the checksum of %s is wrong", name)
		}
	}
	if seen != len(filesOf(t, dir))-1 {
		t.Errorf("%d files have a checksum", seen)
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
		if program := strings.HasSuffix(header.Name, "/drover"); header.FileInfo().Mode().Perm()&0o111 != 0 != program || header.ModTime.Year() < 2020 {
			t.Errorf("%s has the mode %v and the date %v", header.Name, header.FileInfo().Mode(), header.ModTime)
		}
	}
}

// checkBinary sees that a binary needs no library, names no folder of this machine, and knows its version.
func checkBinary(t *testing.T, binary []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Error("the binary is not static")
		}
	}
	here, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{here, strings.TrimSpace(string(cache))} {
		if bytes.Contains(binary, []byte(folder+"/")) {
			t.Errorf("the binary has the name of the folder %s", folder)
		}
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return
	}
	path := filepath.Join(t.TempDir(), "drover")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(path, "--version").CombinedOutput(); err != nil || !strings.Contains(string(said), version(t)) {
		t.Errorf("drover --version prints %q (%v), want %s", said, err, version(t))
	}
}

// deps are the modules in a binary.
func deps(t *testing.T, binary []byte) (paths []string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		paths = append(paths, dep.Path)
	}
	return append(paths, standard)
}

var uuid = regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func checkBill(t *testing.T, data, binary []byte) {
	t.Helper()
	var bill billOfMaterials
	if err := json.Unmarshal(data, &bill); err != nil {
		t.Fatal(err)
	}
	if bill.Format != "CycloneDX" || !uuid.MatchString(bill.Serial) || bill.Metadata.Component.Version != "v"+version(t) {
		t.Errorf("the bill begins with %q, %q and %+v", bill.Format, bill.Serial, bill.Metadata)
	}
	if !slices.ContainsFunc(bill.Metadata.Component.Properties, func(p property) bool { return p.Name == "vcs:commit" && len(p.Value) >= 40 }) {
		t.Errorf("the bill does not name the commit: %+v", bill.Metadata.Component)
	}
	if got := bill.Metadata.Component.Hashes; len(got) != 1 || got[0].Content != fmt.Sprintf("%x", sha256.Sum256(binary)) {
		t.Errorf("the hash of the binary is %v", got)
	}
	var listed []string
	for _, c := range bill.Components {
		listed = append(listed, c.Name)
		if len(c.Licences) == 0 || c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version {
			t.Errorf("a component is %+v", c)
		}
	}
	want := deps(t, binary)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the bill has %v\nthe binary has %v", listed, want)
	}
	if len(bill.Dependencies) != 1 || len(bill.Dependencies[0].DependsOn) != len(want) {
		t.Errorf("the dependencies are %+v", bill.Dependencies)
	}
}

func checkLicences(t *testing.T, list string, binary []byte) {
	t.Helper()
	for _, path := range deps(t, binary) {
		if !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(path)+` \S+: [A-Z]`).MatchString(list) || !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(path)+` \S+: \S*(?i:licen[cs]e|copying)`).MatchString(list) {
			t.Errorf("the licences of %s are missing", path)
		}
	}
}

// A module without a known licence is found without a build for each platform.
func TestFolders_EveryPlatformHasKnownLicences(t *testing.T) {
	r := release{root: checkout}
	for _, p := range platforms {
		folders, err := r.folders(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(folders) < 20 {
			t.Errorf("%s: only %d modules found", p, len(folders))
		}
		for path, from := range folders {
			m := module{path: path}
			if err := m.readLicences(from); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
}

func TestArchive_ForWindowsIsAZip(t *testing.T) {
	r := release{version: "1.2.3", date: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}
	dir := t.TempDir()
	if err := r.archive(platform{"windows", "amd64"}, dir, []file{{"drover.exe", []byte("binary"), 0o755}, {name: "LICENSE", content: []byte("text")}}); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(dir, "drover_1.2.3_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var got []string
	for _, f := range archive.File {
		got = append(got, fmt.Sprint(f.Name, " ", f.Mode(), " ", f.Modified.UTC().Format(time.DateTime)))
	}
	want := []string{"drover_1.2.3_windows_amd64/drover.exe -rwxr-xr-x 2026-01-02 03:04:06", "drover_1.2.3_windows_amd64/LICENSE -rw-r--r-- 2026-01-02 03:04:06"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRelease_ChecksTheVersionFirst(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("claude/environ.go", "package claude\n\nconst Version = \"0.2.0\"\n")
	write("CHANGELOG.md", "# Changelog\n\n## 0.3.0\n\n- New.\n\n## 0.2.0\n\n## 0.1.0\n\n- First.\n")
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-C", root}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	cases := []struct{ name, version, change, want string }{
		{"nothing", "", "", `"" is not a semantic version`},
		{"with a v", "v0.2.0", "", `"v0.2.0" is not a semantic version`},
		{"two numbers", "0.2", "", "is not a semantic version"},
		{"a path", "0.2.0/../..", "", "is not a semantic version"},
		{"a zero before", "0.02.0", "", "is not a semantic version"},
		{"another than that of the code", "0.3.0", "", "claude.Version is not 0.3.0"},
		{"a section without an entry", "0.2.0", "", "CHANGELOG.md has no section 0.2.0 with an entry"},
		{"the same for a candidate", "0.2.0-rc.1", "", "CHANGELOG.md has no section 0.2.0 with an entry"},
		{"changes", "0.2.0", "## 0.2.0\n\n- New.\n", "the checkout has changes that are in no commit"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.change != "" {
				write("CHANGELOG.md", c.change)
			}
			r := release{root: root, out: filepath.Join(root, "dist"), version: c.version, log: io.Discard}
			if err := r.build(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || advice.Of(err) == "" {
				t.Errorf("got %v, want %q and advice", err, c.want)
			}
			if _, err := os.Stat(r.out); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestLicencesIn_Cases(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                                              "Apache-2.0",
		"Permission is hereby granted, free of charge, to any\nperson obtaining a copy":                                             "MIT",
		"Redistributions in binary form must reproduce the above copyright notice":                                                  "BSD-2-Clause",
		"in binary form ... used to endorse\nor promote products derived from this software":                                        "BSD-3-Clause",
		"Apache License Version 2.0, January 2004 ... Permission is hereby granted, free of charge, to any person obtaining a copy": "Apache-2.0 MIT",
		"All rights reserved.": "",
	} {
		if got := strings.Join(licencesIn(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
