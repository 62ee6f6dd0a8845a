// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A file is one of an archive. Zero mode means 0644.
type file struct {
	name    string
	content []byte
	mode    fs.FileMode
}

func (f file) perm() fs.FileMode { return cmp.Or(f.mode, 0o644) }

// archive writes the files into a tar.gz, or into a zip for Windows, below a folder of its name. Dates are that of the commit.
func (r *release) archive(p platform, dir string, files []file) error {
	var out bytes.Buffer
	pack, extension := r.tarGz, ".tar.gz"
	if p.os == "windows" {
		pack, extension = r.zip, ".zip"
	}
	for i := range files {
		files[i].name = r.name(p) + "/" + files[i].name
	}
	if err := pack(&out, files); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.name(p)+extension), out.Bytes(), 0o644)
}

func (r *release) tarGz(out *bytes.Buffer, files []file) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: int64(f.perm()), Size: int64(len(f.content)), ModTime: r.date, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func (r *release) zip(out *bytes.Buffer, files []file) error {
	archive := zip.NewWriter(out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.date}
		header.SetMode(f.perm())
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
