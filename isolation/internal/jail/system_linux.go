// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// insideID is the user and group inside. Programs treat root and unusual ids differently.
const insideID = 1000

// usrFolders are links into /usr on most systems, and folders on some.
var usrFolders = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// etcPaths are the files of /etc that tools need and that contain nothing about the host: certificates, the
// linker's cache, the choice of alternatives, the time zone.
var etcPaths = []string{
	"/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/ca-trust", "/etc/pki/tls/certs",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime",
}

func systemArgs() []string {
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, path := range usrFolders {
		if to, err := os.Readlink(path); err == nil {
			args = append(args, "--symlink", to, path)
		} else if isThere(path) {
			args = append(args, "--ro-bind", path, path)
		}
	}
	there := slices.DeleteFunc(slices.Clone(etcPaths), func(path string) bool { return !isThere(path) })
	args = append(args, parentArgs(there)...)
	for _, path := range there {
		if to, ok := linkIntoUsr(path); ok {
			args = append(args, "--symlink", to, path)
		} else {
			args = append(args, "--ro-bind", path, path)
		}
	}
	return args
}

// linkIntoUsr is where a path leads if it is a link to something in /usr, which is inside too. Programs find the
// name of the time zone in such a link, and compare with every zone that there is where it is a file.
func linkIntoUsr(path string) (to string, ok bool) {
	to, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	leads := to
	if !filepath.IsAbs(leads) {
		leads = filepath.Join(filepath.Dir(path), to)
	}
	return to, strings.HasPrefix(filepath.Clean(leads), "/usr/")
}

// SystemPaths are the folders and files of the system that are shown inside, as far as they are there.
func SystemPaths() []string {
	all := slices.Concat([]string{"/usr"}, usrFolders, etcPaths)
	return slices.DeleteFunc(all, func(path string) bool { return !isThere(path) })
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// files are those of the spec and, where it has none of that name, the usual ones.
func (s Spec) files() []File {
	all := append([]File(nil), s.Files...)
	for _, f := range s.usualFiles() {
		if !slices.ContainsFunc(s.Files, func(own File) bool { return own.Path == f.Path }) {
			all = append(all, f)
		}
	}
	return all
}

func (s Spec) usualFiles() []File {
	passwd := fmt.Sprintf("agent:x:%d:%d:agent:%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", insideID, insideID, s.home())
	return []File{
		{"/etc/passwd", []byte(passwd)},
		{"/etc/group", fmt.Appendf(nil, "agent:x:%d:\nnogroup:x:65534:\n", insideID)},
		{"/etc/hosts", []byte("127.0.0.1 localhost cell\n::1 localhost\n")},
		{"/etc/nsswitch.conf", []byte("passwd: files\ngroup: files\nhosts: files\n")},
	}
}

// home is the HOME of the environment. A name that would break passwd is left out.
func (s Spec) home() string {
	home := "/"
	for _, entry := range s.Env {
		if value, ok := strings.CutPrefix(entry, "HOME="); ok && !strings.ContainsAny(value, ":\n") {
			home = value
		}
	}
	return home
}
